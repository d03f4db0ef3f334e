"""DeleteRecords and DescribeLogDirs: the start and the size of logs.

Source: ReplicaManager.deleteRecords and describeLogDirs of Kafka 4.1. All brokers of a machine share one data folder;
each of them describes the logs that it leads.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.refusals import not_led
from kernel.broker.storage.errors import Fenced, OffsetOutOfRange, StorageError
from kernel.topic_names import INTERNAL_TOPICS
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel.broker.cluster.config_store import ConfigStore
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.cluster.led_logs import LedLogs
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.platform.threads import Threads

#: DeleteRecordsRequest.HIGH_WATERMARK, and the low watermark in error responses.
HIGH_WATERMARK, NO_WATERMARK = -1, -1
_SIZE_MAX = 2**62


class RecordHandlers:
    """Works on the logs that this broker leads."""

    def __init__(self, cluster: Cluster, logs: LedLogs, configs: ConfigStore, data_dir: Path, threads: Threads) -> None:
        self._cluster = cluster
        self._logs = logs
        self._configs = configs
        self._data_dir = data_dir
        self._threads = threads

    def table(self) -> HandlerTable:
        return {Api.DeleteRecords: self.delete_records, Api.DescribeLogDirs: self.describe_log_dirs}

    async def delete_records(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        await self._delete(TopicPartition(topic.name, wanted.partition_index), wanted.offset)
                        for wanted in topic.partitions
                    ],
                }
                for topic in body.topics
            ]
        }

    async def _delete(self, tp: TopicPartition, offset: int) -> dict[str, Any]:
        code, low_watermark = ErrorCode.none, NO_WATERMARK
        led = self._logs.get(tp)
        if tp.topic in INTERNAL_TOPICS:
            code = ErrorCode.invalid_topic_exception
        elif led is None:
            code = not_led(self._cluster.snapshot, tp)
        elif not self._configs.of(tp.topic).delete:
            code = ErrorCode.policy_violation
        elif offset < 0 and offset != HIGH_WATERMARK:
            code = ErrorCode.offset_out_of_range
        else:
            try:
                low_watermark = await led.trim(led.end_offset if offset == HIGH_WATERMARK else offset)
            except OffsetOutOfRange:
                code = ErrorCode.offset_out_of_range
            except Fenced:
                code = ErrorCode.not_leader_or_follower
            except StorageError:
                code = ErrorCode.kafka_storage_error
        return {"partition_index": tp.partition, "low_watermark": low_watermark, "error_code": code}

    async def describe_log_dirs(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        wanted = (
            None
            if body.topics is None
            else {TopicPartition(topic.topic, number) for topic in body.topics for number in topic.partitions}
        )
        topics: dict[str, list[dict[str, Any]]] = {}
        for led in self._logs.all():
            tp = led.topic_partition
            if wanted is not None and tp not in wanted:
                continue
            try:
                size = await led.size_from(led.start_offset, _SIZE_MAX)
            except StorageError:
                continue  # resigned since
            row = {"partition_index": tp.partition, "partition_size": size, "offset_lag": 0, "is_future_key": False}
            topics.setdefault(tp.topic, []).append(row)
        disk = await self._threads.run(shutil.disk_usage, self._data_dir)
        result = {
            "error_code": ErrorCode.none,
            "log_dir": str(self._data_dir),
            "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
            "total_bytes": disk.total,
            "usable_bytes": disk.free,
        }
        return {"error_code": ErrorCode.none, "results": [result]}
