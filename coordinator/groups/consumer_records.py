"""The hard state of groups of the `consumer` design: records of `__consumer_offsets` as values.

A key with value None is a tombstone. Not stored are sessions, timers and when topics were last looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from coordinator.groups.partitions import Partitions
    from coordinator.groups.requests import Protocol


@dataclass(frozen=True, slots=True)
class EpochKey:
    """Key of a group's epoch (key version 3). It is the first record of a group and the last tombstone."""

    group_id: str


class EpochRecord(NamedTuple):
    """`metadata_hash` says for which topics the target of this epoch is (`target.metadata_hash`)."""

    epoch: int
    metadata_hash: int


@dataclass(frozen=True, slots=True)
class ClientKey:
    """Key of what a member's client said (key version 5)."""

    group_id: str
    member_id: str


class ClassicTerms(NamedTuple):
    """What a member of the classic protocol joined with (Kafka's ClassicMemberMetadata)."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


class ClientRecord(NamedTuple):
    """A member as its heartbeats, or its JoinGroup, described it; topics are sorted."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    topic_regex: str
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicTerms | None = None


@dataclass(frozen=True, slots=True)
class TargetEpochKey:
    """Key of the epoch that the targets are for (key version 6)."""

    group_id: str


class TargetEpochRecord(NamedTuple):
    epoch: int


@dataclass(frozen=True, slots=True)
class TargetKey:
    """Key of a member's target (key version 7)."""

    group_id: str
    member_id: str


class TargetRecord(NamedTuple):
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class CurrentKey:
    """Key of where a member is (key version 8)."""

    group_id: str
    member_id: str


class CurrentRecord(NamedTuple):
    """A member's epoch, and what it has and gives up."""

    epoch: int
    previous_epoch: int
    state: int  #: as Kafka stores it
    assigned: Partitions
    revoking: Partitions


@dataclass(frozen=True, slots=True)
class RegexKey:
    """Key of the topics that match a regular expression of members (key version 16)."""

    group_id: str
    regex: str


class RegexRecord(NamedTuple):
    """`version` is that of the cluster's metadata; `wall_ms` when they were searched. Topics are sorted."""

    topics: tuple[str, ...]
    version: int
    wall_ms: int


#: As classes, for `isinstance`.
CONSUMER_KEYS = (EpochKey, ClientKey, TargetEpochKey, TargetKey, CurrentKey, RegexKey)
ConsumerKey = EpochKey | ClientKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey

ConsumerChange = (
    tuple[EpochKey, EpochRecord | None]
    | tuple[ClientKey, ClientRecord | None]
    | tuple[TargetEpochKey, TargetEpochRecord | None]
    | tuple[TargetKey, TargetRecord | None]
    | tuple[CurrentKey, CurrentRecord | None]
    | tuple[RegexKey, RegexRecord | None]
)
ConsumerRecord = EpochRecord | ClientRecord | TargetEpochRecord | TargetRecord | CurrentRecord | RegexRecord
