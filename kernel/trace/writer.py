"""Writing a trace: one file a process, one JSON line an event, each written through at once.

Every event is one `write` on a file opened for appending, so `kill -9` loses nothing that was emitted; at
worst a full disk tears the last line, which readers quarantine. Events are checked against the table when
they are emitted: a wrong one is our mistake and raises.
"""

from __future__ import annotations

import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from kernel.clock import Clock, SystemClock
from kernel.trace.check import problems
from kernel.trace.events import SCHEMA_VERSION, Implementation, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.values import TopicPartition


class Tracer(Protocol):
    """What a running part is given to tell its events to."""

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceIdentity:
    """What the header says of a process. `design` and `scenario` may be '' outside a scenario."""

    run: str
    scenario: str
    design: str
    role: Role
    process: str
    seed: int = 0
    implementation: Implementation = Implementation.OURS
    clock: str = "monotonic"


def partitions_field(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    """Partitions as a field of an event, in order."""
    return [{"topic": tp.topic, "partition": tp.partition} for tp in sorted(partitions)]


class TraceWriter:
    """A process's trace file. Safe to use from several threads; `tee` sees each event after it was written."""

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
            if wrong := problems(event):
                raise ValueError(f"event {kind!r} is malformed: {'; '.join(wrong)}: {event}")
            self._write(event)
            self._seq += 1
        if self._tee is not None:
            self._tee(event)

    def close(self) -> None:
        """Later events are ignored: a background task may outlive its process's orderly end by a moment."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _header(self) -> dict[str, object]:
        return {
            "schema": SCHEMA_VERSION,
            **asdict(self._identity),
            "boot_id": boot_id(),
            "monotonic_ns": self._clock.monotonic_ns(),
            "wall_ns": self._clock.wall_ms() * 1_000_000,
            "pid": os.getpid(),
        }

    def _write(self, line: Mapping[str, object]) -> None:
        data = memoryview(self._encode(line) + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]


class SilentTracer:
    """Tells nobody."""

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None: ...


class ListTracer:
    """Keeps events in memory, checked against the table; for tests and for `consume` on a terminal."""

    def __init__(self, *, process: str = "test", clock: Clock | None = None) -> None:
        self.events: list[dict[str, object]] = []
        self._process = process
        self._clock = clock or SystemClock()

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        event: dict[str, object] = {
            "seq": len(self.events),
            "ns": self._clock.monotonic_ns(),
            "kind": kind,
            "process": self._process,
            "member": member,
            "stream": stream,
            "cause": cause,
            **fields,
        }
        if wrong := problems(event):
            raise ValueError(f"event {kind!r} is malformed: {'; '.join(wrong)}: {event}")
        self.events.append(event)

    def of(self, *kinds: str) -> list[dict[str, object]]:
        return [event for event in self.events if event["kind"] in kinds]


def boot_id() -> str:
    """Linux's boot id: monotonic times of two files compare only when it is the same; '' where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
