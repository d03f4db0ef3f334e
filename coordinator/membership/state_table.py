"""A member's state machine as a table {state: {event: cell}}, for every kind of member.

Two rules hold in all of them: a response to a request under an earlier identity changes nothing, and neither does an
event that a state's row does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from coordinator.membership.effects import Effect
from coordinator.membership.events import Event, Response


class MemberOfTable(Protocol):
    """What the table needs of a member value."""

    @property
    def state(self) -> Any: ...

    @property
    def stamp(self) -> int: ...


M = TypeVar("M", bound=MemberOfTable)
S = TypeVar("S", bound=Enum)

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[M, Any, int], tuple[M, tuple[Effect, ...]]]


@dataclass(frozen=True, slots=True)
class Cell(Generic[S, M]):
    """What a state does with an event, and the states it may lead to, which `stepped` checks.

    With several of them, `when` says for each in a few words when it is the next one.
    """

    action: Action[M]
    leads_to: frozenset[S]
    when: Mapping[S, str]


Row = Mapping[type[Event], Cell[S, M]]
Table = Mapping[S, Row[S, M]]


def to(action: Action[M], *states: S, when: Mapping[S, str] = MappingProxyType({})) -> Cell[S, M]:
    """Return a cell that leads to one state, or to one of several, each with its condition: `when`."""
    return Cell(action, frozenset((*states, *when)), when)


def stepped(table: Table[S, M], member: M, event: Event, now_ns: int) -> tuple[M, tuple[Effect, ...]]:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    if isinstance(event, Response) and event.stamp != member.stamp:
        return member, ()
    cell = table[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
