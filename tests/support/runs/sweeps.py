"""Results of a sweep's runs, written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from comparison.results.metrics import CHANGE_METRICS
from comparison.sweep.data import sweep_data
from comparison.sweep.grid import Grid, axes_from
from comparison.sweep.plan import SweepPlan, planned_sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from comparison.results.sweep import SweepData
    from comparison.sweep.plan import SweepRun


def plan_of(*axes: str, metrics: Sequence[str] = (), **counts: int) -> SweepPlan:
    return planned_sweep(Grid(axes=axes_from(axes), metrics=tuple(metrics)).overridden({}, **counts))


def result_of(
    metrics: Mapping[str, float | None] | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
    **others: Any,
) -> dict[str, Any]:
    """The part of a run in result.json that a sweep reads."""
    return {
        "outcome": "complete",
        "verdict": "as expected",
        "failures": [],
        "metrics": dict(metrics or {}),
        "changes": list(changes),
        **others,
    }


def change_of(name: str, round_: int = 1, members: int | None = None, **figures: float) -> dict[str, Any]:
    nothing = dict.fromkeys(CHANGE_METRICS)
    return {"change": name, "round": round_, "members": members, **nothing, "requests": {}, **figures}


def data_of(
    plan: SweepPlan,
    result: Callable[[SweepRun], dict[str, Any] | None],
    failures: Sequence[tuple[SweepRun, str]] = (),
) -> SweepData:
    """The data set of a plan whose runs have these results (None: the run is missing)."""
    results = {run.folder: each for run in plan.runs if (each := result(run)) is not None}
    return sweep_data(plan, results, failures, name="s", command=["rebalance-lab", "sweep"])


def mapping_of(data: SweepData) -> dict[str, Any]:
    """The data set as in sweep.json."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data))
    return found
