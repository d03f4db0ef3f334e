"""Requests of clients as values, without a wire version except where it changes the answer.

`token` identifies the request that waits for an answer: any integer, unique while the request is open. Durations are
in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.errors import Error
    from kernel.values import TopicPartition

UNKNOWN_MEMBER = ""  #: in the JoinGroup of a member without an id
NO_GENERATION = -1
MEMBER_ID_BYTES = 37  #: of the random part of a member id, and the hyphen before it


class Protocol(NamedTuple):
    """One assignor that a member supports, and the subscription it sends with it (opaque here)."""

    name: str
    metadata: bytes


class Join(NamedTuple):
    """JoinGroup. `fresh_id` is the random part of the member id, if one has to be created."""

    token: int
    group_id: str
    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int  #: v0 has none: the session timeout then
    protocol_type: str
    protocols: tuple[Protocol, ...]
    fresh_id: str
    instance_id: str | None = None
    must_return_with_id: bool = True  #: v4+ (KIP-394): a new dynamic member first gets MEMBER_ID_REQUIRED
    may_skip_assignment: bool = False  #: v9+ (KIP-814): a restarted static leader learns that it leads

    @property
    def size(self) -> int:
        """Bytes that a group keeps of this member: its identity and the subscriptions of all its protocols."""
        return size_of(self.client_id, self.client_host, self.instance_id, self.protocols)


def size_of(client_id: str, client_host: str, instance_id: str | None, protocols: tuple[Protocol, ...]) -> int:
    """As `Join.size`. Includes the member id, which repeats the client id or the instance id."""
    size = 2 * (len(client_id) + len(instance_id or "")) + len(client_host) + MEMBER_ID_BYTES
    for name, metadata in protocols:
        size += len(name) + len(metadata)
    return size


class Sync(NamedTuple):
    """SyncGroup. Protocol type and name are None up to v4 and mandatory from v5 on."""

    token: int
    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    protocol_is_mandatory: bool = False
    assignments: tuple[tuple[str, bytes], ...] = ()

    @property
    def lacks_protocol(self) -> bool:
        return self.protocol_is_mandatory and (self.protocol_type is None or self.protocol_name is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Heartbeat."""

    token: int
    group_id: str
    member_id: str
    instance_id: str | None = None
    generation: int


class Leaving(NamedTuple):
    """One member of a LeaveGroup; an empty id with an instance id is an administrator's removal."""

    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """LeaveGroup; up to v2 exactly one member."""

    token: int
    group_id: str
    members: tuple[Leaving, ...]


#: The time of a commit that names none: that of its arrival.
NO_TIME = -1


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_wall_ms: int = NO_TIME  #: only version 1 has a time of the client's


class Producer(NamedTuple):
    """One incarnation of a producer. A later one has a higher epoch and fences the earlier ones (KIP-98)."""

    id: int
    epoch: int


NO_PRODUCER = Producer(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """OffsetCommit, or TxnOffsetCommit when there is a `producer`.

    `client_id` names the sender in the trace when there is no member id.
    """

    token: int
    group_id: str
    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    generation: int = NO_GENERATION
    client_id: str = ""
    offsets: tuple[OffsetToCommit, ...]
    producer: Producer | None = None  #: the offsets are pending until its transaction ends
    absent_group_is_named: bool = False  #: v9+: GROUP_ID_NOT_FOUND where older ones get ILLEGAL_GENERATION
    #: Server design: the partitions it refuses, each with its error. None: the classic group decides.
    verdicts: Mapping[tuple[str, int], Error] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """One group of a DeleteGroups."""

    token: int
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets:
    """OffsetDelete (KIP-496)."""

    token: int
    group_id: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    """InitProducerId with a transactional id. `fresh_id` is a new producer id, if one is needed."""

    token: int
    transactional_id: str
    timeout_ms: int
    producer: Producer = NO_PRODUCER  #: the identity claimed by a producer that recovers from an error (KIP-360)
    fresh_id: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AddGroup:
    """AddOffsetsToTxn: adds the group's offsets to the transaction."""

    token: int
    transactional_id: str
    producer: Producer
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """AddPartitionsToTxn: adds these partitions, which exist, to the transaction."""

    token: int
    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """EndTxn."""

    token: int
    transactional_id: str
    producer: Producer
    commits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """WriteTxnMarkers for this partition: commit or drop the producer's pending offsets."""

    token: int
    producer: Producer
    coordinator_epoch: int  #: of the coordinator that decided it; older ones are refused
    commits: bool


TransactionRequest = InitProducer | AddGroup | AddPartitions | EndTransaction
Request = Join | Sync | Heartbeat | Leave | Commit | DeleteGroup | DeleteOffsets | TransactionRequest | Mark
