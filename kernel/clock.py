"""The clock that is passed in to what performs effects."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import ClassVar, Protocol

NS_PER_MS, NS_PER_S = 1_000_000, 1_000_000_000
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds, as on the wire."""
    return duration // _MILLISECOND


def in_ms(ns: float) -> float:
    """Nanoseconds in milliseconds, as figures have them."""
    return round(ns / NS_PER_MS, 3)


def in_s(ns: float) -> float:
    """Nanoseconds in seconds, as figures have them."""
    return round(ns / NS_PER_S, 3)


class Clock(Protocol):
    """A monotonic and a wall clock, for code that performs effects; pure code gets `now` as an argument."""

    def monotonic_ns(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemClock:
    """CLOCK_MONOTONIC, which all processes of a machine share, and the wall clock.

    The wall clock of one process can be stepped, as an administrator or NTP steps a machine's.
    """

    _stepped_ms: ClassVar[int] = 0

    @classmethod
    def step(cls, by_ms: int) -> None:
        """Set the wall clock of this process ahead, or back."""
        cls._stepped_ms += by_ms

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        return time.time_ns() // NS_PER_MS + self._stepped_ms
