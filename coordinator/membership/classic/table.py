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

from types import MappingProxyType
from typing import TYPE_CHECKING

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
    Resumed,
    Stopped,
    Ticked,
)
from coordinator.membership.state_table import Row, Table, stepped, to

if TYPE_CHECKING:
    from coordinator.membership.classic.holdings import Step

MemberRow = Row[MemberState, Member]

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

#: How a join begins (`moves.seek`).
_SEEK = {SEEKING: "coordinator unknown", JOINING: "coordinator known"}
_REVOKE_THEN_SEEK = {
    STOPPING: "something to revoke or commit",
    SEEKING: "nothing to revoke or commit, coordinator unknown",
    JOINING: "nothing to revoke or commit, coordinator known",
}


def _same_in(state: MemberState) -> MemberRow:
    """Cells of every state in a generation."""
    return {
        HeartbeatAnswered: to(actions.heartbeat_answered, state),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        Refused: to(leaving.refused, FAILED),
    }


def _between_join_and_sync(state: MemberState) -> MemberRow:
    """Cells of JOINING, DECIDING and SYNCING: whatever fails, the member tries again."""
    return {
        Refused: to(leaving.refused, FAILED),
        RejoinRequested: to(
            actions.rejoin_between_join_and_sync,
            when={
                state: "answers a heartbeat",
                SEEKING: "answers another request, coordinator unknown",
                JOINING: "answers another request, coordinator known",
            },
        ),
        GenerationOutdated: to(actions.identity_refused_between_join_and_sync, when=_SEEK),
        MemberForgotten: to(actions.identity_refused_between_join_and_sync, when=_SEEK),
        CoordinatorMoved: to(actions.coordinator_moved, SEEKING),
        CoordinatorLoading: to(
            actions.coordinator_loading, when={state: "answers a heartbeat", SEEKING: "answers another request"}
        ),
        Polled: to(actions.poll_elsewhere, state),
        SubscriptionChanged: to(leaving.subscription_changed, state),
        Unsubscribed: to(leaving.unsubscribed, UNJOINED),
        Closed: to(leaving.close, LEFT),
    }


def _revoking(state: MemberState) -> MemberRow:
    """Cells of STOPPING and RELEASING: a callback is running, and everything else waits until it returns."""
    return {
        **_same_in(state),
        RejoinRequested: to(actions.rejoin_requested_again, state),
        GenerationOutdated: to(actions.identity_refused_while_revoking, state),
        MemberForgotten: to(actions.identity_refused_while_revoking, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        Ticked: to(actions.ticked, state),
        Polled: to(actions.poll_elsewhere, state),
        SubscriptionChanged: to(leaving.subscription_changed, state),
        Unsubscribed: to(leaving.unsubscribed, UNSUBSCRIBING),
        Closed: to(leaving.close, CLOSING),
    }


def _owning(state: MemberState, requested_leads_to: MemberState) -> MemberRow:
    """Cells of ASSIGNED, RESUMING, STABLE and REJOIN_NEEDED, which own partitions or are about to."""
    return {
        **_same_in(state),
        RejoinRequested: to(actions.rejoin_requested, requested_leads_to),
        GenerationOutdated: to(actions.identity_refused, UNJOINED),
        MemberForgotten: to(actions.identity_refused, UNJOINED),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        Ticked: to(
            actions.ticked,
            when={state: "neither session nor poll interval expired", UNJOINED: "session or poll interval expired"},
        ),
        SubscriptionChanged: to(leaving.subscription_changed_within, state),
        RejoinWanted: to(leaving.rejoin_wanted, state),
        Unsubscribed: to(leaving.unsubscribed, when={UNSUBSCRIBING: "owns partitions", UNJOINED: "owns nothing"}),
        Closed: to(leaving.close, when={CLOSING: "owns partitions", LEFT: "owns nothing"}),
    }


def _last_revocation(state: MemberState, out: MemberState) -> MemberRow:
    """Cells of UNSUBSCRIBING and CLOSING, which only wait for the last revocation and then leave."""
    return {
        Stopped: to(leaving.stopped, when={state: "still owns partitions", out: "owns nothing"}),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        GenerationOutdated: to(actions.identity_refused_while_revoking, state),
        MemberForgotten: to(actions.identity_refused_while_revoking, state),
    }


TABLE: Table[MemberState, Member] = MappingProxyType(
    {
        UNJOINED: {
            Polled: to(
                actions.first_poll,
                when={
                    UNJOINED: "no subscription",
                    SEEKING: "subscribed, coordinator unknown",
                    JOINING: "subscribed, coordinator known",
                },
            ),
            CoordinatorFound: to(actions.coordinator_found, UNJOINED),
            CoordinatorUnknown: to(actions.coordinator_unknown, UNJOINED),
            SubscriptionChanged: to(leaving.subscription_changed, UNJOINED),
            Unsubscribed: to(leaving.unsubscribed, UNJOINED),
            Closed: to(leaving.close, LEFT),
        },
        STOPPING: {
            **_revoking(STOPPING),
            Stopped: to(
                actions.stopped,
                when={
                    STOPPING: "more topics were unsubscribed meanwhile",
                    SEEKING: "nothing more to revoke, coordinator unknown",
                    JOINING: "nothing more to revoke, coordinator known",
                },
            ),
        },
        SEEKING: {
            CoordinatorFound: to(actions.coordinator_found, JOINING),
            CoordinatorUnknown: to(actions.coordinator_unknown, SEEKING),
            CoordinatorMoved: to(actions.coordinator_moved, SEEKING),
            Ticked: to(
                actions.retry,
                when={
                    SEEKING: "backoff running, session expired, or coordinator unknown",
                    JOINING: "backoff over, session not expired, coordinator known",
                },
            ),
            Refused: to(leaving.refused, FAILED),
            Polled: to(actions.poll_elsewhere, SEEKING),
            SubscriptionChanged: to(leaving.subscription_changed, SEEKING),
            Unsubscribed: to(leaving.unsubscribed, UNJOINED),
            Closed: to(leaving.close, LEFT),
        },
        JOINING: {
            **_between_join_and_sync(JOINING),
            # The coordinator is known here: it is what the JoinGroup was sent to.
            RejoinRequested: to(actions.rejoin_between_join_and_sync, JOINING),
            **dict.fromkeys(
                (GenerationOutdated, MemberForgotten),
                to(
                    actions.identity_refused_between_join_and_sync,
                    when={SEEKING: "no member id yet", JOINING: "has a member id"},
                ),
            ),
            Joined: to(actions.joined, when={DECIDING: "this member leads", SYNCING: "another member leads"}),
            MemberIdGiven: to(actions.member_id_given, JOINING),
        },
        DECIDING: {
            **_between_join_and_sync(DECIDING),
            **_same_in(DECIDING),
            Decided: to(actions.decided, SYNCING),
            Ticked: to(
                actions.ticked,
                when={
                    DECIDING: "neither session nor poll interval expired",
                    SEEKING: "session expired",
                    UNJOINED: "only the poll interval expired",
                },
            ),
        },
        SYNCING: {
            **_between_join_and_sync(SYNCING),
            Synced: to(actions.synced, ASSIGNED),
        },
        ASSIGNED: {
            **_owning(ASSIGNED, REJOIN_NEEDED),
            Polled: to(
                actions.take_over,
                when={
                    RELEASING: "topics still subscribed, partitions taken away",
                    RESUMING: "topics still subscribed, nothing taken away",
                    **{state: f"assigned topics unsubscribed, {when}" for state, when in _REVOKE_THEN_SEEK.items()},
                },
            ),
        },
        RELEASING: {
            **_revoking(RELEASING),
            Stopped: to(
                actions.stopped_releasing,
                when={RESUMING: "generation still valid", UNJOINED: "generation lost meanwhile"},
            ),
            RejoinRequested: to(actions.rejoin_requested, RELEASING),
            RejoinWanted: to(leaving.rejoin_wanted, RELEASING),
            SubscriptionChanged: to(leaving.subscription_changed_within, RELEASING),
        },
        RESUMING: {
            **_owning(RESUMING, RESUMING),
            Resumed: to(actions.resumed, when={STABLE: "no rejoin needed", REJOIN_NEEDED: "rejoin needed"}),
            Polled: to(actions.poll_elsewhere, RESUMING),
        },
        STABLE: {
            **_owning(STABLE, REJOIN_NEEDED),
            Ticked: to(
                actions.ticked,
                when={
                    STABLE: "neither session, poll interval nor rejoin delay expired",
                    REJOIN_NEEDED: "only the rejoin delay expired",
                    UNJOINED: "session or poll interval expired",
                },
            ),
            SubscriptionChanged: to(
                leaving.subscription_changed_within, when={STABLE: "the same topics", REJOIN_NEEDED: "other topics"}
            ),
            RejoinWanted: to(leaving.rejoin_wanted, REJOIN_NEEDED),
            Polled: to(actions.poll_stable, STABLE),
        },
        REJOIN_NEEDED: {
            **_owning(REJOIN_NEEDED, REJOIN_NEEDED),
            RejoinRequested: to(actions.rejoin_requested_again, REJOIN_NEEDED),
            RejoinWanted: to(actions.nothing_new, REJOIN_NEEDED),
            SubscriptionChanged: to(leaving.subscription_changed, REJOIN_NEEDED),
            Polled: to(actions.begin_rebalance, when=_REVOKE_THEN_SEEK),
        },
        UNSUBSCRIBING: {
            **_last_revocation(UNSUBSCRIBING, UNJOINED),
            SubscriptionChanged: to(leaving.subscription_changed, UNSUBSCRIBING),
            Closed: to(leaving.close, CLOSING),
        },
        CLOSING: {
            **_last_revocation(CLOSING, LEFT),
            CoordinatorMoved: to(actions.coordinator_moved, CLOSING),
            Ticked: to(actions.ticked_closing, CLOSING),
        },
        LEFT: {},
        FAILED: {
            Closed: to(leaving.close, LEFT),
        },
    }
)


def step(member: Member, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
