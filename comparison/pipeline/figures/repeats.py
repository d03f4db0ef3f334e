"""Combine repeats of a run: medians and ranges of its figures, and the worst verdict.

Runs of a scenario and design with different parameters are no repeats of each other.

A figure that only some of the repeats have is computed from those; `n` says how many. The median of one run says
nothing about the spread, so runs without repeats are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from comparison.results.metrics import CHANGE_METRICS, METRICS
from comparison.results.outcomes import worst
from comparison.results.result import Repeated, RepeatedChange, Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.results.run import Bystander, Run

#: Figures of a change that have a spread.
_OF_A_CHANGE = [name for name, metric in CHANGE_METRICS.items() if metric.is_spread]


def repeated(runs: Sequence[Run]) -> list[Repeated]:
    """One entry for each scenario and design with several runs, in the order of the runs."""
    return [_together(runs, places) for places in groups_of_repeats(runs) if len(places) > 1]


def groups_of_repeats(runs: Sequence[Run]) -> list[list[int]]:
    """The places of the runs of each scenario and design, by their seeds, if nothing else differs between them."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault((run.scenario, run.design), []).append(place)
    return [
        sorted(places, key=lambda place: (runs[place].seed, runs[place].path))
        for places in groups.values()
        if _alike(runs[place] for place in places)
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
        metrics={name: Spread.of(run.metrics.get(name) for run in made) for name in METRICS},
        changes=_changes(made),
        bystanders=_bystanders(made),
    )


def _changes(made: Sequence[Run]) -> list[RepeatedChange]:
    by_name = [{(change.change, change.round): change for change in run.changes} for run in made]
    names = dict.fromkeys(name for changes in by_name for name in changes)
    return [
        RepeatedChange(
            change=change,
            round=round_,
            figures={
                figure: Spread.of(getattr(each[change, round_], figure) for each in by_name if (change, round_) in each)
                for figure in _OF_A_CHANGE
            },
        )
        for change, round_ in names
    ]


def _bystanders(made: Sequence[Run]) -> list[Bystander]:
    """The medians of the runs' percentiles, and the largest latency of all; how many there were adds up."""
    rows: dict[tuple[str, int, int | None, str, str], list[Bystander]] = {}
    for each in (each for run in made for each in run.bystanders):
        rows.setdefault((each.change, each.round, each.members, each.stage, each.op), []).append(each)
    return [
        msgspec.structs.replace(
            same[0],
            answered=sum(each.answered for each in same),
            failed=sum(each.failed for each in same),
            p50_ms=_median(each.p50_ms for each in same),
            p99_ms=_median(each.p99_ms for each in same),
            max_ms=max((each.max_ms for each in same if each.max_ms is not None), default=None),
        )
        for same in rows.values()
    ]


def _median(values: Iterable[float | None]) -> float | None:
    found = Spread.of(values)
    return None if found is None else found.median
