"""ListOffsets (a log's ends, or the first record at or after a time) and OffsetForLeaderEpoch (an epoch's end).

Source: KafkaApis.handleListOffsetRequest and UnifiedLog.fetchOffsetByTimestamp of Kafka 3.9; version 0, which the
original consumers of 0.8 to 1.1 send, by KafkaApis.fetchOffsetsBefore of 1.1.1. For epochs,
Partition.lastOffsetForLeaderEpoch and LeaderEpochFileCache.endOffsetFor of 3.9: a consumer that learns of a new leader
checks whether what it has read still exists (KIP-320), and kafka-python reads on only after that.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.fetch import READ_COMMITTED
from kernel.broker.apis.refusals import not_led, wrong_epoch
from kernel.broker.storage.errors import Fenced, StorageFailed
from kernel.records.records import CorruptRecords, headers_of, is_control, records_of
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.cluster.led_logs import LedLogs
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.broker.storage.logs import ReadableLog
    from kernel.clock import Clock
    from kernel.records.compression import UnpackingTurn

#: ListOffsetsRequest's special timestamps; the local ones are for tiered storage, which is not supported.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5

#: ReplicaManager.isListOffsetsTimestampUnsupported: the first version with a special timestamp. No served version
#: knows others below 0.
_SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
_NEVER = 2**15

#: Partitions handled before other requests are served.
PARTITIONS_PER_PIECE = 100
#: Stand for an unknown epoch in responses.
NO_EPOCH, NO_OFFSET = -1, -1

log = logging.getLogger(__name__)


class OffsetHandlers:
    """Responds from the logs that this broker leads."""

    def __init__(self, cluster: Cluster, logs: LedLogs, turn: UnpackingTurn, clock: Clock) -> None:
        self._cluster = cluster
        self._logs = logs
        self._turn = turn
        self._clock = clock

    def table(self) -> HandlerTable:
        return {Api.ListOffsets: self.list_offsets, Api.OffsetForLeaderEpoch: self.epoch_ends}

    def epoch_ends(self, _: RequestContext, body: Any) -> Mapping[str, Any]:
        return {
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": [self._epoch_end(topic.topic, wanted) for wanted in topic.partitions],
                }
                for topic in body.topics
            ]
        }

    def _epoch_end(self, topic: str, wanted: Any) -> dict[str, Any]:
        tp = TopicPartition(topic, wanted.partition)
        led = self._logs.readable(tp)
        error, epoch, end = ErrorCode.none, NO_EPOCH, NO_OFFSET
        if led is None:
            error = not_led(self._cluster.snapshot, tp)
        elif (wrong := wrong_epoch(led, wanted.current_leader_epoch)) is not None:
            error = wrong
        else:
            epoch, end = epoch_end(led.epochs, led.leader_epoch, led.end_offset, wanted.leader_epoch)
        return {"partition": tp.partition, "error_code": error, "leader_epoch": epoch, "end_offset": end}

    async def list_offsets(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        version, committed = context.version, getattr(body, "isolation_level", 0) == READ_COMMITTED
        topics = []
        for topic in body.topics:
            partitions = []
            for number, partition in enumerate(topic.partitions, 1):
                if version == 0:
                    partitions.append(await self._several(topic.name, partition))
                else:
                    partitions.append(await self._one(topic.name, partition, version, committed=committed))
                if not number % PARTITIONS_PER_PIECE:
                    await asyncio.sleep(0)
            topics.append({"name": topic.name, "partitions": partitions})
        return {"topics": topics}

    async def _several(self, topic: str, wanted: Any) -> dict[str, Any]:
        """Version 0: offsets to begin reading at, descending, by the last write to each of the log's segments.

        Our logs have one segment, and its newest record's time counts as the time of the last write. So a log with
        records has two such offsets, its start and its end, and a time before the newest record's has none.
        """
        tp = TopicPartition(topic, wanted.partition_index)
        led = self._logs.readable(tp)
        if led is None:
            return {"partition_index": tp.partition, "error_code": not_led(self._cluster.snapshot, tp)}
        if wanted.max_num_offsets < 0:  # Kafka fails to allocate an array of that size
            return {"partition_index": tp.partition, "error_code": ErrorCode.unknown_server_error}
        start, end = led.start_offset, led.end_offset
        offsets = [end, start] if end > start else [start]
        try:
            if wanted.timestamp == EARLIEST:
                offsets = [start]
            elif wanted.timestamp != LATEST and wanted.timestamp < self._clock.wall_ms():
                old = end > start and await led.largest_timestamp() <= wanted.timestamp
                offsets = [start] if old else []
        except Fenced:
            return {"partition_index": tp.partition, "error_code": ErrorCode.not_leader_or_follower}
        except StorageFailed:
            return {"partition_index": tp.partition, "error_code": ErrorCode.kafka_storage_error}
        return {
            "partition_index": tp.partition,
            "error_code": ErrorCode.none,
            "old_style_offsets": offsets[: wanted.max_num_offsets],
        }

    async def _one(self, topic: str, wanted: Any, version: int, *, committed: bool) -> dict[str, Any]:
        tp = TopicPartition(topic, wanted.partition_index)
        if wanted.timestamp < 0 and version < _SINCE.get(wanted.timestamp, _NEVER):
            return _refusal(tp, ErrorCode.unsupported_version)
        led = self._logs.readable(tp)
        epoch = getattr(wanted, "current_leader_epoch", -1)
        if led is None:
            return _refusal(tp, not_led(self._cluster.snapshot, tp))
        if (wrong := wrong_epoch(led, epoch)) is not None:
            return _refusal(tp, wrong)
        try:
            offset, timestamp_ms, leader_epoch = await self._found(led, wanted.timestamp, committed)
        except Fenced:
            return _refusal(tp, ErrorCode.not_leader_or_follower)
        except StorageFailed:
            return _refusal(tp, ErrorCode.kafka_storage_error)
        except CorruptRecords as error:  # stored before records were checked, or damaged since
            log.warning("%s: cannot find an offset by time: %s", tp, error)
            return _refusal(tp, ErrorCode.corrupt_message)
        return {
            "partition_index": tp.partition,
            "error_code": ErrorCode.none,
            "timestamp": timestamp_ms,
            "offset": offset,
            "leader_epoch": leader_epoch,
        }

    async def _found(self, led: ReadableLog, timestamp_ms: int, committed: bool) -> tuple[int, int, int]:
        """(offset, timestamp, leader epoch); -1 if there is none or, with `committed`, if it is undecided."""
        end = led.last_stable_offset if committed else led.end_offset
        if timestamp_ms == LATEST:
            return end, -1, led.leader_epoch
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return led.start_offset, -1, led.leader_epoch
        if timestamp_ms == MAX_TIMESTAMP:
            timestamp_ms = await led.largest_timestamp()
        next_offset = led.start_offset
        while timestamp_ms >= 0 and next_offset < end:
            batch = await led.batch_for_timestamp(timestamp_ms, next_offset)
            if batch is None:
                break
            ((header, _),) = headers_of(batch)
            if header.base_offset >= end:
                break
            if is_control(header):  # a record like any other here: reading can begin at its offset
                return header.base_offset, header.max_timestamp, header.leader_epoch
            # Unpacking may take long, and the event loop has to answer heartbeats.
            found = await self._turn.run(_first_at_or_after, batch, led.start_offset, timestamp_ms)
            if found is not None:
                return *found, header.leader_epoch
            next_offset = header.next_offset  # that record has been deleted
        return -1, -1, -1


def epoch_end(epochs: Sequence[tuple[int, int]], leader_epoch: int, end_offset: int, wanted: int) -> tuple[int, int]:
    """The newest epoch up to `wanted` with records, and the start of the next one; NO_EPOCH, NO_OFFSET for none.

    `epochs` are (epoch, its first offset), ascending; the current one counts even before its first write.
    """
    if wanted == leader_epoch:
        return leader_epoch, end_offset
    if wanted > leader_epoch or wanted < 0:
        return NO_EPOCH, NO_OFFSET
    begun = [epoch for epoch, _ in epochs if epoch <= wanted]
    next_begins = next((start for epoch, start in epochs if epoch > wanted), end_offset)
    return (begun[-1] if begun else wanted), next_begins


def _first_at_or_after(batch: bytes, from_offset: int, timestamp_ms: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at or after the time. Raises `CorruptRecords`."""
    for record in records_of(batch):
        if record.offset >= from_offset and record.timestamp >= timestamp_ms:
            return record.offset, record.timestamp
    return None


def _refusal(tp: TopicPartition, code: ErrorCode) -> dict[str, Any]:
    return {"partition_index": tp.partition, "error_code": code, "timestamp": -1, "offset": -1, "leader_epoch": -1}
