"""Write traces: one file for each process, one JSON line for each event, written immediately.

Every event is one `write` to a file opened for appending, so `kill -9` loses no emitted event. A full disk may tear
the last line, which readers quarantine. `close` writes the end marker, so a file without one may have lost its tail,
unless its process was killed. Events are checked when they are emitted: an invalid one is a bug and raises
ValueError.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from kernel.clock import Clock, SystemClock
from kernel.trace.check import type_problems
from kernel.trace.events import SCHEMA_VERSION, Implementation, Role
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Tracer(Protocol):
    """Where running code emits its events."""

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceIdentity:
    """The identity of a process in the header. `design` and `scenario` are '' outside a scenario.

    What ran by a simulated clock has no process id, and its times compare within its run only.
    """

    run: str
    scenario: str
    design: str
    role: Role
    process: str
    seed: int = 0
    implementation: Implementation = Implementation.OURS
    clock: TimeSource = TimeSource.MONOTONIC


class TraceWriter:
    """The trace file of a process. Thread-safe; `tee` receives each event after it is written."""

    def __init__(
        self,
        path: Path,
        identity: TraceIdentity,
        *,
        clock: Clock | None = None,
        tee: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        self._identity = identity
        self._clock = clock or SystemClock()
        self._tee = tee
        self._lock = threading.Lock()
        self._seq = 0
        self._has_lost = False  # an event that was emitted is not in the file, or only in part
        self._encode = msgspec.json.Encoder().encode
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._write({"header": self._header()})

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        with self._lock:
            if self._fd < 0:
                return
            event: dict[str, object] = {
                "seq": self._seq,
                "ns": self._clock.monotonic_ns(),
                "kind": kind,
                "process": self._identity.process,
                "member": member,
                "stream": stream,
                "cause": cause,
                **fields,
            }
            if wrong := type_problems(event):
                raise ValueError(f"event {kind!r} is malformed: {'; '.join(wrong)}: {event}")
            self._write(event)
            self._seq += 1
        if self._tee is not None:
            self._tee(event)

    def close(self) -> None:
        """Write the end marker and close the file.

        Later events are ignored, because a background task may briefly outlive an orderly exit. When the disk is full
        there is no marker, or a torn one, and no error: readers see that the file does not end as it should.
        """
        with self._lock:
            if self._fd < 0:
                return
            try:
                if not self._has_lost:
                    with contextlib.suppress(OSError):
                        self._write({"end": {"events": self._seq, "monotonic_ns": self._clock.monotonic_ns()}})
            finally:
                os.close(self._fd)
                self._fd = -1

    def _header(self) -> dict[str, object]:
        is_real = self._identity.clock is TimeSource.MONOTONIC
        return {
            "schema": SCHEMA_VERSION,
            **asdict(self._identity),
            "boot_id": boot_id() if is_real else self._identity.run,
            "monotonic_ns": self._clock.monotonic_ns(),
            "wall_ns": self._clock.wall_ms() * 1_000_000,
            "pid": os.getpid() if is_real else 0,
        }

    def _write(self, line: Mapping[str, object]) -> None:
        data = memoryview(self._encode(line) + b"\n")
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except OSError:
                self._has_lost = True
                raise


class SilentTracer:
    """Discards all events."""

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None: ...


def boot_id() -> str:
    """Linux's boot id, or ''. Monotonic times of two files are comparable only if their boot ids are equal."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
