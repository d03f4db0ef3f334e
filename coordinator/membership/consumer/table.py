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
from coordinator.membership.consumer.member import ConsumerMember
from coordinator.membership.consumer.member import ConsumerMemberState as S
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

MemberRow = Row[S, ConsumerMember]

_CALLBACK_RUNS = "a callback is running"
_EARLIER, _LAST = "from an earlier callback", "from the last callback"
_NO_POLL, _POLLED = "poll interval expired", "poll interval not expired"


def _acknowledged(waits: str, before: str = "") -> Mapping[S, str]:
    """Where ACKNOWLEDGING leads when a heartbeat may be sent; `waits` says why none is."""
    return {
        S.ACKNOWLEDGING: f"{before}{waits}",
        S.RECONCILING: f"{before}heartbeat sent, newer target",
        S.STABLE: f"{before}heartbeat sent, no newer target",
    }


def _outside(state: S) -> MemberRow:
    """Cells of the states without an epoch that send nothing."""
    return {
        Subscribed: to(actions.subscribed, state),
        Unsubscribed: to(actions.leave_outside, S.UNSUBSCRIBED),
        Closed: to(actions.leave_outside, S.UNSUBSCRIBED),
        CoordinatorFound: to(actions.coordinator_found_outside, state),
        CoordinatorUnknown: to(actions.coordinator_unknown_outside, state),
    }


def _heartbeating(state: S) -> MemberRow:
    """Cells of the states that send heartbeats."""
    return {
        Subscribed: to(actions.subscribed, state),
        CoordinatorFound: to(actions.coordinator_found, state),
        CoordinatorUnknown: to(actions.coordinator_unknown, state),
        CoordinatorMoved: to(actions.coordinator_moved, state),
        CoordinatorLoading: to(actions.coordinator_loading, state),
        ErrorReported: to(actions.error_reported, state),
        Refused: to(actions.refused, S.FATAL),
        Ticked: to(actions.ticked, state),
    }


def _member(state: S) -> MemberRow:
    """Cells of JOINING, RECONCILING, ACKNOWLEDGING and STABLE."""
    return {
        **_heartbeating(state),
        Unsubscribed: to(actions.leave, S.PREPARE_LEAVING),
        Closed: to(actions.leave, S.PREPARE_LEAVING),
        Polled: to(actions.poll, state),
        HeartbeatAnswered: to(actions.heartbeat_answered, state),
        TargetResolved: to(actions.target_resolved, state),
        EpochFenced: to(
            actions.fenced,
            when={
                S.FENCED: f"owns partitions or {_CALLBACK_RUNS}",
                S.JOINING: "owns nothing and no callback is running",
            },
        ),
        Ticked: to(actions.ticked, when={state: _POLLED, S.STALE: _NO_POLL}),
    }


TABLE: Table[S, ConsumerMember] = MappingProxyType(
    {
        S.UNSUBSCRIBED: {
            **_outside(S.UNSUBSCRIBED),
            Polled: to(
                actions.poll_outside,
                when={S.UNSUBSCRIBED: "no subscription or closed", S.JOINING: "subscribed and not closed"},
            ),
        },
        S.JOINING: {
            **_member(S.JOINING),
            HeartbeatAnswered: to(
                actions.heartbeat_answered,
                when={S.JOINING: "without an assignment", S.RECONCILING: "with an assignment"},
            ),
            # The first target is always to be reconciled, and a member that joins owns nothing.
            TargetResolved: to(actions.target_resolved, S.RECONCILING),
            EpochFenced: to(actions.fenced, S.JOINING),
        },
        S.RECONCILING: {
            # No answer ends a reconciliation: even the partitions reconciled last are another target when they return.
            **_member(S.RECONCILING),
            Polled: to(actions.poll_reconciling, S.RECONCILING),
            CallbackReturned: to(
                actions.returned_reconciling,
                when={
                    S.RECONCILING: "not assigned yet, or heartbeat sent with a newer target waiting",
                    S.ACKNOWLEDGING: "assigned, a heartbeat is outstanding or coordinator unknown",
                    S.STABLE: "assigned, heartbeat sent, no newer target",
                },
            ),
        },
        S.ACKNOWLEDGING: {
            **_member(S.ACKNOWLEDGING),
            CoordinatorFound: to(actions.coordinator_found, when=_acknowledged("a heartbeat is outstanding")),
            HeartbeatAnswered: to(actions.heartbeat_answered, when=_acknowledged("coordinator unknown")),
            Ticked: to(actions.ticked, when={**_acknowledged("no heartbeat sent", f"{_POLLED}, "), S.STALE: _NO_POLL}),
        },
        S.STABLE: {
            **_member(S.STABLE),
            HeartbeatAnswered: to(
                actions.heartbeat_answered,
                when={S.STABLE: "without an assignment or with the same", S.RECONCILING: "with another assignment"},
            ),
            TargetResolved: to(
                actions.target_resolved, when={S.STABLE: "the same assignment", S.RECONCILING: "another assignment"}
            ),
        },
        S.PREPARE_LEAVING: {
            **_heartbeating(S.PREPARE_LEAVING),
            Unsubscribed: to(actions.leave_again, S.PREPARE_LEAVING),
            Closed: to(actions.leave_again, S.PREPARE_LEAVING),
            HeartbeatAnswered: to(actions.heartbeat_answered, S.PREPARE_LEAVING),
            EpochFenced: to(actions.fenced_leaving, S.UNSUBSCRIBED),
            CallbackReturned: to(actions.returned_leaving, when={S.PREPARE_LEAVING: _EARLIER, S.UNSUBSCRIBED: _LAST}),
        },
        S.FENCED: {
            **_outside(S.FENCED),
            CallbackReturned: to(actions.returned_outside, when={S.FENCED: _EARLIER, S.JOINING: _LAST}),
        },
        S.STALE: {
            **_outside(S.STALE),
            Polled: to(actions.poll_outside, when={S.STALE: _CALLBACK_RUNS, S.JOINING: "no callback is running"}),
            CallbackReturned: to(actions.returned_outside, when={S.STALE: _EARLIER, S.JOINING: _LAST}),
        },
        S.FATAL: {
            Closed: to(actions.close_fatal, S.FATAL),
        },
    }
)


def step(member: ConsumerMember, event: Event, now_ns: int) -> Step:
    """Return the member after `event` at `now_ns`, and the effects, in order."""
    return stepped(TABLE, member, event, now_ns)
