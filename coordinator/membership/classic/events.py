"""Events that only members of the classic protocol receive; the others are in `coordinator.membership.events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.events import Event, Refusal, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One entry of the member list, which only the leader's JoinGroup response has; `metadata` is a subscription."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class SubscriptionChanged(Event):
    """The application subscribed to other topics: the next poll rejoins with them."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unsubscribed(Event):
    """The application unsubscribed: revoke everything, leave, and stay out until the next subscription."""


@dataclass(frozen=True, slots=True)
class RejoinWanted(Event):
    """What the assignment was based on has changed; `trigger` says how: "metadata-changed", "scheduled"."""

    trigger: str


@dataclass(frozen=True, slots=True)
class Joined(Response):
    """JoinGroup succeeded: in a new generation, or in the current one for a static member that returned.

    Only the leader gets `members`; `skip_assignment` says that the old assignment stays (KIP-814).
    """

    member_id: str
    generation: int
    protocol: str
    leader: str
    members: tuple[GroupMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class Decided(Response):
    """The assignor has returned: assignment bytes for every member."""

    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Synced(Response):
    """SyncGroup succeeded: our full assignment in this generation; rejoin after `delay_ms`, if above 0."""

    partitions: frozenset[TopicPartition]
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(Response):
    """A heartbeat succeeded: the coordinator knew this member and generation, after `sent_ns`."""

    sent_ns: int


@dataclass(frozen=True, slots=True)
class MemberIdGiven(Response):
    """MEMBER_ID_REQUIRED: join again under this id (KIP-394)."""

    member_id: str


@dataclass(frozen=True, slots=True)
class RejoinRequested(Refusal):
    """REBALANCE_IN_PROGRESS: the group is preparing a new generation; ours is still valid."""


@dataclass(frozen=True, slots=True)
class MemberForgotten(Refusal):
    """UNKNOWN_MEMBER_ID: the group no longer knows us."""
