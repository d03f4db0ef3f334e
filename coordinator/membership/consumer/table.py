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
    from collections.abc import Mapping

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

_CALLBACK_RUNS = "a callback is running"
_EARLIER, _LAST = "from an earlier callback", "from the last callback"
_NO_POLL, _POLLED = "poll interval expired", "poll interval not expired"


def _acknowledged(waits: str, before: str = "") -> Mapping[ConsumerMemberState, str]:
    """Where ACKNOWLEDGING leads when a heartbeat may be sent; `waits` says why none is."""
    return {
        ACKNOWLEDGING: f"{before}{waits}",
        RECONCILING: f"{before}heartbeat sent, newer target",
        STABLE: f"{before}heartbeat sent, no newer target",
    }


def _outside(state: ConsumerMemberState) -> MemberRow:
    """Cells of the states without an epoch that send nothing."""
    return {
        Subscribed: to(actions.subscribed, state),
        Unsubscribed: to(actions.leave_outside, UNSUBSCRIBED),
        Closed: to(actions.leave_outside, UNSUBSCRIBED),
        CoordinatorFound: to(actions.coordinator_found_outside, state),
        CoordinatorUnknown: to(actions.coordinator_unknown_outside, state),
    }


def _heartbeating(state: ConsumerMemberState) -> MemberRow:
    """Cells of the states that send heartbeats."""
    return {
        Subscribed: to(actions.subscribed, state),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        ErrorReported: to(actions.error_reported, state),
        Refused: to(actions.refused, FATAL),
        Ticked: to(actions.ticked, state),
    }


def _member(state: ConsumerMemberState) -> MemberRow:
    """Cells of JOINING, RECONCILING, ACKNOWLEDGING and STABLE."""
    return {
        **_heartbeating(state),
        Unsubscribed: to(actions.leave, PREPARE_LEAVING),
        Closed: to(actions.leave, PREPARE_LEAVING),
        Polled: to(actions.poll, state),
        HeartbeatAnswered: to(actions.heartbeat_answered, state),
        TargetResolved: to(actions.target_resolved, state),
        EpochFenced: to(
            actions.fenced,
            when={
                FENCED: f"owns partitions or {_CALLBACK_RUNS}",
                JOINING: "owns nothing and no callback is running",
            },
        ),
        Ticked: to(actions.ticked, when={state: _POLLED, STALE: _NO_POLL}),
    }


TABLE: Table[ConsumerMemberState, ConsumerMember] = MappingProxyType(
    {
        UNSUBSCRIBED: {
            **_outside(UNSUBSCRIBED),
            Polled: to(
                actions.poll_outside,
                when={UNSUBSCRIBED: "no subscription or closed", JOINING: "subscribed and not closed"},
            ),
        },
        JOINING: {
            **_member(JOINING),
            HeartbeatAnswered: to(
                actions.heartbeat_answered, when={JOINING: "without an assignment", RECONCILING: "with an assignment"}
            ),
            # The first target is always to be reconciled, and a member that joins owns nothing.
            TargetResolved: to(actions.target_resolved, RECONCILING),
            EpochFenced: to(actions.fenced, JOINING),
        },
        RECONCILING: {
            # No answer ends a reconciliation: even the partitions reconciled last are another target when they return.
            **_member(RECONCILING),
            Polled: to(actions.poll_reconciling, RECONCILING),
            CallbackReturned: to(
                actions.returned_reconciling,
                when={
                    RECONCILING: "not assigned yet, or heartbeat sent with a newer target waiting",
                    ACKNOWLEDGING: "assigned, a heartbeat is outstanding or coordinator unknown",
                    STABLE: "assigned, heartbeat sent, no newer target",
                },
            ),
        },
        ACKNOWLEDGING: {
            **_member(ACKNOWLEDGING),
            CoordinatorFound: to(actions.coordinator_found, when=_acknowledged("a heartbeat is outstanding")),
            HeartbeatAnswered: to(actions.heartbeat_answered, when=_acknowledged("coordinator unknown")),
            Ticked: to(actions.ticked, when={**_acknowledged("no heartbeat sent", f"{_POLLED}, "), STALE: _NO_POLL}),
        },
        STABLE: {
            **_member(STABLE),
            HeartbeatAnswered: to(
                actions.heartbeat_answered,
                when={STABLE: "without an assignment or with the same", RECONCILING: "with another assignment"},
            ),
            TargetResolved: to(
                actions.target_resolved, when={STABLE: "the same assignment", RECONCILING: "another assignment"}
            ),
        },
        PREPARE_LEAVING: {
            **_heartbeating(PREPARE_LEAVING),
            Unsubscribed: to(actions.leave_again, PREPARE_LEAVING),
            Closed: to(actions.leave_again, PREPARE_LEAVING),
            HeartbeatAnswered: to(actions.heartbeat_answered, PREPARE_LEAVING),
            EpochFenced: to(actions.fenced_leaving, UNSUBSCRIBED),
            CallbackReturned: to(actions.returned_leaving, when={PREPARE_LEAVING: _EARLIER, UNSUBSCRIBED: _LAST}),
        },
        FENCED: {
            **_outside(FENCED),
            CallbackReturned: to(actions.returned_outside, when={FENCED: _EARLIER, JOINING: _LAST}),
        },
        STALE: {
            **_outside(STALE),
            Polled: to(actions.poll_outside, when={STALE: _CALLBACK_RUNS, JOINING: "no callback is running"}),
            CallbackReturned: to(actions.returned_outside, when={STALE: _EARLIER, JOINING: _LAST}),
        },
        FATAL: {
            Closed: to(actions.close_fatal, FATAL),
        },
    }
)


def step(member: ConsumerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
