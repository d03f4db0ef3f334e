"""Time as a value that can be handed in: one monotonic clock, in nanoseconds, real or moved by hand."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Protocol

NS_PER_MS = 1_000_000
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """Whole ones, as on the wire."""
    return duration // _MILLISECOND


class Clock(Protocol):
    """What doing code reads; deciding code gets `now` as an argument instead."""

    def monotonic_ns(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemClock:
    """CLOCK_MONOTONIC, which all processes of one machine share, and the wall clock."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        return time.time_ns() // NS_PER_MS


class ManualClock:
    """A clock that moves only when told to; for tests and simulation."""

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
