"""What an error code means to a member of the classic protocol: one table, (api, error) -> event.

Sources: AbstractCoordinator and ConsumerCoordinator of kafka-clients 4.1; KAFKA-13419 (the member id outlives an
outdated generation), KAFKA-9823 (stamps), KIP-394 (MEMBER_ID_REQUIRED), KIP-345 (FENCED_INSTANCE_ID is the end).
One difference is deliberate: COORDINATOR_LOAD_IN_PROGRESS on SyncGroup is fatal to the Java consumer, because its
brokers never return it there; ours retries, which is harmless.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.classic.events import MemberForgotten, RejoinRequested
from coordinator.membership.events import (
    UNANSWERED,
    CoordinatorLoading,
    CoordinatorMoved,
    GenerationOutdated,
    Refusal,
    Refused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_IN_THE_GROUP: Mapping[str, type[Refusal]] = {
    "REBALANCE_IN_PROGRESS": RejoinRequested,
    "ILLEGAL_GENERATION": GenerationOutdated,
    "UNKNOWN_MEMBER_ID": MemberForgotten,
    "NOT_COORDINATOR": CoordinatorMoved,
    "COORDINATOR_NOT_AVAILABLE": CoordinatorMoved,
    "COORDINATOR_LOAD_IN_PROGRESS": CoordinatorLoading,
    UNANSWERED: CoordinatorMoved,
}

#: (api, error) -> the member's event. Any other error is fatal (`Refused`) in JoinGroup, SyncGroup and Heartbeat, and
#: no event in the other APIs: their callers see it in the result of their call.
REACTIONS: Mapping[tuple[str, str], type[Refusal]] = MappingProxyType(
    {
        **{
            (api, error): event
            for api in ("JoinGroup", "SyncGroup", "Heartbeat")
            for error, event in _IN_THE_GROUP.items()
        },
        ("JoinGroup", "REQUEST_TIMED_OUT"): CoordinatorLoading,
        ("SyncGroup", "REQUEST_TIMED_OUT"): CoordinatorLoading,
        ("OffsetCommit", "REBALANCE_IN_PROGRESS"): RejoinRequested,
        ("OffsetCommit", "ILLEGAL_GENERATION"): GenerationOutdated,
        ("OffsetCommit", "UNKNOWN_MEMBER_ID"): MemberForgotten,
        ("OffsetCommit", "FENCED_INSTANCE_ID"): Refused,
        ("OffsetCommit", "NOT_COORDINATOR"): CoordinatorMoved,
        ("OffsetCommit", "COORDINATOR_NOT_AVAILABLE"): CoordinatorMoved,
        ("OffsetCommit", "REQUEST_TIMED_OUT"): CoordinatorMoved,
        ("OffsetCommit", UNANSWERED): CoordinatorMoved,
        ("OffsetFetch", "NOT_COORDINATOR"): CoordinatorMoved,
        ("OffsetFetch", "COORDINATOR_NOT_AVAILABLE"): CoordinatorMoved,
        ("OffsetFetch", UNANSWERED): CoordinatorMoved,
    }
)

_MUST_SUCCEED = frozenset({"JoinGroup", "SyncGroup", "Heartbeat"})


def reaction(api: str, error: str, *, stamp: int, sent_ns: int) -> Refusal | None:
    """Return the event for an error in the response to `api`; None when it concerns only the caller."""
    event = REACTIONS.get((api, error), Refused if api in _MUST_SUCCEED else None)
    return None if event is None else event(stamp=stamp, api=api, error=error, sent_ns=sent_ns)
