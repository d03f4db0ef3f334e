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

from types import MappingProxyType
from typing import TYPE_CHECKING

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
from coordinator.membership.server.member import ServerMember
from coordinator.membership.server.member import ServerMemberState as S
from coordinator.membership.state_table import Row, Table, stepped, to

if TYPE_CHECKING:
    from coordinator.membership.server.moves import Step

MemberRow = Row[S, ServerMember]

_LEAVE = {S.CLOSING: "owns partitions", S.LEFT: "owns nothing"}


def _outside(state: S) -> MemberRow:
    """Cells of UNREGISTERED and REGISTERING, which send nothing to the coordinator."""
    return {
        SessionBegun: to(actions.session_begun, S.REGISTERING),
        SessionInterrupted: to(actions.session_interrupted, state),
        SessionEnded: to(actions.session_ended, S.UNREGISTERED),
        CoordinatorFound: to(actions.coordinator_found_early, state),
        CoordinatorUnknown: to(actions.coordinator_unknown_early, state),
        CoordinatorMoved: to(actions.coordinator_moved_early, state),
        Closed: to(actions.close, S.LEFT),
    }


def _inside(state: S) -> MemberRow:
    """Cells of WAITING, STARTING and STARTED, which are registered and await commands, now or next."""
    return {
        SessionBegun: to(actions.session_begun, S.REGISTERING),
        SessionInterrupted: to(actions.session_interrupted, state),
        SessionRestored: to(actions.session_restored, state),
        SessionEnded: to(actions.session_ended, S.UNREGISTERED),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        GenerationOutdated: to(actions.outdated, S.WAITING),
        Refused: to(actions.refused, S.FAILED),
        Ticked: to(
            actions.ticked,
            when={state: "session not expired", S.UNREGISTERED: "session may have expired"},
        ),
    }


def _revoking(state: S) -> MemberRow:
    """Cells of STOPPING and CLOSING: a callback is running, so losing the identity does not change the state."""
    return {
        SessionBegun: to(actions.session_begun_while_revoking, state),
        SessionInterrupted: to(actions.session_interrupted, state),
        SessionRestored: to(actions.session_restored, state),
        SessionEnded: to(actions.session_ended_while_revoking, state),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        GenerationOutdated: to(actions.outdated_while_revoking, state),
        Ticked: to(actions.ticked_while_revoking, state),
    }


TABLE: Table[S, ServerMember] = MappingProxyType(
    {
        S.UNREGISTERED: {
            **_outside(S.UNREGISTERED),
            SessionRestored: to(
                actions.session_restored_late,
                when={S.REGISTERING: "session still alive", S.UNREGISTERED: "no session"},
            ),
        },
        S.REGISTERING: {
            **_outside(S.REGISTERING),
            SessionRestored: to(actions.session_restored, S.REGISTERING),
            Registered: to(actions.registered, S.WAITING),
        },
        S.WAITING: {
            **_inside(S.WAITING),
            NoCommand: to(actions.no_command, S.WAITING),
            StopCommanded: to(actions.stop_without_generation, S.WAITING),
            StartCommanded: to(
                actions.start, when={S.STARTING: "the same or a newer generation", S.WAITING: "an older generation"}
            ),
            SubscriptionAnnounced: to(actions.subscription_announced, S.WAITING),
            Closed: to(actions.close, S.LEFT),
        },
        S.STARTING: {
            **_inside(S.STARTING),
            Resumed: to(actions.resumed, S.STARTED),
            Closed: to(actions.close, when=_LEAVE),
        },
        S.STARTED: {
            **_inside(S.STARTED),
            NoCommand: to(actions.no_command, S.STARTED),
            StopCommanded: to(
                actions.stop,
                when={
                    S.STOPPING: "its own generation, owns partitions",
                    S.WAITING: "its own generation, owns nothing",
                    S.STARTED: "another generation",
                },
            ),
            StartCommanded: to(
                actions.start_over,
                when={
                    S.STARTING: "a newer generation",
                    S.STARTED: "the same generation",
                    S.WAITING: "an older generation",
                },
            ),
            SubscriptionAnnounced: to(actions.subscription_announced, S.STARTED),
            Polled: to(actions.poll, S.STARTED),
            Closed: to(actions.close, when=_LEAVE),
        },
        S.STOPPING: {
            **_revoking(S.STOPPING),
            Stopped: to(
                actions.stopped,
                when={
                    S.WAITING: "still registered",
                    S.REGISTERING: "not registered, but connected to ZooKeeper",
                    S.UNREGISTERED: "neither registered nor connected",
                },
            ),
            Closed: to(actions.close_stopping, S.CLOSING),
        },
        S.CLOSING: {
            **_revoking(S.CLOSING),
            Stopped: to(actions.leave, S.LEFT),
        },
        S.LEFT: {},
        S.FAILED: {
            Closed: to(actions.close, S.LEFT),
        },
    }
)


def step(member: ServerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
