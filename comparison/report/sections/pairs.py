"""Which two runs of a scenario stand opposite each other before the reader chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.results.promises import PromiseOutcome, promises_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Run

RULE = (
    "At first: the design that broke most promises and, of equals, stood longest still; and the one that did so least."
)


def worst_and_best(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """By the rule, of equals the first, and of two both in their order; None of fewer than two."""
    if len(runs) < 2:
        return None
    if len(runs) == 2:
        return runs[0], runs[1]
    worst = max(runs, key=_badness)
    return worst, min((run for run in runs if run is not worst), key=_badness)


def _badness(run: Run) -> tuple[int, float]:
    broken = sum(each.outcome == PromiseOutcome.BROKEN for each in promises_of(run))
    return broken, run.metrics.get("standstill_s") or 0.0
