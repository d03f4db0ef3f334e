"""The values that everything speaks of.

This module imports nothing of ours, so that deciding modules (which may not reach sockets, clocks or
threads, not through others either) can use it freely.
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
    """One record as a consumer hands it out; `timestamp_ms` is epoch milliseconds."""

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
    """Records of one partition, in offset order, handed to one stream by one poll."""

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
    """What became of one commit.

    `accepted` holds what the authority has acknowledged; `refused` maps a partition to the name of the
    error it was refused with (Kafka's error names, or `DROPPED` when the commit was discarded before it was
    sent because its generation had been lost meanwhile).
    """

    accepted: dict[TopicPartition, int] = field(default_factory=dict)
    refused: dict[TopicPartition, str] = field(default_factory=dict)


#: "No such offset": what OffsetFetch answers, and what 0.8 keeps before a partition's first commit.
NO_OFFSET = -1
