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
from coordinator.membership.classic.member import Member
from coordinator.membership.classic.member import MemberState as S
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

MemberRow = Row[S, Member]

#: How a join begins (`moves.seek`).
_SEEK = {S.SEEKING: "coordinator unknown", S.JOINING: "coordinator known"}
_REVOKE_THEN_SEEK = {
    S.STOPPING: "something to revoke or commit",
    S.SEEKING: "nothing to revoke or commit, coordinator unknown",
    S.JOINING: "nothing to revoke or commit, coordinator known",
}


def _same_in(state: S) -> MemberRow:
    """Cells of every state in a generation."""
    return {
        HeartbeatAnswered: to(actions.heartbeat_answered, state),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        Refused: to(leaving.refused, S.FAILED),
    }


def _between_join_and_sync(state: S) -> MemberRow:
    """Cells of JOINING, DECIDING and SYNCING: whatever fails, the member tries again."""
    return {
        Refused: to(leaving.refused, S.FAILED),
        RejoinRequested: to(
            actions.rejoin_between_join_and_sync,
            when={
                state: "answers a heartbeat",
                S.SEEKING: "answers another request, coordinator unknown",
                S.JOINING: "answers another request, coordinator known",
            },
        ),
        GenerationOutdated: to(actions.identity_refused_between_join_and_sync, when=_SEEK),
        MemberForgotten: to(actions.identity_refused_between_join_and_sync, when=_SEEK),
        CoordinatorMoved: to(actions.coordinator_moved, S.SEEKING),
        CoordinatorLoading: to(
            actions.coordinator_loading, when={state: "answers a heartbeat", S.SEEKING: "answers another request"}
        ),
        Polled: to(actions.poll_elsewhere, state),
        SubscriptionChanged: to(leaving.subscription_changed, state),
        Unsubscribed: to(leaving.unsubscribed, S.UNJOINED),
        Closed: to(leaving.close, S.LEFT),
    }


def _revoking(state: S) -> MemberRow:
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
        Unsubscribed: to(leaving.unsubscribed, S.UNSUBSCRIBING),
        Closed: to(leaving.close, S.CLOSING),
    }


def _owning(state: S, requested_leads_to: S) -> MemberRow:
    """Cells of ASSIGNED, RESUMING, STABLE and REJOIN_NEEDED, which own partitions or are about to."""
    return {
        **_same_in(state),
        RejoinRequested: to(actions.rejoin_requested, requested_leads_to),
        GenerationOutdated: to(actions.identity_refused, S.UNJOINED),
        MemberForgotten: to(actions.identity_refused, S.UNJOINED),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        Ticked: to(
            actions.ticked,
            when={state: "neither session nor poll interval expired", S.UNJOINED: "session or poll interval expired"},
        ),
        SubscriptionChanged: to(leaving.subscription_changed_within, state),
        RejoinWanted: to(leaving.rejoin_wanted, state),
        Unsubscribed: to(leaving.unsubscribed, when={S.UNSUBSCRIBING: "owns partitions", S.UNJOINED: "owns nothing"}),
        Closed: to(leaving.close, when={S.CLOSING: "owns partitions", S.LEFT: "owns nothing"}),
    }


def _last_revocation(state: S, out: S) -> MemberRow:
    """Cells of UNSUBSCRIBING and CLOSING, which only wait for the last revocation and then leave."""
    return {
        Stopped: to(leaving.stopped, when={state: "still owns partitions", out: "owns nothing"}),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        GenerationOutdated: to(actions.identity_refused_while_revoking, state),
        MemberForgotten: to(actions.identity_refused_while_revoking, state),
    }


TABLE: Table[S, Member] = MappingProxyType(
    {
        S.UNJOINED: {
            Polled: to(
                actions.first_poll,
                when={
                    S.UNJOINED: "no subscription",
                    S.SEEKING: "subscribed, coordinator unknown",
                    S.JOINING: "subscribed, coordinator known",
                },
            ),
            CoordinatorFound: to(actions.coordinator_found, S.UNJOINED),
            CoordinatorUnknown: to(actions.coordinator_unknown, S.UNJOINED),
            SubscriptionChanged: to(leaving.subscription_changed, S.UNJOINED),
            Unsubscribed: to(leaving.unsubscribed, S.UNJOINED),
            Closed: to(leaving.close, S.LEFT),
        },
        S.STOPPING: {
            **_revoking(S.STOPPING),
            Stopped: to(
                actions.stopped,
                when={
                    S.STOPPING: "more topics were unsubscribed meanwhile",
                    S.SEEKING: "nothing more to revoke, coordinator unknown",
                    S.JOINING: "nothing more to revoke, coordinator known",
                },
            ),
        },
        S.SEEKING: {
            CoordinatorFound: to(actions.coordinator_found, S.JOINING),
            CoordinatorUnknown: to(actions.coordinator_unknown, S.SEEKING),
            CoordinatorMoved: to(actions.coordinator_moved, S.SEEKING),
            Ticked: to(
                actions.retry,
                when={
                    S.SEEKING: "backoff running, session expired, or coordinator unknown",
                    S.JOINING: "backoff over, session not expired, coordinator known",
                },
            ),
            Refused: to(leaving.refused, S.FAILED),
            Polled: to(actions.poll_elsewhere, S.SEEKING),
            SubscriptionChanged: to(leaving.subscription_changed, S.SEEKING),
            Unsubscribed: to(leaving.unsubscribed, S.UNJOINED),
            Closed: to(leaving.close, S.LEFT),
        },
        S.JOINING: {
            **_between_join_and_sync(S.JOINING),
            # The coordinator is known here: it is what the JoinGroup was sent to.
            RejoinRequested: to(actions.rejoin_between_join_and_sync, S.JOINING),
            **dict.fromkeys(
                (GenerationOutdated, MemberForgotten),
                to(
                    actions.identity_refused_between_join_and_sync,
                    when={S.SEEKING: "no member id yet", S.JOINING: "has a member id"},
                ),
            ),
            Joined: to(actions.joined, when={S.DECIDING: "this member leads", S.SYNCING: "another member leads"}),
            MemberIdGiven: to(actions.member_id_given, S.JOINING),
        },
        S.DECIDING: {
            **_between_join_and_sync(S.DECIDING),
            **_same_in(S.DECIDING),
            Decided: to(actions.decided, S.SYNCING),
            Ticked: to(
                actions.ticked,
                when={
                    S.DECIDING: "neither session nor poll interval expired",
                    S.SEEKING: "session expired",
                    S.UNJOINED: "only the poll interval expired",
                },
            ),
        },
        S.SYNCING: {
            **_between_join_and_sync(S.SYNCING),
            Synced: to(actions.synced, S.ASSIGNED),
        },
        S.ASSIGNED: {
            **_owning(S.ASSIGNED, S.REJOIN_NEEDED),
            Polled: to(
                actions.take_over,
                when={
                    S.RELEASING: "topics still subscribed, partitions taken away",
                    S.RESUMING: "topics still subscribed, nothing taken away",
                    **{state: f"assigned topics unsubscribed, {when}" for state, when in _REVOKE_THEN_SEEK.items()},
                },
            ),
        },
        S.RELEASING: {
            **_revoking(S.RELEASING),
            Stopped: to(
                actions.stopped_releasing,
                when={S.RESUMING: "generation still valid", S.UNJOINED: "generation lost meanwhile"},
            ),
            RejoinRequested: to(actions.rejoin_requested, S.RELEASING),
            RejoinWanted: to(leaving.rejoin_wanted, S.RELEASING),
            SubscriptionChanged: to(leaving.subscription_changed_within, S.RELEASING),
        },
        S.RESUMING: {
            **_owning(S.RESUMING, S.RESUMING),
            Resumed: to(actions.resumed, when={S.STABLE: "no rejoin needed", S.REJOIN_NEEDED: "rejoin needed"}),
            Polled: to(actions.poll_elsewhere, S.RESUMING),
        },
        S.STABLE: {
            **_owning(S.STABLE, S.REJOIN_NEEDED),
            Ticked: to(
                actions.ticked,
                when={
                    S.STABLE: "neither session, poll interval nor rejoin delay expired",
                    S.REJOIN_NEEDED: "only the rejoin delay expired",
                    S.UNJOINED: "session or poll interval expired",
                },
            ),
            SubscriptionChanged: to(
                leaving.subscription_changed_within, when={S.STABLE: "the same topics", S.REJOIN_NEEDED: "other topics"}
            ),
            RejoinWanted: to(leaving.rejoin_wanted, S.REJOIN_NEEDED),
            Polled: to(actions.poll_stable, S.STABLE),
        },
        S.REJOIN_NEEDED: {
            **_owning(S.REJOIN_NEEDED, S.REJOIN_NEEDED),
            RejoinRequested: to(actions.rejoin_requested_again, S.REJOIN_NEEDED),
            RejoinWanted: to(actions.nothing_new, S.REJOIN_NEEDED),
            SubscriptionChanged: to(leaving.subscription_changed, S.REJOIN_NEEDED),
            Polled: to(actions.begin_rebalance, when=_REVOKE_THEN_SEEK),
        },
        S.UNSUBSCRIBING: {
            **_last_revocation(S.UNSUBSCRIBING, S.UNJOINED),
            SubscriptionChanged: to(leaving.subscription_changed, S.UNSUBSCRIBING),
            Closed: to(leaving.close, S.CLOSING),
        },
        S.CLOSING: {
            **_last_revocation(S.CLOSING, S.LEFT),
            CoordinatorMoved: to(actions.coordinator_moved, S.CLOSING),
            Ticked: to(actions.ticked_closing, S.CLOSING),
        },
        S.LEFT: {},
        S.FAILED: {
            Closed: to(leaving.close, S.LEFT),
        },
    }
)


def step(member: Member, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
