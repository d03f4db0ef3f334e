"""Traces in memory, and all traces of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.clock import Clock, SystemClock
from kernel.trace.check import type_problems
from kernel.trace.reader import Trace, read_trace


class ListTracer:
    """Checks events and keeps them in memory."""

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
        if wrong := type_problems(event):
            raise ValueError(f"event {kind!r} is malformed: {'; '.join(wrong)}: {event}")
        self.events.append(event)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] in kinds]


def read_traces(folder: Path) -> list[Trace]:
    """All `*.jsonl` files of a trace folder, sorted by name."""
    return [read_trace(path) for path in sorted(folder.glob("*.jsonl"))]
