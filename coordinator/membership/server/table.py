"""The `server` design's membership, member's side, as a table; `step` is the only way to move a member.

Theory. A member puts its id into ZooKeeper, watches nothing, and asks the group's coordinator for commands, one
question at a time (a long poll). Told to stop, it stops delivering, commits, tells the application, and only then
asks on, which acknowledges the stop; told to start, it begins at the offsets that it was told. All of this happens
in the background: polls only hand out records and make the commits that are due.

Whose word ends a membership, from the surest to the least sure:

1. The coordinator's: the generation is over, or we are not in it. What was owned is *lost*.
2. ZooKeeper's: the session is over. What was owned is lost, and the id is written anew in the next session.
3. Our own clock's: no ZooKeeper server is reached, and the session may be over by now. What was owned is lost, and
   nothing is asked for until a server says how the session stands.

While only the coordinator is unreachable the session vouches for the member: it goes on delivering what it owns, its
commits wait or fail, and whoever coordinates next finds its id and its generation as they were. A member that the
rebalance timeout has dropped meanwhile learns of it when its commit is refused, or when it is told to stop.

Three rules hold everywhere and are therefore not in the table:

1. An event that answers a request of an earlier life (`Answer.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An identity (id and generation) that was refused or whose session is over is never used again.

Source: seed 003 §2.2 (only the coordinator watches, and it assigns) and the coordinator of 2012 to 2015 that Kafka
never released; what is on the wire is in docs/server-protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.membership.events import (
    Answer,
    Closed,
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Event,
    GenerationOutdated,
    Polled,
    Refused,
    Ticked,
)
from coordinator.membership.server import actions
from coordinator.membership.server.events import (
    NothingTold,
    Registered,
    Resumed,
    SessionBegun,
    SessionEnded,
    SessionInterrupted,
    SessionRestored,
    StartTold,
    Stopped,
    StopTold,
    SubscriptionAnnounced,
)
from coordinator.membership.server.member import Member, State
from coordinator.membership.server.moves import Step

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[Member, Any, int], Step]


class Cell(NamedTuple):
    """What a state does about an event, and where that may lead; `step` checks the latter."""

    action: Action
    leads_to: frozenset[State]


def _to(action: Action, *states: State) -> Cell:
    return Cell(action, frozenset(states))


(UNREGISTERED, REGISTERING, WAITING, STARTING, STARTED) = (
    State.UNREGISTERED,
    State.REGISTERING,
    State.WAITING,
    State.STARTING,
    State.STARTED,
)
(STOPPING, CLOSING, LEFT, FAILED) = (State.STOPPING, State.CLOSING, State.LEFT, State.FAILED)


def _outside(state: State) -> Mapping[type[Event], Cell]:
    """What UNREGISTERED and REGISTERING do alike: the coordinator does not concern them."""
    return {
        SessionBegun: _to(actions.session_begun, REGISTERING),
        SessionInterrupted: _to(actions.session_interrupted, state),
        SessionEnded: _to(actions.session_ended, UNREGISTERED),
        CoordinatorFound: _to(actions.coordinator_found_early, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown_early, state),
        CoordinatorMoved: _to(actions.coordinator_moved_early, state),
        Closed: _to(actions.close, LEFT),
    }


def _inside(state: State) -> Mapping[type[Event], Cell]:
    """What WAITING, STARTING and STARTED do alike: they are registered, and ask or will ask for commands."""
    return {
        SessionBegun: _to(actions.session_begun, REGISTERING),
        SessionInterrupted: _to(actions.session_interrupted, state),
        SessionRestored: _to(actions.session_restored, state),
        SessionEnded: _to(actions.session_ended, UNREGISTERED),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        GenerationOutdated: _to(actions.outdated, WAITING),
        Refused: _to(actions.refused, FAILED),
        Ticked: _to(actions.ticked, state, UNREGISTERED),
    }


def _giving_up(state: State) -> Mapping[type[Event], Cell]:
    """What STOPPING and CLOSING do alike: callbacks run, so that an identity goes without the state."""
    return {
        SessionBegun: _to(actions.session_begun_while_giving_up, state),
        SessionInterrupted: _to(actions.session_interrupted, state),
        SessionRestored: _to(actions.session_restored, state),
        SessionEnded: _to(actions.session_ended_while_giving_up, state),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        GenerationOutdated: _to(actions.outdated_while_giving_up, state),
        Ticked: _to(actions.ticked_while_giving_up, state),
    }


TABLE: Mapping[State, Mapping[type[Event], Cell]] = MappingProxyType(
    {
        UNREGISTERED: {
            **_outside(UNREGISTERED),
            SessionRestored: _to(actions.session_restored_late, REGISTERING, UNREGISTERED),
        },
        REGISTERING: {
            **_outside(REGISTERING),
            SessionRestored: _to(actions.session_restored, REGISTERING),
            Registered: _to(actions.registered, WAITING),
        },
        WAITING: {
            **_inside(WAITING),
            NothingTold: _to(actions.nothing_told, WAITING),
            StopTold: _to(actions.stop_of_nothing, WAITING),
            StartTold: _to(actions.start, STARTING, WAITING),
            SubscriptionAnnounced: _to(actions.subscription_announced, WAITING),
            Closed: _to(actions.close, LEFT),
        },
        STARTING: {
            **_inside(STARTING),
            Resumed: _to(actions.resumed, STARTED),
            Closed: _to(actions.close, CLOSING, LEFT),
        },
        STARTED: {
            **_inside(STARTED),
            NothingTold: _to(actions.nothing_told, STARTED),
            StopTold: _to(actions.stop, STOPPING, WAITING, STARTED),
            StartTold: _to(actions.start_over, STARTING, STARTED, WAITING),
            SubscriptionAnnounced: _to(actions.subscription_announced, STARTED),
            Polled: _to(actions.poll, STARTED),
            Closed: _to(actions.close, CLOSING, LEFT),
        },
        STOPPING: {
            **_giving_up(STOPPING),
            Stopped: _to(actions.stopped, WAITING, REGISTERING, UNREGISTERED),
            Closed: _to(actions.close_stopping, CLOSING),
        },
        CLOSING: {
            **_giving_up(CLOSING),
            Stopped: _to(actions.leave, LEFT),
        },
        LEFT: {},
        FAILED: {
            Closed: _to(actions.close, LEFT),
        },
    }
)


def step(member: Member, event: Event, now_ns: int) -> Step:
    """What `member` becomes by `event` at `now_ns`, and what is to be done, in order."""
    if isinstance(event, Answer) and event.stamp != member.stamp:
        return member, ()
    cell = TABLE[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
