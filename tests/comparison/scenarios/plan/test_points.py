"""The named points of a rebalance: what the trace knows, each once in a design."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.points import POINTS, point_named
from kernel.designs import DESIGN_NAMES, EAGER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.trace.events import KINDS, PHASES, Type


def test_every_design_has_points_and_their_events_are_in_the_schema() -> None:
    assert tuple(POINTS) == DESIGN_NAMES
    for points in POINTS.values():
        assert len({point.name for point in points}) == len(points)
        for point in points:
            assert KINDS[point.kind].fields[point.field] is Type.TEXT
            assert point.kind != "phase_entered" or point.value in PHASES


def test_every_phase_but_the_wait_after_a_failed_attempt_is_a_point_in_zookeeper() -> None:
    phases = [point.value for point in POINTS[ZOOKEEPER] if point.kind == "phase_entered"]
    assert phases == [phase for phase in PHASES if phase != "backoff"]


def test_unknown_point_is_refused_with_those_of_the_design() -> None:
    assert point_named(EAGER, "decide").value == "decide"
    with pytest.raises(
        ConfigurationError,
        match=r"a rebalance in eager has no point 'release'. Did you mean 'resume'\? Use one of",
    ):
        point_named(EAGER, "release")
