"""The table of states against its documentation and against Kafka's rule of legal predecessors."""

from __future__ import annotations

import re

import pytest

from coordinator.groups.classic.group import Group
from coordinator.groups.classic.states import REBALANCEABLE, TRANSITIONS, GroupState, GroupTrigger
from coordinator.groups.effects import Moment, Turn
from coordinator.groups.limits import Limits

#: ClassicGroupState.validPreviousStates of Kafka 4.1.
PREDECESSORS = {
    GroupState.EMPTY: {GroupState.PREPARING},
    GroupState.PREPARING: {GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY},
    GroupState.COMPLETING: {GroupState.PREPARING},
    GroupState.STABLE: {GroupState.COMPLETING},
    GroupState.DEAD: {GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE},
}


def documented() -> dict[GroupState, dict[GroupTrigger, GroupState]]:
    """The transitions in the docstring of GroupState."""
    found: dict[GroupState, dict[GroupTrigger, GroupState]] = {}
    for line in (GroupState.__doc__ or "").splitlines()[1:]:
        if match := re.fullmatch(r"    (\w+)", line):
            state = GroupState(match[1])
            found[state] = {}
        elif match := re.fullmatch(r" +transition: (\w+) -> (\w+)", line):
            found[state][GroupTrigger[match[1]]] = GroupState(match[2])
    return found


def test_states_document_exactly_the_transitions_of_the_table():
    assert documented() == {state: dict(moves) for state, moves in TRANSITIONS.items()}


def test_states_each_document_what_they_do_with_requests():
    doc = GroupState.__doc__ or ""
    assert doc.count("action:") == len(GroupState)


def test_states_are_entered_only_from_kafkas_legal_predecessors():
    entered = {
        target: {state for state, moves in TRANSITIONS.items() if target in moves.values()} for target in GroupState
    }
    assert entered == PREDECESSORS


def test_states_from_which_a_rebalance_starts_are_those_that_lead_to_preparing():
    assert {state for state, moves in TRANSITIONS.items() if GroupState.PREPARING in moves.values()} == REBALANCEABLE


def test_every_trigger_is_used():
    assert {trigger for moves in TRANSITIONS.values() for trigger in moves} == set(GroupTrigger)


ILLEGAL = [(state, trigger) for state in GroupState for trigger in GroupTrigger if trigger not in TRANSITIONS[state]]


@pytest.mark.parametrize(("state", "trigger"), ILLEGAL, ids=[f"{s.name}-{t.name}" for s, t in ILLEGAL])
def test_illegal_move_is_refused_and_nothing_happens(state: GroupState, trigger: GroupTrigger):
    group = Group("g", state=state)
    turn = Turn(Moment(0, 0), Limits())
    with pytest.raises(AssertionError, match="cannot be moved"):
        group.move(trigger, turn)
    assert group == Group("g", state=state)
    assert not turn.effects().events
