"""Clocks that are passed in: the system's, or one that tests move by hand."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Protocol

NS_PER_MS = 1_000_000
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds, as on the wire."""
    return duration // _MILLISECOND


class Clock(Protocol):
    """A monotonic and a wall clock, for code that performs effects; pure code gets `now` as an argument."""

    def monotonic_ns(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemClock:
    """CLOCK_MONOTONIC, which all processes of a machine share, and the wall clock."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        return time.time_ns() // NS_PER_MS


class ManualClock:
    """A clock that moves only by `advance_ms`; for tests and simulation."""

    def __init__(self, *, monotonic_ns: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ms = wall_ms

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def wall_ms(self) -> int:
        return self._wall_ms

    def advance_ms(self, ms: int) -> None:
        if ms < 0:
            raise ValueError(f"time does not run backwards: {ms} ms")
        self._monotonic_ns += ms * NS_PER_MS
        self._wall_ms += ms
