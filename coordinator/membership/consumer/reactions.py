"""What an error code means to a member of a KIP-848 group: one table, error of ConsumerGroupHeartbeat -> event.

As in AbstractHeartbeatRequestManager.onErrorResponse and ConsumerHeartbeatRequestManager of kafka-clients 4.1.1. Any
other error is fatal (UNSUPPORTED_ASSIGNOR, UNRELEASED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED and so on). An error of
another request concerns only its caller (STALE_MEMBER_EPOCH does not mean that the member is fenced), unless it says
that the coordinator is elsewhere.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.consumer.events import EpochFenced, ErrorReported
from coordinator.membership.events import UNANSWERED, CoordinatorLoading, CoordinatorMoved, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.membership.events import Refusal

HEARTBEAT = "ConsumerGroupHeartbeat"

REACTIONS: Mapping[str, type[Refusal]] = MappingProxyType(
    {
        "FENCED_MEMBER_EPOCH": EpochFenced,
        "UNKNOWN_MEMBER_ID": EpochFenced,
        "NOT_COORDINATOR": CoordinatorMoved,
        "COORDINATOR_NOT_AVAILABLE": CoordinatorMoved,
        UNANSWERED: CoordinatorMoved,
        "COORDINATOR_LOAD_IN_PROGRESS": CoordinatorLoading,
        "TOPIC_AUTHORIZATION_FAILED": ErrorReported,
    }
)


def reaction(api: str, error: str, *, stamp: int, sent_ns: int) -> Refusal | None:
    """Return the event for an error in the response to `api`; None when it concerns only the caller."""
    event = REACTIONS.get(error, Refused)
    if api != HEARTBEAT and event is not CoordinatorMoved:
        return None
    return event(stamp=stamp, api=api, error=error, sent_ns=sent_ns)
