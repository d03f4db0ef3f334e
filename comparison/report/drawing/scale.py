"""One time axis for several runs: milliseconds on a run's clock to a place on the picture.

A place is a share of the picture's width, so that a page stretches and zooms without drawing again; runs of several
designs are aligned at their first change or fault, which is 0 on the axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.view.model import RunView

_STEPS_MS = tuple(factor * power for power in (1, 10, 100, 1_000, 10_000, 100_000) for factor in (1, 2, 5))


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of one run: `from_ms` and `until_ms` are its ends as distances from `zero_ms`."""

    zero_ms: float
    from_ms: float
    until_ms: float

    @property
    def length_ms(self) -> int:
        """In whole milliseconds: the unit of what is drawn stretched."""
        return max(1, round(self.until_ms - self.from_ms))

    def unit(self, at_ms: float) -> int:
        """A moment on the run's clock in milliseconds from the left end, cut off at both ends."""
        return min(self.length_ms, max(0, round(at_ms - self.zero_ms - self.from_ms)))

    def share(self, at_ms: float) -> float:
        return self.unit(at_ms) / self.length_ms

    def seconds(self, at_ms: float) -> float:
        """What the axis says at a moment."""
        return (at_ms - self.zero_ms) / 1000

    def ticks(self, most: int = 12) -> list[tuple[int, str]]:
        """Moments in milliseconds from the left end with their seconds: at most `most`, round ones, 0 among them."""
        step = next((each for each in _STEPS_MS if self.length_ms / each <= most), _STEPS_MS[-1])
        digits = 0 if step >= 1_000 else 1 if step >= 100 else 2 if step >= 10 else 3
        first = -(-round(self.from_ms) // step) * step
        return [
            (place - round(self.from_ms), f"{place / 1000:.{digits}f}")
            for place in range(first, round(self.from_ms) + self.length_ms + 1, step)
        ]


def scales(views: Sequence[RunView]) -> list[Scale]:
    """One for each run, all of the same length, aligned at the first change or fault of each."""
    from_ms = min(view.began_ms - view.zero_ms for view in views)
    until_ms = max(view.ended_ms - view.zero_ms for view in views)
    whole = Scale(0.0, from_ms, max(until_ms, from_ms + 1))
    return [replace(whole, zero_ms=view.zero_ms) for view in views]
