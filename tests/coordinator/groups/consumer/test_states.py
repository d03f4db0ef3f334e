"""The table of a member's states against its documentation, and which states a group reports."""

from __future__ import annotations

import re

import pytest

from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.states import TRANSITIONS, ConsumerGroupState, ConsumerMemberState, Finding
from tests.support.groups.consumer import SETTINGS, World


def documented() -> dict[ConsumerMemberState, dict[Finding, ConsumerMemberState]]:
    found: dict[ConsumerMemberState, dict[Finding, ConsumerMemberState]] = {}
    for line in (ConsumerMemberState.__doc__ or "").splitlines()[1:]:
        if match := re.fullmatch(r"    (\w+)", line):
            state = ConsumerMemberState[match[1]]
            found[state] = {}
        elif match := re.fullmatch(r" +transition: (\w+) -> (\w+)", line):
            found[state][Finding[match[1]]] = ConsumerMemberState[match[2]]
    return found


def test_states_document_exactly_the_transitions_of_the_table() -> None:
    assert documented() == {state: dict(moves) for state, moves in TRANSITIONS.items()}


def test_states_each_document_what_they_do_with_heartbeats() -> None:
    assert (ConsumerMemberState.__doc__ or "").count("action: ") == len(ConsumerMemberState)


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
