"""The member of the `server` design as a table; `step` is the only way to change a member.

Theory. A member registers its id in ZooKeeper, sets no watch, and asks the group's coordinator for commands with one
long poll at a time (AwaitCommand). On a stop it stops delivery, commits, notifies the application, and only then sends
the next AwaitCommand, which acknowledges the stop. On a start it delivers from the offsets in the command. All of this
happens in the background: polls only return records and make the commits that are due.

Three authorities can end a membership, from the most to the least certain:

1. The coordinator: the generation is over, or we are not in it. What was owned is *lost*.
2. ZooKeeper: the session expired. What was owned is lost, and the member registers again in the next session.
3. Our own clock: ZooKeeper is unreachable, and the session may have expired. What was owned is lost, and the member
   sends nothing until it knows whether the session survived.

While only the coordinator is unreachable, the session vouches for the member: it keeps delivering what it owns, its
commits wait or fail, and the next coordinator finds its id and its generation unchanged. A member that the rebalance
timeout dropped meanwhile finds out when a commit is refused, or when it receives a stop.

Three rules hold everywhere and are therefore not in the table:

1. A response to a request under an earlier identity (`Response.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An identity (id and generation) is never reused after it was refused or its session expired.

Source: article 003 §2.2 in docs/sources.md (only the coordinator watches, and it assigns) and the coordinator of 2012
to 2015 that Kafka never released; docs/server-protocol.md has the wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Event,
    GenerationOutdated,
    Polled,
    Refused,
    Response,
    Resumed,
    Stopped,
    Ticked,
)
from coordinator.membership.server import actions
from coordinator.membership.server.events import (
    NoCommand,
    Registered,
    SessionBegun,
    SessionEnded,
    SessionInterrupted,
    SessionRestored,
    StartCommanded,
    StopCommanded,
    SubscriptionAnnounced,
)
from coordinator.membership.server.member import ServerMember, ServerMemberState
from coordinator.membership.server.moves import Step

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[ServerMember, Any, int], Step]


class Cell(NamedTuple):
    """What a state does with an event, and the states it may lead to, which `step` checks."""

    action: Action
    leads_to: frozenset[ServerMemberState]


def _to(action: Action, *states: ServerMemberState) -> Cell:
    return Cell(action, frozenset(states))


(UNREGISTERED, REGISTERING, WAITING, STARTING, STARTED) = (
    ServerMemberState.UNREGISTERED,
    ServerMemberState.REGISTERING,
    ServerMemberState.WAITING,
    ServerMemberState.STARTING,
    ServerMemberState.STARTED,
)
(STOPPING, CLOSING, LEFT, FAILED) = (
    ServerMemberState.STOPPING,
    ServerMemberState.CLOSING,
    ServerMemberState.LEFT,
    ServerMemberState.FAILED,
)


def _outside(state: ServerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of UNREGISTERED and REGISTERING, which send nothing to the coordinator."""
    return {
        SessionBegun: _to(actions.session_begun, REGISTERING),
        SessionInterrupted: _to(actions.session_interrupted, state),
        SessionEnded: _to(actions.session_ended, UNREGISTERED),
        CoordinatorFound: _to(actions.coordinator_found_early, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown_early, state),
        CoordinatorMoved: _to(actions.coordinator_moved_early, state),
        Closed: _to(actions.close, LEFT),
    }


def _inside(state: ServerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of WAITING, STARTING and STARTED, which are registered and await commands, now or next."""
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


def _revoking(state: ServerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of STOPPING and CLOSING: a callback is running, so losing the identity does not change the state."""
    return {
        SessionBegun: _to(actions.session_begun_while_revoking, state),
        SessionInterrupted: _to(actions.session_interrupted, state),
        SessionRestored: _to(actions.session_restored, state),
        SessionEnded: _to(actions.session_ended_while_revoking, state),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        GenerationOutdated: _to(actions.outdated_while_revoking, state),
        Ticked: _to(actions.ticked_while_revoking, state),
    }


TABLE: Mapping[ServerMemberState, Mapping[type[Event], Cell]] = MappingProxyType(
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
            NoCommand: _to(actions.no_command, WAITING),
            StopCommanded: _to(actions.stop_without_generation, WAITING),
            StartCommanded: _to(actions.start, STARTING, WAITING),
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
            NoCommand: _to(actions.no_command, STARTED),
            StopCommanded: _to(actions.stop, STOPPING, WAITING, STARTED),
            StartCommanded: _to(actions.start_over, STARTING, STARTED, WAITING),
            SubscriptionAnnounced: _to(actions.subscription_announced, STARTED),
            Polled: _to(actions.poll, STARTED),
            Closed: _to(actions.close, CLOSING, LEFT),
        },
        STOPPING: {
            **_revoking(STOPPING),
            Stopped: _to(actions.stopped, WAITING, REGISTERING, UNREGISTERED),
            Closed: _to(actions.close_stopping, CLOSING),
        },
        CLOSING: {
            **_revoking(CLOSING),
            Stopped: _to(actions.leave, LEFT),
        },
        LEFT: {},
        FAILED: {
            Closed: _to(actions.close, LEFT),
        },
    }
)


def step(member: ServerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    if isinstance(event, Response) and event.stamp != member.stamp:
        return member, ()
    cell = TABLE[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
