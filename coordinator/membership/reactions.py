"""What an error code means to a member: one table, (api, error) -> event.

Sources: AbstractCoordinator and ConsumerCoordinator of kafka-clients 4.1; KAFKA-13419 (the member id outlives an
outdated generation), KAFKA-9823 (stamps), KIP-394 (MEMBER_ID_REQUIRED), KIP-345 (FENCED_INSTANCE_ID is the end).
One difference is on purpose: COORDINATOR_LOAD_IN_PROGRESS on SyncGroup is fatal to the Java consumer, because its
brokers never answer it there; ours waits, which harms nobody.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.events import (
    CoordinatorLoading,
    CoordinatorMoved,
    GenerationOutdated,
    MemberForgotten,
    Refusal,
    Refused,
    RejoinRequested,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the wire says when there is no answer at all; not a Kafka error.
UNANSWERED = "UNANSWERED"

_IN_THE_GROUP: Mapping[str, type[Refusal]] = {
    "REBALANCE_IN_PROGRESS": RejoinRequested,
    "ILLEGAL_GENERATION": GenerationOutdated,
    "UNKNOWN_MEMBER_ID": MemberForgotten,
    "NOT_COORDINATOR": CoordinatorMoved,
    "COORDINATOR_NOT_AVAILABLE": CoordinatorMoved,
    "COORDINATOR_LOAD_IN_PROGRESS": CoordinatorLoading,
    UNANSWERED: CoordinatorMoved,
}

#: (api, error) -> what it is to the member. A pair that is not here is `Refused` for Join, Sync and Heartbeat,
#: and nothing at all (None) for the others: their callers learn of it as the outcome of their commit.
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
    """The event that an error is to the member who sent `api`; None when it concerns only the caller."""
    event = REACTIONS.get((api, error), Refused if api in _MUST_SUCCEED else None)
    return None if event is None else event(stamp=stamp, api=api, error=error, sent_ns=sent_ns)
