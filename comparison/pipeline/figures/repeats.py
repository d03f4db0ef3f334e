"""Combine repeats of a run: medians and ranges of its figures, and the worst verdict.

Runs of a scenario and design with different parameters are no repeats of each other.

A figure that only some of the repeats have is computed from those; `n` says how many. The median of one run says
nothing about the spread, so runs without repeats are left out.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from comparison.metrics import METRICS
from comparison.pipeline.result import Repeated, RepeatedChange, Run, Spread, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Figures of a change that have a spread, by their names in `Change`.
OF_A_CHANGE = ("converge_ms", "rounds", "stopped", "moved", "unowned_partition_s", "stalled_s")


def repeated(runs: Sequence[Run]) -> list[Repeated]:
    """One entry for each scenario and design with several runs, in the order of the runs."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault((run.scenario, run.design), []).append(place)
    groups = {name: places for name, places in groups.items() if _alike(runs[place] for place in places)}
    return [
        _together(runs, sorted(places, key=lambda place: (runs[place].seed, runs[place].path)))
        for places in groups.values()
        if len(places) > 1
    ]


def _alike(runs: Iterable[Run]) -> bool:
    """Whether the runs differ in their seeds only: those of a sweep do not, and have no common median."""
    first, *others = ({**run.parameters, "seed": None} for run in runs)
    return all(parameters == first for parameters in others)


def _together(runs: Sequence[Run], places: list[int]) -> Repeated:
    made = [runs[place] for place in places]
    verdict = worst(run.verdict for run in made)
    return Repeated(
        scenario=made[0].scenario,
        design=made[0].design,
        runs=places,
        verdict=verdict,
        worst=next(place for place in places if runs[place].verdict == verdict),
        metrics={name: spread(run.metrics.get(name) for run in made) for name in METRICS},
        changes=_changes(made),
    )


def _changes(made: Sequence[Run]) -> list[RepeatedChange]:
    by_name = [{(change.change, change.round): change for change in run.changes} for run in made]
    names = dict.fromkeys(name for changes in by_name for name in changes)
    return [
        RepeatedChange(
            change=change,
            round=round_,
            figures={
                figure: spread(getattr(each[change, round_], figure) for each in by_name if (change, round_) in each)
                for figure in OF_A_CHANGE
            },
        )
        for change, round_ in names
    ]


def spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(n=len(known), median=round(median(known), 3), low=min(known), high=max(known))
