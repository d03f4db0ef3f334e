"""The table of the server design's states against its documentation."""

from __future__ import annotations

import re

import pytest

from coordinator.groups.classic.states import GroupState
from coordinator.groups.effects import Moment, Turn
from coordinator.groups.limits import Limits
from coordinator.groups.server.group import ServerGroup
from coordinator.groups.server.states import TRANSITIONS, ServerGroupState, ServerGroupTrigger


def documented() -> dict[ServerGroupState, dict[ServerGroupTrigger, ServerGroupState]]:
    """The transitions in the docstring of ServerGroupState."""
    found: dict[ServerGroupState, dict[ServerGroupTrigger, ServerGroupState]] = {}
    for line in (ServerGroupState.__doc__ or "").splitlines()[1:]:
        if match := re.fullmatch(r"    (\w+)", line):
            state = ServerGroupState(match[1])
            found[state] = {}
        elif match := re.fullmatch(r" +transition: (\w+) -> (\w+)", line):
            found[state][ServerGroupTrigger[match[1]]] = ServerGroupState(match[2])
    return found


def test_states_document_exactly_the_transitions_of_the_table() -> None:
    assert documented() == {state: dict(moves) for state, moves in TRANSITIONS.items()}
    assert (ServerGroupState.__doc__ or "").count("action:") == len(ServerGroupState)


def test_states_have_the_names_of_kafkas_and_every_trigger_is_used() -> None:
    assert {state.value for state in ServerGroupState} == {state.value for state in GroupState}
    assert {trigger for moves in TRANSITIONS.values() for trigger in moves} == set(ServerGroupTrigger)


ILLEGAL = [
    (state, trigger)
    for state in ServerGroupState
    for trigger in ServerGroupTrigger
    if trigger not in TRANSITIONS[state]
]


@pytest.mark.parametrize(("state", "trigger"), ILLEGAL, ids=[f"{s.name}-{t.name}" for s, t in ILLEGAL])
def test_illegal_move_is_refused_and_nothing_happens(state: ServerGroupState, trigger: ServerGroupTrigger) -> None:
    group = ServerGroup("g", state=state)
    turn = Turn(Moment(0, 0), Limits())
    with pytest.raises(AssertionError, match="cannot be moved"):
        group.move(trigger, turn)
    assert group == ServerGroup("g", state=state)
    assert not turn.effects().events
