"""The hard state: records of `__consumer_offsets` as values. `coordinator.service.record_codec` has the bytes.

A key with value None is a tombstone. Not stored are pending ids, parked requests, timers, and all protocols of a
member but the chosen one (so a reloaded member supports exactly one).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer_records import ConsumerChange

if TYPE_CHECKING:
    from kernel.values import TopicPartition


class GroupKey(NamedTuple):
    """Key of a group's record (key version 2)."""

    group_id: str


class OffsetKey(NamedTuple):
    """Key of a committed offset (key version 1)."""

    group_id: str
    topic: str
    partition: int


@dataclass(slots=True)
class Profile:
    """What a generation knows of a member: who it is, and its subscription under the chosen protocol.

    A member keeps the same profile until one of its fields changes, so its encoded forms are cached here: every
    rebalance of a group lists and stores thousands of them.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    #: Its encoded entry in a leader's JoinGroup answer, after the version (`coordinator.service.group_answers`).
    listed: tuple[int, bytes] | None = field(default=None, compare=False, repr=False)
    #: Its encoded part of a group's record, before the assignment (`coordinator.service.record_codec`).
    stored: bytes | None = field(default=None, compare=False, repr=False)


class MemberRecord(NamedTuple):
    """One member inside a group's record."""

    profile: Profile
    assignment: bytes

    @property
    def member_id(self) -> str:
        return self.profile.member_id


class GroupRecord(NamedTuple):
    """A group after a rebalance; `state_wall_ms` is when it entered its state (epoch ms)."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_wall_ms: int
    members: tuple[MemberRecord, ...]


class OffsetRecord(NamedTuple):
    """A committed offset; `committed_wall_ms` is epoch milliseconds."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_wall_ms: int


class PendingKey(NamedTuple):
    """Key of an offset that takes effect when its producer's transaction commits; its value is an OffsetRecord."""

    producer_id: int
    group_id: str
    topic: str
    partition: int


class Phase(IntEnum):
    """A transaction's phase; the numbers are those of Kafka's TransactionState."""

    EMPTY = 0  #: a producer without a transaction
    ONGOING = 1  #: partitions and groups may be added
    PREPARE_COMMIT = 2  #: decided; markers are being written
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4  #: all markers are written
    COMPLETE_ABORT = 5


@dataclass(frozen=True, slots=True)
class TransactionKey:
    """Key of a transactional id (not a tuple, which would equal a group's key)."""

    transactional_id: str


class TransactionRecord(NamedTuple):
    """A transactional id's producer and its transaction; times are epoch milliseconds."""

    producer_id: int
    producer_epoch: int
    last_epoch: int  #: the previous epoch, for an InitProducerId whose answer was lost (KIP-360)
    timeout_ms: int
    phase: Phase
    groups: tuple[str, ...]  #: whose offsets take part
    started_wall_ms: int
    partitions: tuple[TopicPartition, ...] = ()  #: whose records take part


@dataclass(frozen=True, slots=True)
class ProducerKey:
    """Key of a producer id's fence in this partition."""

    producer_id: int


class ProducerRecord(NamedTuple):
    """The highest epochs seen: the producer's, and that of the coordinator that ended its transactions."""

    producer_epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class ServerKey:
    """Key of a group of the server design."""

    group_id: str


class ServerMember(NamedTuple):
    """One member inside a ServerRecord; topics are sorted."""

    member_id: str
    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


class ServerRecord(NamedTuple):
    """A generation of a group of the server design; `sizes` are its topics' partition counts when it was decided."""

    generation: int
    strategy: str
    sizes: tuple[tuple[str, int], ...]
    members: tuple[ServerMember, ...]


Key = GroupKey | OffsetKey | PendingKey | TransactionKey | ProducerKey

Change = (
    tuple[GroupKey, GroupRecord | None]
    | tuple[OffsetKey, OffsetRecord | None]
    | tuple[PendingKey, OffsetRecord | None]
    | tuple[TransactionKey, TransactionRecord | None]
    | tuple[ProducerKey, ProducerRecord | None]
)

ServerChange = tuple[ServerKey, ServerRecord | None]
#: Any record in one partition of the log.
StoredChange = Change | ServerChange | ConsumerChange
