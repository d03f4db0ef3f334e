"""The member of a KIP-848 group as a table; `step` is the only way to change a member.

Theory. A member sends ConsumerGroupHeartbeat at the interval that the coordinator gives, with epoch 0 to join. An
answer may carry a new target. The member takes it over in a poll: it commits, revokes what the target lacks, assigns
what is new, and acknowledges with a heartbeat at once that names what it owns. No member waits for members whose
partitions it does not need. A target that comes meanwhile is taken over next.

Four rules hold everywhere and are therefore not in the table:

1. A response to a request under an earlier epoch's stamp (`Response.stamp`) changes nothing.
2. An event that a state's row does not name changes nothing.
3. An epoch is never used again after the group refused it, and what was owned under it is *lost*.
4. One heartbeat at a time is outstanding. Only a leaving member's last word waits for nothing: not for the answer to an
   earlier one, nor for its own. So Kafka's state LEAVING takes no time and is not among these.

There is no session timer here: cut off from its coordinator, a member keeps delivering what it owns, as Kafka's does.

Sources: KIP-848, KIP-1082; kafka-clients 4.1.1 AbstractMembershipManager, ConsumerMembershipManager,
ConsumerHeartbeatRequestManager and MemberState. Backoffs have no jitter here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

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
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Event,
    Polled,
    Refused,
    Ticked,
)
from coordinator.membership.state_table import Row, Table, stepped, to

if TYPE_CHECKING:
    from coordinator.membership.consumer.moves import Step

MemberRow = Row[ConsumerMemberState, ConsumerMember]

(UNSUBSCRIBED, JOINING, RECONCILING, ACKNOWLEDGING, STABLE) = (
    ConsumerMemberState.UNSUBSCRIBED,
    ConsumerMemberState.JOINING,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
    ConsumerMemberState.STABLE,
)
(PREPARE_LEAVING, FENCED, STALE, FATAL) = (
    ConsumerMemberState.PREPARE_LEAVING,
    ConsumerMemberState.FENCED,
    ConsumerMemberState.STALE,
    ConsumerMemberState.FATAL,
)


def _outside(state: ConsumerMemberState) -> MemberRow:
    """Cells of the states without an epoch that send nothing."""
    return {
        Subscribed: to(actions.subscribed, state),
        Unsubscribed: to(actions.leave_outside, UNSUBSCRIBED),
        Closed: to(actions.leave_outside, UNSUBSCRIBED),
        CoordinatorFound: to(actions.coordinator_found_outside, state),
        CoordinatorUnknown: to(actions.coordinator_unknown_outside, state),
    }


def _heartbeating(state: ConsumerMemberState, *sent: ConsumerMemberState) -> MemberRow:
    """Cells of the states that send heartbeats; `sent` is where sending one may lead."""
    return {
        Subscribed: to(actions.subscribed, state),
        CoordinatorFound: to(actions.coordinator_found, state, *sent),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        ErrorReported: to(actions.error_reported, state),
        Refused: to(actions.refused, FATAL),
        Ticked: to(actions.ticked, state, *sent),
    }


def _member(state: ConsumerMemberState, *sent: ConsumerMemberState) -> MemberRow:
    """Cells of JOINING, RECONCILING, ACKNOWLEDGING and STABLE."""
    return {
        **_heartbeating(state, *sent),
        Unsubscribed: to(actions.leave, PREPARE_LEAVING),
        Closed: to(actions.leave, PREPARE_LEAVING),
        Polled: to(actions.poll, state),
        HeartbeatAnswered: to(actions.heartbeat_answered, state, RECONCILING, STABLE),
        TargetResolved: to(actions.target_resolved, state, RECONCILING, STABLE),
        EpochFenced: to(actions.fenced, FENCED, JOINING),
        Ticked: to(actions.ticked, state, *sent, STALE),
    }


TABLE: Table[ConsumerMemberState, ConsumerMember] = MappingProxyType(
    {
        UNSUBSCRIBED: {
            **_outside(UNSUBSCRIBED),
            Polled: to(actions.poll_outside, UNSUBSCRIBED, JOINING),
        },
        JOINING: _member(JOINING),
        RECONCILING: {
            **_member(RECONCILING),
            Polled: to(actions.poll_reconciling, RECONCILING),
            CallbackReturned: to(actions.returned_reconciling, RECONCILING, ACKNOWLEDGING, STABLE),
        },
        ACKNOWLEDGING: _member(ACKNOWLEDGING, RECONCILING, STABLE),
        STABLE: _member(STABLE),
        PREPARE_LEAVING: {
            **_heartbeating(PREPARE_LEAVING),
            Unsubscribed: to(actions.leave_again, PREPARE_LEAVING),
            Closed: to(actions.leave_again, PREPARE_LEAVING),
            HeartbeatAnswered: to(actions.heartbeat_answered, PREPARE_LEAVING),
            EpochFenced: to(actions.fenced_leaving, UNSUBSCRIBED),
            CallbackReturned: to(actions.returned_leaving, UNSUBSCRIBED, PREPARE_LEAVING),
        },
        FENCED: {
            **_outside(FENCED),
            CallbackReturned: to(actions.returned_outside, FENCED, JOINING),
        },
        STALE: {
            **_outside(STALE),
            Polled: to(actions.poll_outside, STALE, JOINING),
            CallbackReturned: to(actions.returned_outside, STALE, JOINING),
        },
        FATAL: {
            Closed: to(actions.close_fatal, FATAL),
        },
    }
)


def step(member: ConsumerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
