"""The member of a KIP-848 group as a table; `step` is the only way to change a member.

Theory. A member sends ConsumerGroupHeartbeat at the interval that the coordinator gives, with epoch 0 to join. An
answer may carry a new target. The member takes it over in a poll: it commits, revokes what the target lacks, assigns
what is new, and acknowledges with a heartbeat at once that names what it owns. No member waits for members whose
partitions it does not need. A target that comes meanwhile is taken over next.

Four rules hold everywhere and are therefore not in the table:

1. A response to a request under an earlier epoch's stamp (`Response.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An epoch is never used again after the group refused it, and what was owned under it is *lost*.
4. One heartbeat at a time is outstanding; only a leaving member's last word is sent without waiting for its answer.

There is no session timer here: cut off from its coordinator, a member keeps delivering what it owns, as Kafka's does.

Sources: KIP-848, KIP-1082; kafka-clients 4.1.1 AbstractMembershipManager, ConsumerMembershipManager,
ConsumerHeartbeatRequestManager and MemberState. Backoffs have no jitter here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.membership.consumer import actions
from coordinator.membership.consumer.events import (
    CallbackReturned,
    EpochFenced,
    ErrorReported,
    HeartbeatAnswered,
    Subscribed,
    TargetResolved,
    Unsubscribed,
)
from coordinator.membership.consumer.member import ConsumerMember, ConsumerMemberState
from coordinator.membership.consumer.moves import Step
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Event,
    Polled,
    Refused,
    Response,
    Ticked,
)

#: (member, event, now in monotonic ns) -> (member, effects)
Action = Callable[[ConsumerMember, Any, int], Step]


class Cell(NamedTuple):
    """What a state does with an event, and the states it may lead to, which `step` checks."""

    action: Action
    leads_to: frozenset[ConsumerMemberState]


def _to(action: Action, *states: ConsumerMemberState) -> Cell:
    return Cell(action, frozenset(states))


(UNSUBSCRIBED, JOINING, RECONCILING, ACKNOWLEDGING, STABLE) = (
    ConsumerMemberState.UNSUBSCRIBED,
    ConsumerMemberState.JOINING,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
    ConsumerMemberState.STABLE,
)
(PREPARE_LEAVING, LEAVING, FENCED, STALE, FATAL) = (
    ConsumerMemberState.PREPARE_LEAVING,
    ConsumerMemberState.LEAVING,
    ConsumerMemberState.FENCED,
    ConsumerMemberState.STALE,
    ConsumerMemberState.FATAL,
)


def _outside(state: ConsumerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of the states without an epoch that send nothing."""
    return {
        Subscribed: _to(actions.subscribed, state),
        Unsubscribed: _to(actions.leave_outside, UNSUBSCRIBED),
        Closed: _to(actions.leave_outside, UNSUBSCRIBED),
        CoordinatorFound: _to(actions.coordinator_found_outside, state),
        CoordinatorUnknown: _to(actions.coordinator_unknown_outside, state),
    }


def _heartbeating(state: ConsumerMemberState, *sent: ConsumerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of the states that send heartbeats; `sent` is where sending one may lead."""
    return {
        Subscribed: _to(actions.subscribed, state),
        CoordinatorFound: _to(actions.coordinator_found, state, *sent),
        CoordinatorUnknown: _to(actions.coordinator_unknown, state),
        CoordinatorMoved: _to(actions.coordinator_moved, state),
        CoordinatorLoading: _to(actions.coordinator_loading, state),
        ErrorReported: _to(actions.error_reported, state),
        Refused: _to(actions.refused, FATAL),
        Ticked: _to(actions.ticked, state, *sent),
    }


def _member(state: ConsumerMemberState, *sent: ConsumerMemberState) -> Mapping[type[Event], Cell]:
    """Cells of JOINING, RECONCILING, ACKNOWLEDGING and STABLE."""
    return {
        **_heartbeating(state, *sent),
        Unsubscribed: _to(actions.leave, PREPARE_LEAVING),
        Closed: _to(actions.leave, PREPARE_LEAVING),
        Polled: _to(actions.poll, state),
        HeartbeatAnswered: _to(actions.heartbeat_answered, state, RECONCILING, STABLE),
        TargetResolved: _to(actions.target_resolved, state, RECONCILING, STABLE),
        EpochFenced: _to(actions.fenced, FENCED, JOINING),
        Ticked: _to(actions.ticked, state, *sent, LEAVING, STALE),
    }


TABLE: Mapping[ConsumerMemberState, Mapping[type[Event], Cell]] = MappingProxyType(
    {
        UNSUBSCRIBED: {
            **_outside(UNSUBSCRIBED),
            Polled: _to(actions.poll_outside, UNSUBSCRIBED, JOINING),
        },
        JOINING: _member(JOINING),
        RECONCILING: {
            **_member(RECONCILING),
            Polled: _to(actions.poll_reconciling, RECONCILING),
            CallbackReturned: _to(actions.returned_reconciling, RECONCILING, ACKNOWLEDGING, STABLE),
        },
        ACKNOWLEDGING: _member(ACKNOWLEDGING, RECONCILING, STABLE),
        STABLE: _member(STABLE),
        PREPARE_LEAVING: {
            **_heartbeating(PREPARE_LEAVING),
            Unsubscribed: _to(actions.leave_preparing, PREPARE_LEAVING),
            Closed: _to(actions.leave_preparing, PREPARE_LEAVING),
            HeartbeatAnswered: _to(actions.heartbeat_answered, PREPARE_LEAVING),
            EpochFenced: _to(actions.fenced_leaving, UNSUBSCRIBED),
            CallbackReturned: _to(actions.returned_leaving, LEAVING, UNSUBSCRIBED, PREPARE_LEAVING),
        },
        LEAVING: {
            Subscribed: _to(actions.subscribed, LEAVING),
            Unsubscribed: _to(actions.leave_again, LEAVING),
            Closed: _to(actions.leave_again, LEAVING),
            CallbackReturned: _to(actions.returned_late, LEAVING),
            HeartbeatAnswered: _to(actions.answered_leaving, UNSUBSCRIBED, STALE),
            CoordinatorLoading: _to(actions.answered_leaving, UNSUBSCRIBED, STALE),
            ErrorReported: _to(actions.answered_leaving, UNSUBSCRIBED, STALE),
            CoordinatorMoved: _to(actions.moved_leaving, UNSUBSCRIBED, STALE),
            EpochFenced: _to(actions.fenced_leaving, UNSUBSCRIBED, STALE),
            Refused: _to(actions.refused, FATAL),
        },
        FENCED: {
            **_outside(FENCED),
            CallbackReturned: _to(actions.returned_outside, FENCED, JOINING),
        },
        STALE: {
            **_outside(STALE),
            Polled: _to(actions.poll_outside, STALE, JOINING),
            CallbackReturned: _to(actions.returned_outside, STALE, JOINING),
        },
        FATAL: {
            Closed: _to(actions.close_fatal, FATAL),
        },
    }
)


def step(member: ConsumerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    if isinstance(event, Response) and event.stamp != member.stamp:
        return member, ()
    cell = TABLE[member.state].get(type(event))
    if cell is None:
        return member, ()
    after, effects = cell.action(member, event, now_ns)
    assert after.state in cell.leads_to, (member.state, event, after.state)
    return after, effects
