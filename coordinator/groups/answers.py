"""Answers to clients, as values; the service side encodes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.errors import Error
from coordinator.groups.requests import NO_GENERATION, NO_PRODUCER, Producer
from coordinator.protocol.server.commands import CommandAnswer

if TYPE_CHECKING:
    from coordinator.groups.partitions import Partitions
    from coordinator.groups.records import Profile


class JoinAnswer(NamedTuple):
    """To JoinGroup. Only the leader gets `members`: id, instance id and subscription of each."""

    member_id: str
    error: Error = Error.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[Profile, ...] = ()


class SyncAnswer(NamedTuple):
    """The answer to SyncGroup."""

    error: Error = Error.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The answer to Heartbeat."""

    error: Error


class Left(NamedTuple):
    """One member of a LeaveAnswer."""

    member_id: str
    instance_id: str | None
    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAnswer:
    """To LeaveGroup. Up to v2 the only member's error is the answer's error."""

    error: Error = Error.NONE
    members: tuple[Left, ...] = ()


class PartitionError(NamedTuple):
    """One partition of a CommitAnswer or DeleteOffsetsAnswer."""

    topic: str
    partition: int
    error: Error


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """The answer to OffsetCommit and TxnOffsetCommit."""

    partitions: tuple[PartitionError, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroupAnswer:
    """For one group of a DeleteGroups."""

    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsetsAnswer:
    """The answer to OffsetDelete."""

    error: Error = Error.NONE
    partitions: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAnswer:
    """To InitProducerId (with the producer), AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and WriteTxnMarkers."""

    error: Error = Error.NONE
    producer: Producer = NO_PRODUCER


class ConsumerHeartbeatAnswer(NamedTuple):
    """To ConsumerGroupHeartbeat. `assignment` is None if it has not changed."""

    error: Error = Error.NONE
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    message: str | None = None


Answer = (
    JoinAnswer
    | SyncAnswer
    | HeartbeatAnswer
    | LeaveAnswer
    | CommitAnswer
    | DeleteGroupAnswer
    | DeleteOffsetsAnswer
    | TransactionAnswer
    | CommandAnswer
    | ConsumerHeartbeatAnswer
)


def refusal_like(answer: Answer, error: Error) -> Answer:
    """What a client gets instead of `answer`, which could not be stored."""
    match answer:
        case ConsumerHeartbeatAnswer():
            return ConsumerHeartbeatAnswer(error)
        case LeaveAnswer():
            return LeaveAnswer(error=error)
        case JoinAnswer():
            return JoinAnswer(error=error, member_id="")
        case SyncAnswer():
            return SyncAnswer(error=error)
        case HeartbeatAnswer():
            return heartbeat_answer(error)
        case DeleteGroupAnswer():
            return DeleteGroupAnswer(error)
        case _:
            raise AssertionError(f"no request of a member is answered with {answer}")


_HEARTBEATS = {error: HeartbeatAnswer(error) for error in Error}


def heartbeat_answer(error: Error) -> HeartbeatAnswer:
    """One shared value per error: most answers of a coordinator are to heartbeats."""
    return _HEARTBEATS[error]
