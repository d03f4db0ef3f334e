"""The member of a classic group as a table; `step` is the only way to change a member.

Theory. A member finds its group's coordinator, joins (JoinGroup, parked until the others have joined), learns who
leads, syncs (SyncGroup, parked until the leader has assigned), and then stays in the group with heartbeats. Everything
in a rebalance that concerns the application happens inside its polls: revoking before the join (STOPPING) and taking
over the assignment after the sync (ASSIGNED, RESUMING). Requests and heartbeats go on between polls.

An eager member revokes everything before it joins. A cooperative one (KIP-429) keeps and delivers what it has while it
joins and syncs; after the sync it revokes what the new assignment takes away (RELEASING) and rejoins, so that the group
can reassign it. `holdings` says what that means for its partitions.

Three rules hold everywhere and are therefore not in the table:

1. A response to a request under an earlier identity (`Response.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An identity (member id and generation) is never reused after the group refused it, and what was owned under it is
   *lost*: others may own it by now.

Exceptions: a heartbeat's REBALANCE_IN_PROGRESS counts as a successful heartbeat, since the coordinator has reset its
session timer; COORDINATOR_LOAD_IN_PROGRESS in a heartbeat only delays the next one; CLOSING and STOPPING drop an
identity without leaving the state, because a callback is running.

Sources: kafka-clients 4.1 AbstractCoordinator and ConsumerCoordinator (eager protocol of 0.9 on), KIP-62, KIP-394,
KAFKA-9823, KAFKA-13419. The client-side session timer is librdkafka's: the Java client only looks for another
coordinator and keeps delivering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.membership.classic import actions, leaving
from coordinator.membership.classic.events import (
    Decided,
    HeartbeatAnswered,
    Joined,
    MemberForgotten,
    MemberIdGiven,
    RejoinRequested,
    RejoinWanted,
    SubscriptionChanged,
    Synced,
    Unsubscribed,
)
from coordinator.membership.classic.holdings import Step
from coordinator.membership.classic.member import Member, MemberState
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

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[Member, Any, int], Step]


class Cell(NamedTuple):
    """What a state does with an event, and the states it may lead to, which `step` checks."""

    action: Action
    leads_to: frozenset[MemberState]


def _to(action: Action, *states: MemberState) -> Cell:
    return Cell(action, frozenset(states))


(UNJOINED, STOPPING, SEEKING, JOINING, DECIDING, SYNCING, ASSIGNED, RELEASING) = (
    MemberState.UNJOINED,
    MemberState.STOPPING,
    MemberState.SEEKING,
    MemberState.JOINING,
    MemberState.DECIDING,
    MemberState.SYNCING,
    MemberState.ASSIGNED,
    MemberState.RELEASING,
)
(RESUMING, STABLE, REJOIN_NEEDED, UNSUBSCRIBING, CLOSING, LEFT, FAILED) = (
    MemberState.RESUMING,
    MemberState.STABLE,
    MemberState.REJOIN_NEEDED,
    MemberState.UNSUBSCRIBING,
    MemberState.CLOSING,
    MemberState.LEFT,
    MemberState.FAILED,
)


def _same_in(state: MemberState) -> Mapping[type[Event], Cell]:
    """Cells of every state in a generation."""
    return {
        HeartbeatAnswered: _to(actions.heartbeat_answered, state),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        Refused: _to(leaving.refused, FAILED),
    }


def _between_join_and_sync(state: MemberState) -> Mapping[type[Event], Cell]:
    """Cells of JOINING, DECIDING and SYNCING: whatever fails, the member tries again."""
    return {
        Refused: _to(leaving.refused, FAILED),
        RejoinRequested: _to(actions.rejoin_between_join_and_sync, state, SEEKING, JOINING),
        GenerationOutdated: _to(actions.identity_refused_between_join_and_sync, SEEKING, JOINING),
        MemberForgotten: _to(actions.identity_refused_between_join_and_sync, SEEKING, JOINING),
        CoordinatorMoved: _to(actions.coordinator_moved, SEEKING),
        CoordinatorLoading: _to(actions.coordinator_loading, state, SEEKING),
        Polled: _to(actions.poll_elsewhere, state),
        SubscriptionChanged: _to(leaving.subscription_changed, state),
        Unsubscribed: _to(leaving.unsubscribed, UNJOINED),
        Closed: _to(leaving.close, LEFT),
    }


def _revoking(state: MemberState) -> Mapping[type[Event], Cell]:
    """Cells of STOPPING and RELEASING: a callback is running, and everything else waits until it returns."""
    return {
        **_same_in(state),
        RejoinRequested: _to(actions.rejoin_requested_again, state),
        GenerationOutdated: _to(actions.identity_refused_while_revoking, state),
        MemberForgotten: _to(actions.identity_refused_while_revoking, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        Ticked: _to(actions.ticked, state),
        Polled: _to(actions.poll_elsewhere, state),
        SubscriptionChanged: _to(leaving.subscription_changed, state),
        Unsubscribed: _to(leaving.unsubscribed, UNSUBSCRIBING),
        Closed: _to(leaving.close, CLOSING),
    }


def _owning(
    state: MemberState, requested_leads_to: MemberState, rejoin_leads_to: MemberState
) -> Mapping[type[Event], Cell]:
    """Cells of ASSIGNED, RESUMING, STABLE and REJOIN_NEEDED, which own partitions or are about to."""
    return {
        **_same_in(state),
        RejoinRequested: _to(actions.rejoin_requested, requested_leads_to),
        GenerationOutdated: _to(actions.identity_refused, UNJOINED),
        MemberForgotten: _to(actions.identity_refused, UNJOINED),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        Ticked: _to(actions.ticked, state, UNJOINED),
        SubscriptionChanged: _to(leaving.subscription_changed_within, state, rejoin_leads_to),
        RejoinWanted: _to(leaving.rejoin_wanted, rejoin_leads_to),
        Unsubscribed: _to(leaving.unsubscribed, UNSUBSCRIBING, UNJOINED),
        Closed: _to(leaving.close, CLOSING, LEFT),
    }


def _last_revocation(state: MemberState, out: MemberState) -> Mapping[type[Event], Cell]:
    """Cells of UNSUBSCRIBING and CLOSING, which only wait for the last revocation and then leave."""
    return {
        Stopped: _to(leaving.stopped, state, out),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        GenerationOutdated: _to(actions.identity_refused_while_revoking, state),
        MemberForgotten: _to(actions.identity_refused_while_revoking, state),
    }


TABLE: Mapping[MemberState, Mapping[type[Event], Cell]] = MappingProxyType(
    {
        UNJOINED: {
            Polled: _to(actions.first_poll, UNJOINED, SEEKING, JOINING),
            CoordinatorFound: _to(actions.coordinator_found, UNJOINED),
            CoordinatorUnknown: _to(actions.coordinator_unknown, UNJOINED),
            SubscriptionChanged: _to(leaving.subscription_changed, UNJOINED),
            Unsubscribed: _to(leaving.unsubscribed, UNJOINED),
            Closed: _to(leaving.close, LEFT),
        },
        STOPPING: {
            **_revoking(STOPPING),
            Stopped: _to(actions.stopped, STOPPING, SEEKING, JOINING),
        },
        SEEKING: {
            CoordinatorFound: _to(actions.coordinator_found, JOINING),
            CoordinatorUnknown: _to(actions.coordinator_unknown, SEEKING),
            CoordinatorMoved: _to(actions.coordinator_moved, SEEKING),
            Ticked: _to(actions.retry, SEEKING, JOINING),
            Refused: _to(leaving.refused, FAILED),
            Polled: _to(actions.poll_elsewhere, SEEKING),
            SubscriptionChanged: _to(leaving.subscription_changed, SEEKING),
            Unsubscribed: _to(leaving.unsubscribed, UNJOINED),
            Closed: _to(leaving.close, LEFT),
        },
        JOINING: {
            **_between_join_and_sync(JOINING),
            Joined: _to(actions.joined, DECIDING, SYNCING),
            MemberIdGiven: _to(actions.member_id_given, JOINING),
        },
        DECIDING: {
            **_between_join_and_sync(DECIDING),
            **_same_in(DECIDING),
            Decided: _to(actions.decided, SYNCING),
            Ticked: _to(actions.ticked, DECIDING, SEEKING, JOINING, UNJOINED),
        },
        SYNCING: {
            **_between_join_and_sync(SYNCING),
            Synced: _to(actions.synced, ASSIGNED),
        },
        ASSIGNED: {
            **_owning(ASSIGNED, REJOIN_NEEDED, ASSIGNED),
            Polled: _to(actions.take_over, RELEASING, RESUMING, STOPPING, SEEKING, JOINING),
        },
        RELEASING: {
            **_revoking(RELEASING),
            Stopped: _to(actions.stopped_releasing, RESUMING, UNJOINED),
            RejoinRequested: _to(actions.rejoin_requested, RELEASING),
            RejoinWanted: _to(leaving.rejoin_wanted, RELEASING),
            SubscriptionChanged: _to(leaving.subscription_changed_within, RELEASING),
        },
        RESUMING: {
            **_owning(RESUMING, RESUMING, RESUMING),
            Resumed: _to(actions.resumed, STABLE, REJOIN_NEEDED),
            Polled: _to(actions.poll_elsewhere, RESUMING),
        },
        STABLE: {
            **_owning(STABLE, REJOIN_NEEDED, REJOIN_NEEDED),
            Ticked: _to(actions.ticked, STABLE, REJOIN_NEEDED, UNJOINED),
            Polled: _to(actions.poll_stable, STABLE),
        },
        REJOIN_NEEDED: {
            **_owning(REJOIN_NEEDED, REJOIN_NEEDED, REJOIN_NEEDED),
            RejoinRequested: _to(actions.rejoin_requested_again, REJOIN_NEEDED),
            RejoinWanted: _to(actions.nothing_new, REJOIN_NEEDED),
            SubscriptionChanged: _to(leaving.subscription_changed, REJOIN_NEEDED),
            Polled: _to(actions.begin_rebalance, STOPPING, SEEKING, JOINING),
        },
        UNSUBSCRIBING: {
            **_last_revocation(UNSUBSCRIBING, UNJOINED),
            SubscriptionChanged: _to(leaving.subscription_changed, UNSUBSCRIBING),
            Closed: _to(leaving.close, CLOSING),
        },
        CLOSING: _last_revocation(CLOSING, LEFT),
        LEFT: {},
        FAILED: {
            Closed: _to(leaving.close, LEFT),
        },
    }
)


def step(member: Member, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    if isinstance(event, Response) and event.stamp != member.stamp:
        return member, ()
    cell = TABLE[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
