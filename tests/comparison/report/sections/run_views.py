"""A run for tests of what is drawn: nothing happened in it, but what a test says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from comparison.report.view.model import RunView

_EMPTY = RunView(
    scenario="crash",
    design="eager",
    seed=1,
    authority="the coordinator",
    members=("m1",),
    places={"m1": "m1"},
    full_names={},
    partitions=(),
    phases=(),
    rounds=(),
    faults=(),
    changes=(),
    began_ms=0.0,
    ended_ms=10_000.0,
    left_out={},
)


def empty_view(**given: Any) -> RunView:
    return replace(_EMPTY, **given)
