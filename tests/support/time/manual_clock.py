"""A clock that tests move by hand."""

from __future__ import annotations

from kernel.clock import NS_PER_MS


class ManualClock:
    """A clock that moves only by `advance_ms`."""

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
