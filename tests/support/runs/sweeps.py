"""Results of a sweep's runs, written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from comparison.results.metrics import CHANGE_METRICS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Run
from comparison.results.sweep import CountedRun, SweepData
from comparison.sweep.data import sweep_data
from comparison.sweep.grid import Grid, axes_from
from comparison.sweep.plan import SweepPlan, SweepRun, planned_sweep
from tests.support.runs import results


def plan_of(*axes: str, metrics: Sequence[str] = (), simulated: bool = False, **counts: int) -> SweepPlan:
    grid = Grid(axes=axes_from(axes, simulated=simulated), metrics=tuple(metrics)).overridden({}, **counts)
    return planned_sweep(grid, simulated=simulated)


def result_of(metrics: Mapping[str, float | None] | None = None, changes: Sequence[Change] = (), **others: Any) -> Run:
    """A complete run that measured only this."""
    given = {"outcome": "complete", "verdict": VerdictOutcome.EXPECTED, "failures": [], **others}
    return results.run(metrics=dict(metrics or {}), changes=list(changes), **given)


def change_of(name: str, round_: int = 1, members: int | None = None, **figures: Any) -> Change:
    """A change of which only these figures are known."""
    nothing = dict.fromkeys(name for name in CHANGE_METRICS if name in Change.__struct_fields__)
    return results.change(name, round=round_, members=members, **{**nothing, **figures})


def data_of(
    plan: SweepPlan,
    result: Callable[[SweepRun], Run | CountedRun | None],
    failures: Sequence[tuple[SweepRun, str]] = (),
) -> SweepData:
    """The data set of a plan whose runs have these results (None: the run is missing)."""
    results = {run.folder: each for run in plan.runs if (each := result(run)) is not None}
    return sweep_data(plan, results, failures, name="s", command=["rebalance-lab", "sweep"])
