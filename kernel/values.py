"""The values that all packages share.

This module imports nothing of ours, so that pure modules, which must not import sockets, clocks or threads even
indirectly, can use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic; ordered by topic name, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a consumer returns it; `timestamp_ms` is epoch milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of a partition in offset order, returned to a stream by one poll."""

    stream: int
    topic_partition: TopicPartition
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker listens."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (node {self.node_id})"


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of a commit.

    `accepted` holds the acknowledged offsets. `refused` maps other partitions to Kafka's name of the error, or to
    `DROPPED` if the commit was discarded before it was sent, because its generation was lost meanwhile.
    """

    accepted: dict[TopicPartition, int] = field(default_factory=dict)
    refused: dict[TopicPartition, str] = field(default_factory=dict)


#: The offset in OffsetFetch responses, and in 0.8's state, before a partition's first commit.
NO_OFFSET = -1
