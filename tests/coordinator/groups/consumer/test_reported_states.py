"""Which states a group reports."""

from __future__ import annotations

import pytest

from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.states import ConsumerGroupState
from tests.support.groups.consumer import SETTINGS, World


@pytest.mark.kafka("testConsumerGroupStates")
def test_group_reports_assigning_only_between_a_leave_and_the_next_heartbeat() -> None:
    world = World({"foo": 6})
    states = []

    def see(_: object) -> None:
        states.append(world.groups.describe("g").state)

    see(None)
    see(world.join("a", "foo"))
    see(world.join("b", "foo"))
    see(world.leave("b"))
    see(world.beat("a"))
    see(world.leave("a"))
    wanted = ("DEAD", "STABLE", "RECONCILING", "ASSIGNING", "STABLE", "EMPTY")
    assert states == [ConsumerGroupState[name] for name in wanted]


def test_unknown_group_is_dead() -> None:
    world = World({})
    assert ConsumerGroups(lambda _: SETTINGS, world.topics).describe("g").state is ConsumerGroupState.DEAD
