"""How what one more member costs grows with the group: exact counts by size, the model's, and the fitted exponent.

Only changes that a run repeats at several sizes grow: the joins of `herd`. Operations are those that the models count:
members' ZooKeeper reads and writes without commits, their JoinGroup and SyncGroup requests, and in `server` what the
coordinator reads under its watch.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.pipeline.figures.repeats import groups_of_repeats
from comparison.results.keys import COMPLETE
from comparison.results.result import Growth, GrowthPoint, Spread
from comparison.statistics import fitted_power, why_unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.results.run import Change, Run

OPERATIONS, NOTIFICATIONS = "operations", "notifications"
#: What counts as an operation, by the names of exact counts.
_COUNTED = ("reads", "writes", "JoinGroup", "SyncGroup", "coordinator reads")

#: A count of one change, and the model's; None where there is none.
_Pair = tuple[float | None, float | None]


def growths(runs: Sequence[Run]) -> list[Growth]:
    """Each figure of each change that the runs of a scenario and design repeat at several sizes."""
    found: list[Growth] = []
    for places in groups_of_repeats(runs):
        complete = [place for place in places if runs[place].outcome == COMPLETE]
        sizes: defaultdict[str, defaultdict[int, list[Change]]] = defaultdict(lambda: defaultdict(list))
        for change in (change for place in complete for change in runs[place].changes):
            if change.members is not None and change.counted:
                sizes[change.change][change.members].append(change)
        for name, by_size in sizes.items():
            if len(by_size) > 1:
                first = runs[complete[0]]
                found += _of_change(first.scenario, first.design, complete, name, by_size)
    return found


def _of_change(
    scenario: str, design: str, places: list[int], name: str, by_size: dict[int, list[Change]]
) -> Iterator[Growth]:
    for figure, of in ((OPERATIONS, _operations), (NOTIFICATIONS, _notifications)):
        pairs = {size: [of(change) for change in by_size[size]] for size in sorted(by_size)}
        points = [point for size, each in pairs.items() if (point := _point(size, each)) is not None]
        figures = [
            (float(size), measured) for size, each in pairs.items() for measured, _ in each if measured is not None
        ]
        reason = why_unfit(figures)
        fit = None if reason else fitted_power(figures)
        yield Growth(
            scenario=scenario,
            design=design,
            runs=places,
            change=name,
            figure=figure,
            points=points,
            n=len(figures),
            exponent=round(fit.exponent, 4) if fit else None,
            low=round(fit.low, 4) if fit and fit.low is not None else None,
            high=round(fit.high, 4) if fit and fit.high is not None else None,
            reason=reason,
        )


def _operations(change: Change) -> _Pair:
    counts = [count for count in change.counted if count.what in _COUNTED]
    return _sum([count.measured for count in counts]), _sum([count.model for count in counts])


def _notifications(change: Change) -> _Pair:
    models = [count.model for count in change.counted if count.what == NOTIFICATIONS]
    return change.notifications, _sum(models)


def _sum(counts: Sequence[int | None]) -> float | None:
    """The sum; None if one of them is not known, or there is none."""
    known = [count for count in counts if count is not None]
    return float(sum(known)) if known and len(known) == len(counts) else None


def _point(members: int, pairs: Sequence[_Pair]) -> GrowthPoint | None:
    measured = Spread.of(measured for measured, _ in pairs)
    if measured is None:
        return None
    model = Spread.of(model for _, model in pairs)
    return GrowthPoint(
        members=members,
        n=measured.n,
        median=measured.median,
        low=measured.low,
        high=measured.high,
        model=None if model is None else model.median,
    )
