"""How a figure of some repeats differs from the same figure of others.

A figure differs where the ranges of its repeats have nothing in common. One that follows from the changes alone
(`Compares.ALWAYS`) has no range to be known. The others are a draw in each run, by the phase of the timers, races and
the machine: with fewer than `REPEATS_MIN` repeats on either side a difference may be chance. Simulated runs repeat to
the byte: if both sides have the same seeds, it comes from what was changed, and holds for these seeds.
"""

from __future__ import annotations

from enum import StrEnum
from math import comb
from typing import TYPE_CHECKING

import msgspec

from comparison.results.meanings import Compares
from comparison.results.metrics import METRICS, REPEATS_MIN, label_of
from comparison.results.result import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Run


class Differs(StrEnum):
    """Whether a figure differs."""

    NO = "no"  #: it is the same, or the ranges overlap
    YES = "yes"
    FOR_SEED = "for_seed"  #: it is a draw of too few, but of the same seeds in virtual time
    MAYBE = "maybe"  #: it is a draw, and there are too few of them
    UNKNOWN = "unknown"  #: it was measured on one side only


class FigureDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A figure before and after; None where no repeat measured it."""

    figure: str  #: its name in `comparison.results.metrics`
    label: str  #: what reports call it; '' if they do not show it
    before: Spread | None
    after: Spread | None
    differs: Differs
    change: float | None  #: of the medians, as a share of the one before; None: from 0, or not measured

    @property
    def rises(self) -> bool:
        return self.before is not None and self.after is not None and self.after.median > self.before.median


def figure_differences(before: Sequence[Run], after: Sequence[Run]) -> list[FigureDifference]:
    """Every figure that either side has, in display order."""
    found = []
    is_exact = have_same_seeds(before, after)
    for name in METRICS:
        first, second = (Spread.of(run.metrics.get(name) for run in runs) for runs in (before, after))
        if first is not None or second is not None:
            found.append(difference(name, first, second, is_exact=is_exact))
    return found


def have_same_seeds(before: Sequence[Run], after: Sequence[Run]) -> bool:
    """Whether only what was changed can make these runs differ: they are simulated, with the same seeds."""
    is_simulated = all(run.parameters.get("simulated") for run in (*before, *after))
    return is_simulated and sorted(run.seed for run in before) == sorted(run.seed for run in after)


def difference(name: str, before: Spread | None, after: Spread | None, *, is_exact: bool = False) -> FigureDifference:
    """A figure's difference; `is_exact` if the runs `have_same_seeds`."""
    differs = _differs(name, before, after)
    return FigureDifference(
        figure=name,
        label=label_of(name) if METRICS[name].label else "",
        before=before,
        after=after,
        differs=Differs.FOR_SEED if is_exact and differs is Differs.MAYBE else differs,
        change=_change(before, after),
    )


def _differs(name: str, before: Spread | None, after: Spread | None) -> Differs:
    if before is None or after is None:
        return Differs.UNKNOWN
    if before.low <= after.high and after.low <= before.high:
        return Differs.NO
    is_draw = METRICS[name].compares is not Compares.ALWAYS
    return Differs.MAYBE if is_draw and min(before.n, after.n) < REPEATS_MIN else Differs.YES


def _change(before: Spread | None, after: Spread | None) -> float | None:
    if before is None or after is None:
        return None
    if before.median == after.median:
        return 0.0
    return round(after.median / before.median - 1, 6) if before.median else None


def by_chance(before: int, after: int) -> int:
    """Of how many figures that are alike one has ranges without anything in common, by chance, with so many repeats.

    Of all orders in which the values can come, two have all of one side before all of the other.
    """
    return comb(before + after, before) // 2
