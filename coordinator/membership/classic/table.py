"""The membership protocol of one member, client side, as a table; `step` is the only way to move a member.

Theory. A member finds its group's coordinator, joins (JoinGroup, parked until the others have come), is told who
leads, syncs (SyncGroup, parked until the leader has decided), and then keeps its place with heartbeats. All of a
rebalance that concerns the application happens inside its polls: giving up before the join (STOPPING) and taking
over after the sync (ASSIGNED, RESUMING). Requests and heartbeats go on between polls.

An eager member gives up everything before it joins. A cooperative one (KIP-429) keeps what it has and goes on
delivering it while it joins and syncs; what the new assignment takes away it gives up after the sync (RELEASING) and
joins once more, so that the group can hand it on. `holdings` has what that means for its partitions.

Three rules hold everywhere and are therefore not in the table:

1. An event that answers a request of an earlier life (`Answer.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An identity (member id and generation) that the group has refused is never used again, and what was owned under
   it is *lost*: it may be somebody else's by now.

Exceptions, so named: a heartbeat's REBALANCE_IN_PROGRESS counts as contact with the coordinator, which has reset
its timer; COORDINATOR_LOAD_IN_PROGRESS for a heartbeat only delays the next one; CLOSING and STOPPING let an
identity go without leaving the state, because a callback is running.

Sources: kafka-clients 4.1 AbstractCoordinator and ConsumerCoordinator (eager protocol of 0.9 on), KIP-62, KIP-394,
KAFKA-9823, KAFKA-13419. The session timer on this side is librdkafka's: the Java client only looks for another
coordinator and goes on delivering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.membership import events
from coordinator.membership.classic import actions
from coordinator.membership.classic import leaving as partings
from coordinator.membership.classic.holdings import Step
from coordinator.membership.classic.member import Member, State
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Decided,
    Event,
    GenerationOutdated,
    HeartbeatAnswered,
    Joined,
    MemberForgotten,
    MemberIdGiven,
    Polled,
    Refused,
    RejoinRequested,
    RejoinWanted,
    Resumed,
    Stopped,
    SubscriptionChanged,
    Synced,
    Ticked,
    Unsubscribed,
)

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[Member, Any, int], Step]


class Cell(NamedTuple):
    """What a state does about an event, and where that may lead; `step` checks the latter."""

    action: Action
    leads_to: frozenset[State]


def _to(action: Action, *states: State) -> Cell:
    return Cell(action, frozenset(states))


(UNJOINED, STOPPING, SEEKING, JOINING, DECIDING, SYNCING, ASSIGNED, RELEASING) = (
    State.UNJOINED,
    State.STOPPING,
    State.SEEKING,
    State.JOINING,
    State.DECIDING,
    State.SYNCING,
    State.ASSIGNED,
    State.RELEASING,
)
(RESUMING, STABLE, SUMMONED, UNSUBSCRIBING, CLOSING, LEFT, FAILED) = (
    State.RESUMING,
    State.STABLE,
    State.SUMMONED,
    State.UNSUBSCRIBING,
    State.CLOSING,
    State.LEFT,
    State.FAILED,
)


def _same_in(state: State) -> Mapping[type[Event], Cell]:
    """What every state in a generation does alike."""
    return {
        HeartbeatAnswered: _to(actions.heartbeat_answered, state),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        Refused: _to(partings.refused, FAILED),
    }


def _between(state: State) -> Mapping[type[Event], Cell]:
    """What JOINING, DECIDING and SYNCING do alike: whatever goes wrong, the attempt is made again."""
    return {
        Refused: _to(partings.refused, FAILED),
        RejoinRequested: _to(actions.rejoin_between, state, SEEKING, JOINING),
        GenerationOutdated: _to(actions.identity_refused_between, SEEKING, JOINING),
        MemberForgotten: _to(actions.identity_refused_between, SEEKING, JOINING),
        CoordinatorMoved: _to(actions.coordinator_moved, SEEKING),
        CoordinatorLoading: _to(actions.coordinator_loading, state, SEEKING),
        Polled: _to(actions.poll_elsewhere, state),
        SubscriptionChanged: _to(partings.subscription_changed, state),
        Unsubscribed: _to(partings.unsubscribed, UNJOINED),
        Closed: _to(partings.close, LEFT),
    }


def _giving_up(state: State) -> Mapping[type[Event], Cell]:
    """What STOPPING and RELEASING do alike: a callback runs, and whatever happens meanwhile waits for its end."""
    return {
        **_same_in(state),
        RejoinRequested: _to(actions.still_summoned, state),
        GenerationOutdated: _to(actions.identity_refused_while_giving_up, state),
        MemberForgotten: _to(actions.identity_refused_while_giving_up, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        Ticked: _to(actions.ticked, state),
        Polled: _to(actions.poll_elsewhere, state),
        SubscriptionChanged: _to(partings.subscription_changed, state),
        Unsubscribed: _to(partings.unsubscribed, UNSUBSCRIBING),
        Closed: _to(partings.close, CLOSING),
    }


def _owning(state: State, summoned_leads_to: State, rejoin_leads_to: State) -> Mapping[type[Event], Cell]:
    """What ASSIGNED, RESUMING, STABLE and SUMMONED do alike: they have, or are about to have, partitions."""
    return {
        **_same_in(state),
        RejoinRequested: _to(actions.summoned, summoned_leads_to),
        GenerationOutdated: _to(actions.identity_refused, UNJOINED),
        MemberForgotten: _to(actions.identity_refused, UNJOINED),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        Ticked: _to(actions.ticked, state, UNJOINED),
        SubscriptionChanged: _to(partings.subscription_changed_within, state, rejoin_leads_to),
        RejoinWanted: _to(partings.rejoin_wanted, rejoin_leads_to),
        Unsubscribed: _to(partings.unsubscribed, UNSUBSCRIBING, UNJOINED),
        Closed: _to(partings.close, CLOSING, LEFT),
    }


def _parting(state: State, out: State) -> Mapping[type[Event], Cell]:
    """What UNSUBSCRIBING and CLOSING do alike: only the last revocation counts, and where to say that it is over."""
    return {
        Stopped: _to(partings.stopped, state, out),
        CoordinatorFound: _to(actions.coordinator_found, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        GenerationOutdated: _to(actions.identity_refused_while_giving_up, state),
        MemberForgotten: _to(actions.identity_refused_while_giving_up, state),
    }


TABLE: Mapping[State, Mapping[type[Event], Cell]] = MappingProxyType(
    {
        UNJOINED: {
            Polled: _to(actions.first_poll, UNJOINED, SEEKING, JOINING),
            CoordinatorFound: _to(actions.coordinator_found, UNJOINED),
            CoordinatorUnknown: _to(actions.coordinator_unknown, UNJOINED),
            SubscriptionChanged: _to(partings.subscription_changed, UNJOINED),
            Unsubscribed: _to(partings.unsubscribed, UNJOINED),
            Closed: _to(partings.close, LEFT),
        },
        STOPPING: {
            **_giving_up(STOPPING),
            Stopped: _to(actions.stopped, STOPPING, SEEKING, JOINING),
        },
        SEEKING: {
            CoordinatorFound: _to(actions.coordinator_found, JOINING),
            CoordinatorUnknown: _to(actions.coordinator_unknown, SEEKING),
            CoordinatorMoved: _to(actions.coordinator_moved, SEEKING),
            Ticked: _to(actions.retry, SEEKING, JOINING),
            Refused: _to(partings.refused, FAILED),
            Polled: _to(actions.poll_elsewhere, SEEKING),
            SubscriptionChanged: _to(partings.subscription_changed, SEEKING),
            Unsubscribed: _to(partings.unsubscribed, UNJOINED),
            Closed: _to(partings.close, LEFT),
        },
        JOINING: {
            **_between(JOINING),
            Joined: _to(actions.joined, DECIDING, SYNCING),
            MemberIdGiven: _to(actions.member_id_given, JOINING),
        },
        DECIDING: {
            **_between(DECIDING),
            **_same_in(DECIDING),
            Decided: _to(actions.decided, SYNCING),
            Ticked: _to(actions.ticked, DECIDING, SEEKING, JOINING, UNJOINED),
        },
        SYNCING: {
            **_between(SYNCING),
            Synced: _to(actions.synced, ASSIGNED),
        },
        ASSIGNED: {
            **_owning(ASSIGNED, SUMMONED, ASSIGNED),
            Polled: _to(actions.take_over, RELEASING, RESUMING, STOPPING, SEEKING, JOINING),
        },
        RELEASING: {
            **_giving_up(RELEASING),
            Stopped: _to(actions.stopped_releasing, RESUMING, UNJOINED),
            RejoinRequested: _to(actions.summoned, RELEASING),
            RejoinWanted: _to(partings.rejoin_wanted, RELEASING),
            SubscriptionChanged: _to(partings.subscription_changed_within, RELEASING),
        },
        RESUMING: {
            **_owning(RESUMING, RESUMING, RESUMING),
            Resumed: _to(actions.resumed, STABLE, SUMMONED),
            Polled: _to(actions.poll_elsewhere, RESUMING),
        },
        STABLE: {
            **_owning(STABLE, SUMMONED, SUMMONED),
            Ticked: _to(actions.ticked, STABLE, SUMMONED, UNJOINED),
            Polled: _to(actions.poll_stable, STABLE),
        },
        SUMMONED: {
            **_owning(SUMMONED, SUMMONED, SUMMONED),
            RejoinRequested: _to(actions.still_summoned, SUMMONED),
            RejoinWanted: _to(actions.nothing_new, SUMMONED),
            SubscriptionChanged: _to(partings.subscription_changed, SUMMONED),
            Polled: _to(actions.begin_rebalance, STOPPING, SEEKING, JOINING),
        },
        UNSUBSCRIBING: {
            **_parting(UNSUBSCRIBING, UNJOINED),
            SubscriptionChanged: _to(partings.subscription_changed, UNSUBSCRIBING),
            Closed: _to(partings.close, CLOSING),
        },
        CLOSING: _parting(CLOSING, LEFT),
        LEFT: {},
        FAILED: {
            Closed: _to(partings.close, LEFT),
        },
    }
)


def step(member: Member, event: Event, now_ns: int) -> Step:
    """What `member` becomes by `event` at `now_ns`, and what is to be done, in order."""
    if isinstance(event, events.Answer) and event.stamp != member.stamp:
        return member, ()
    cell = TABLE[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
