"""What is known of each design: its points are in the schema of traces, each once."""

from __future__ import annotations

from comparison.designs.table import PROFILES
from kernel.designs import DESIGN_NAMES, ZOOKEEPER
from kernel.trace.events import KINDS, PHASES, Type


def test_every_design_has_points_and_their_events_are_in_the_schema() -> None:
    assert tuple(PROFILES) == DESIGN_NAMES
    for profile in PROFILES.values():
        points = profile.points
        assert len({point.name for point in points}) == len(points)
        for point in points:
            assert KINDS[point.kind].fields[point.field] is Type.TEXT
            assert point.kind != "phase_entered" or point.value in PHASES


def test_every_phase_but_the_wait_after_a_failed_attempt_is_a_point_in_zookeeper() -> None:
    phases = [point.value for point in PROFILES[ZOOKEEPER].points if point.kind == "phase_entered"]
    assert phases == [phase for phase in PHASES if phase != "backoff"]
