"""Effects that only members of the classic protocol ask for; the others are in `coordinator.membership.effects`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.effects import Effect, Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.membership.classic.events import GroupMember
    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class SendJoin(Effect):
    """JoinGroup under `member_id` ('' asks for one)."""

    stamp: int
    member_id: str


@dataclass(frozen=True, slots=True)
class RunAssignor(Effect):
    """As the leader, assign by `protocol` and report Decided.

    `skip_assignment`: the coordinator kept the assignment while a static leader was away. Nothing is assigned and
    Decided is empty, but the leader needs the group's topics, to watch them (KIP-814).
    """

    stamp: int
    protocol: str
    members: tuple[GroupMember, ...]
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SendSync(Effect):
    """SyncGroup; `assignments` is empty for a follower."""

    stamp: int
    identity: Identity
    protocol: str
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Effect):
    """Heartbeat."""

    stamp: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class SendLeave(Effect):
    """LeaveGroup; only an orderly close waits for its response."""

    member_id: str


@dataclass(frozen=True, slots=True)
class Assign(Effect):
    """Notify the listener of the new partitions (even if there are none), look up their positions, start delivery.

    Then report Resumed.
    """

    stamp: int
    partitions: frozenset[TopicPartition]
