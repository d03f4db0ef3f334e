"""Measures how long the event loop's turns take: during the longest one, every client stalls.

A turn begins when the selector returns what is ready, and ends when it is called again; `measured_loop` calls the
stopwatch here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

NS_PER_US = 1_000
#: Turns are counted by powers of two of microseconds; the last class has all that took longer (a minute).
CLASSES = 27


class LoopFigures(NamedTuple):
    """All turns since the start or the last reset. `histogram[n]` turns took from 2**(n-1) to 2**n microseconds."""

    turns: int
    measured_us: int
    longest_us: int
    longest_collection_us: int  #: of the garbage collector, which runs inside some turn
    histogram: tuple[int, ...]

    def quantile_us(self, share: float) -> int:
        """An upper bound for the duration of `share` of all turns; 0 if there were none."""
        rank = share * self.turns
        seen = 0
        for exponent, count in enumerate(self.histogram):
            seen += count
            if count and seen >= rank:
                return int(min(2**exponent, self.longest_us))
        return 0


class Stopwatch:
    """Adds up turns; call `begin` and `end` once for each."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self.busy_ns = 0  #: of all turns; a reset does not change it
        self._clock_ns = clock_ns
        self._began_ns = self._collection_ns = 0
        self.reset()

    def reset(self) -> None:
        """Reset the counters. The rest of the current turn still counts."""
        self._since_ns = self._began_ns = self._clock_ns()
        self._longest_ns = self._longest_collection_ns = 0
        self._histogram = [0] * CLASSES

    def begin(self) -> None:
        self._began_ns = self._clock_ns()

    def end(self) -> None:
        took_ns = self._clock_ns() - self._began_ns
        self.busy_ns += took_ns
        if took_ns > self._longest_ns:
            self._longest_ns = took_ns
        self._histogram[min((took_ns // NS_PER_US).bit_length(), CLASSES - 1)] += 1

    def on_collection(self, phase: str, _: dict[str, Any]) -> None:
        """For `gc.callbacks`."""
        if phase == "start":
            self._collection_ns = self._clock_ns()
        else:
            took_ns = self._clock_ns() - self._collection_ns
            self._longest_collection_ns = max(self._longest_collection_ns, took_ns)

    def figures(self) -> LoopFigures:
        """Does not include the current turn."""
        return LoopFigures(
            sum(self._histogram),
            (self._clock_ns() - self._since_ns) // NS_PER_US,
            self._longest_ns // NS_PER_US,
            self._longest_collection_ns // NS_PER_US,
            tuple(self._histogram),
        )
