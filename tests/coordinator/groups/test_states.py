"""The tables of states against their documentation, and that of classic groups against Kafka's legal predecessors."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coordinator.groups.classic import states as classic
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.states import REBALANCEABLE, GroupState, GroupTrigger
from coordinator.groups.consumer import states as consumer
from coordinator.groups.consumer.states import ConsumerMemberState, Finding
from coordinator.groups.effects import Moment, Turn
from coordinator.groups.limits import Limits
from coordinator.groups.server import states as server
from coordinator.groups.server.group import ServerGroup
from coordinator.groups.server.states import ServerGroupState, ServerGroupTrigger

#: (states, what leads from one to another, their table).
TABLES: tuple[tuple[Any, Any, Any], ...] = (
    (GroupState, GroupTrigger, classic.TRANSITIONS),
    (ServerGroupState, ServerGroupTrigger, server.TRANSITIONS),
    (ConsumerMemberState, Finding, consumer.TRANSITIONS),
)
#: ClassicGroupState.validPreviousStates of Kafka 4.1.
PREDECESSORS = {
    GroupState.EMPTY: {GroupState.PREPARING},
    GroupState.PREPARING: {GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY},
    GroupState.COMPLETING: {GroupState.PREPARING},
    GroupState.STABLE: {GroupState.COMPLETING},
    GroupState.DEAD: {GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE},
}


def documented(states: Any, triggers: Any) -> dict[Any, dict[Any, Any]]:
    """The transitions in the docstring of the states, which are named there as groups and members report them."""
    named = {name: state for state in states for name in (state.name, state.value)}
    found: dict[Any, dict[Any, Any]] = {}
    for line in (states.__doc__ or "").splitlines()[1:]:
        if match := re.fullmatch(r"    (\w+)", line):
            state = named[match[1]]
            found[state] = {}
        elif match := re.fullmatch(r" +transition: (\w+) -> (\w+)", line):
            found[state][triggers[match[1]]] = named[match[2]]
    return found


@pytest.mark.parametrize(("states", "triggers", "transitions"), TABLES)
def test_states_document_exactly_the_transitions_of_their_table_and_what_they_do(
    states: Any, triggers: Any, transitions: Any
) -> None:
    assert documented(states, triggers) == {state: dict(moves) for state, moves in transitions.items()}
    assert (states.__doc__ or "").count("action: ") == len(states)


@pytest.mark.parametrize(("states", "triggers", "transitions"), TABLES[:2])
def test_every_trigger_is_used(states: Any, triggers: Any, transitions: Any) -> None:
    assert {trigger for moves in transitions.values() for trigger in moves} == set(triggers)


def test_states_are_entered_only_from_kafkas_legal_predecessors() -> None:
    entered = {
        target: {state for state, moves in classic.TRANSITIONS.items() if target in moves.values()}
        for target in GroupState
    }
    assert entered == PREDECESSORS


def test_states_from_which_a_rebalance_starts_are_those_that_lead_to_preparing() -> None:
    leading = {state for state, moves in classic.TRANSITIONS.items() if GroupState.PREPARING in moves.values()}
    assert leading == REBALANCEABLE


def test_states_of_the_server_design_have_the_names_of_kafkas() -> None:
    assert {state.value for state in ServerGroupState} == {state.value for state in GroupState}


ILLEGAL = [
    (kind, state, trigger)
    for kind, (states, triggers, transitions) in zip((Group, ServerGroup), TABLES, strict=False)
    for state in states
    for trigger in triggers
    if trigger not in transitions[state]
]


@pytest.mark.parametrize(
    ("kind", "state", "trigger"), ILLEGAL, ids=[f"{k.__name__}-{s.name}-{t.name}" for k, s, t in ILLEGAL]
)
def test_illegal_move_is_refused_and_nothing_happens(kind: Any, state: Any, trigger: Any) -> None:
    group = kind("g", state=state)
    turn = Turn(Moment(0, 0), Limits())
    with pytest.raises(AssertionError, match="cannot be moved"):
        group.move(trigger, turn)
    assert group == kind("g", state=state)
    assert not turn.effects().events
