"""Several repeats in one table column per design: medians, their ranges, and the worst run's verdict.

A run without repeats is shown as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from comparison.results.outcomes import VerdictOutcome  # noqa: TC001 - msgspec reads the annotations
from comparison.results.result import Spread  # noqa: TC001 - msgspec reads the annotations
from comparison.results.run import Change, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.results.result import Repeated, Result, Scenario


class ChangeOfRepeats(Change, frozen=True, kw_only=True):
    """A change of the worst run, with medians in the place of its figures."""

    spreads: dict[str, Spread | None]


class RunOfRepeats(Run, frozen=True, kw_only=True):
    """The worst run, with medians in the place of its figures."""

    spreads: dict[str, Spread | None]
    seeds: list[int]
    outcomes: list[VerdictOutcome]  #: of all repeats


def columns_of(scenario: Scenario, result: Result) -> list[Run]:
    """The scenario's runs, one per design; of repeats, the worst run with the medians of all."""
    several = {(each.scenario, each.design): each for each in result.repeated}
    shown: dict[tuple[str, str], Run] = {}
    for run in (result.runs[number] for number in scenario.runs):
        key = (run.scenario, run.design)
        if key not in shown:
            shown[key] = _together(several[key], result) if key in several else run
    return list(shown.values())


def _together(repeated: Repeated, result: Result) -> Run:
    runs = [result.runs[place] for place in repeated.runs]
    worst = result.runs[repeated.worst]
    spreads = {(each.change, each.round): each.figures for each in repeated.changes}
    known = {
        **asdict(worst),
        "metrics": {name: spread.median if spread else None for name, spread in repeated.metrics.items()},
        "changes": [_changed(change, spreads[change.change, change.round]) for change in worst.changes],
        "bystanders": repeated.bystanders,
    }
    return RunOfRepeats(
        **known, spreads=repeated.metrics, seeds=[run.seed for run in runs], outcomes=[run.verdict for run in runs]
    )


def _changed(change: Change, figures: Mapping[str, Spread | None]) -> Change:
    medians = {name: spread.median for name, spread in figures.items() if spread is not None}
    return ChangeOfRepeats(**{**asdict(change), **medians}, spreads=dict(figures))


def seeds_of(run: Run) -> list[int]:
    return run.seeds if isinstance(run, RunOfRepeats) else [run.seed]


def repeat_summary(run: Run) -> str:
    """The repeats' verdicts, and which run's reasons are shown; '' without repeats."""
    if not isinstance(run, RunOfRepeats):
        return ""
    counts = ", ".join(f"{run.outcomes.count(each)} {each}" for each in dict.fromkeys(sorted(run.outcomes)))
    return f"{len(run.outcomes)} repeats: {counts}; shown below: seed {run.seed}"
