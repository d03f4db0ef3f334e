"""Reads records and offsets from a partition's leader. Both backends share it.

Nothing here retries: the caller decides when to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.client.connection import REQUEST_TIMEOUT_MS, BrokerConnection
from kernel.records.records import readable
from kernel.values import NO_OFFSET, Record, TopicPartition
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.records.records import CorruptRecords

EARLIEST, LATEST = -2, -1  #: ListOffsets' special timestamps


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """`error` is '' or Kafka's name; `next_offset` is where to continue (past control batches and old records).

    `corrupt` says why the batch at `next_offset` is unreadable; `records` are the ones before it.
    """

    error: str
    high_watermark: int
    records: tuple[Record, ...]
    next_offset: int
    corrupt: CorruptRecords | None = None
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchedBytes:
    """As `FetchedPartition`, with undecoded batches: a client may handle broken ones in its own way."""

    error: str
    high_watermark: int
    data: bytes
    log_start_offset: int = -1
    aborted: tuple[tuple[int, int], ...] = ()  #: (producer id, first offset), for `records.decode`


async def fetch(  # noqa: PLR0913  # Fetch's own fields, each by its name
    connection: BrokerConnection,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 52_428_800,
    partition_max_bytes: int = 1_048_576,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    committed: bool = False,
) -> dict[TopicPartition, FetchedPartition]:
    """One Fetch from the broker that leads these partitions. Raises as `BrokerConnection.call`.

    `committed`: skip aborted transactions, and end before the first open one (isolation.level).

    Defaults are Kafka's (fetch.max.wait.ms, fetch.min.bytes, fetch.max.bytes, max.partition.fetch.bytes).
    """
    fetched = await fetch_bytes(
        connection,
        offsets,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
        timeout_ms=timeout_ms,
        committed=committed,
    )
    return {
        tp: FetchedPartition(
            part.error, part.high_watermark, *readable(tp, part.data, offsets[tp], part.aborted), part.log_start_offset
        )
        for tp, part in fetched.items()
    }


async def fetch_bytes(  # noqa: PLR0913  # as above
    connection: BrokerConnection,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_max_bytes: int,
    timeout_ms: int,
    committed: bool = False,
) -> dict[TopicPartition, FetchedBytes]:
    """As `fetch`, without decoding. Raises as `BrokerConnection.call`.

    Partitions are requested in the order of `offsets`: the first one with data returns a whole batch (KIP-74).
    Topics are named (version 12 at most); there is no fetch session (KIP-227: session 0, epoch -1).
    """
    body = {
        "replica_id": -1,
        "max_wait": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": int(committed),
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "fetch_offset": offset,
                        "current_leader_epoch": -1,
                        "partition_max_bytes": partition_max_bytes,
                    }
                    for partition, offset in partitions
                ],
            }
            for topic, partitions in _by_topic(offsets).items()
        ],
    }
    version = min(12, connection.version_of(Api.Fetch))
    answer = await connection.call(Api.Fetch, body, version=version, timeout_ms=timeout_ms + max_wait_ms)
    if error := error_name(getattr(answer, "error_code", ErrorCode.none)):
        return {tp: FetchedBytes(error, -1, b"") for tp in offsets}
    return {
        TopicPartition(topic.topic, partition.partition_index): FetchedBytes(
            error_name(partition.error_code),
            partition.high_watermark,
            partition.records or b"",
            getattr(partition, "log_start_offset", -1),
            tuple(
                (one.producer_id, one.first_offset) for one in getattr(partition, "aborted_transactions", None) or ()
            ),
        )
        for topic in answer.responses
        for partition in topic.partitions
    }


async def list_offset(
    connection: BrokerConnection,
    timestamps: Mapping[TopicPartition, int],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    committed: bool = False,
) -> dict[TopicPartition, tuple[str, int]]:
    """(error, offset) for each partition: of LATEST (-1), EARLIEST (-2), or the first record at or after epoch ms.

    `committed`: LATEST is the last stable offset. The offset is -1 if no record is that recent. Raises as
    `BrokerConnection.call`. Brokers before 0.10.1 answer a time with the start of the segment written before it.
    """
    body = {
        "replica_id": -1,
        "isolation_level": int(committed),
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": partition,
                        "current_leader_epoch": -1,
                        "timestamp": timestamp,
                        "max_num_offsets": 1,
                    }
                    for partition, timestamp in partitions
                ],
            }
            for topic, partitions in _by_topic(timestamps).items()
        ],
    }
    version = min(7, connection.version_of(Api.ListOffsets))
    answer = await connection.call(Api.ListOffsets, body, version=version, timeout_ms=timeout_ms)
    return {
        TopicPartition(topic.name, partition.partition_index): (error_name(partition.error_code), _offset_of(partition))
        for topic in answer.topics
        for partition in topic.partitions
    }


def _by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, list[tuple[int, int]]]:
    """(partition, its number) by topic, in the order given."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for tp, number in numbers.items():
        topics.setdefault(tp.topic, []).append((tp.partition, number))
    return topics


def _offset_of(answer: Any) -> int:
    """Version 0 returns a list, which is empty if there is no such offset."""
    several = getattr(answer, "old_style_offsets", None)
    offset: int = answer.offset if several is None else next(iter(several), NO_OFFSET)
    return offset
