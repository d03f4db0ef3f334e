"""What clients are told, as values; the doing side gives them their wire form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.errors import Error
from coordinator.groups.requests import NO_GENERATION, NO_PRODUCER, Producer
from coordinator.protocol.server_commands import Commanded

if TYPE_CHECKING:
    from coordinator.groups.records import Profile


class JoinAnswer(NamedTuple):
    """JoinGroup's. Only the leader gets `members`, of each its id, its instance id and its subscription."""

    member_id: str
    error: Error = Error.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[Profile, ...] = ()


class SyncAnswer(NamedTuple):
    """SyncGroup's."""

    error: Error = Error.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """Heartbeat's."""

    error: Error


class Left(NamedTuple):
    """One member of a LeaveAnswer."""

    member_id: str
    instance_id: str | None
    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAnswer:
    """LeaveGroup's; up to v2 the only member's error is the answer's."""

    error: Error = Error.NONE
    members: tuple[Left, ...] = ()


class PartitionError(NamedTuple):
    """One partition of a CommitAnswer or DeleteOffsetsAnswer."""

    topic: str
    partition: int
    error: Error


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """OffsetCommit's."""

    partitions: tuple[PartitionError, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroupAnswer:
    """One group's of a DeleteGroups."""

    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsetsAnswer:
    """OffsetDelete's."""

    error: Error = Error.NONE
    partitions: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAnswer:
    """InitProducerId's, AddOffsetsToTxn's, EndTxn's and WriteTxnMarkers'; the producer is InitProducerId's."""

    error: Error = Error.NONE
    producer: Producer = NO_PRODUCER


Answer = (
    JoinAnswer
    | SyncAnswer
    | HeartbeatAnswer
    | LeaveAnswer
    | CommitAnswer
    | DeleteGroupAnswer
    | DeleteOffsetsAnswer
    | TransactionAnswer
    | Commanded
)

_HEARTBEATS = {error: HeartbeatAnswer(error) for error in Error}


def heartbeat_answer(error: Error) -> HeartbeatAnswer:
    """The one value for each error: heartbeats are most of what a coordinator answers."""
    return _HEARTBEATS[error]
