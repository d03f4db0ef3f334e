"""Records are deleted after their retention, and by DeleteRecords: on a live broker."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from kernel.broker.broker import Broker
from kernel.client.connection import BrokerConnection
from kernel.client.reads import list_offset
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, running_broker

HOUR_MS = 3_600_000
OFTEN = {"log.retention.check.interval.ms": "50"}


async def create(broker: Broker, connection: BrokerConnection, name: str, **configs: str) -> None:
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": rows}
    answer = await connection.call(Api.CreateTopics, {"topics": [topic], "timeout": 10_000})
    assert answer.topics[0].error_code is ErrorCode.none, answer
    # ZooKeeper names a leader before it has taken over.
    await until(lambda: broker.cluster.leads(TopicPartition(name, 0)), 60, f"{name} to be led")


async def produce(connection: BrokerConnection, name: str, *ages_ms: int) -> None:
    """Produce one batch for each age."""
    now_ms = round(time.time() * 1000)
    for age_ms in ages_ms:
        records = build_batch([NewRecord(b"v", b"k", now_ms - age_ms)])
        data = [{"name": name, "partition_data": [{"index": 0, "records": records}]}]
        answer = await connection.call(Api.Produce, {"acks": -1, "timeout": 1000, "topic_data": data}, version=9)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none, answer


async def begin(connection: BrokerConnection, name: str) -> int:
    tp = TopicPartition(name, 0)
    error, offset = (await list_offset(connection, {tp: -2}))[tp]
    assert not error
    return offset


async def test_expired_batches_are_deleted_and_others_stay(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, settings=OFTEN) as broker, client_of(broker) as client:
        connection = await client.any_connection()
        await create(broker, connection, "kept", retention_ms="-1")
        await create(broker, connection, "compacted", retention_ms=str(HOUR_MS), cleanup_policy="compact")
        await create(broker, connection, "by-default")
        await create(broker, connection, "short", retention_ms=str(HOUR_MS))
        await create(broker, connection, "small", retention_bytes="1")
        ages_ms = (200 * HOUR_MS, 3 * HOUR_MS, 2 * HOUR_MS, 0)
        for name in ("kept", "compacted", "by-default", "small", "short"):
            await produce(connection, name, *ages_ms)

        async def begins() -> dict[str, int]:
            names = ("kept", "compacted", "by-default", "small", "short")
            return {name: await begin(connection, name) for name in names}

        expected = {"kept": 0, "compacted": 0, "by-default": 1, "small": 3, "short": 3}

        async def gone() -> bool:
            return await begins() == expected

        await until(gone, 60, "records to be removed")
        row = {"name": "retention.ms", "config_operation": 0, "value": str(HOUR_MS)}
        resource = {"resource_type": 2, "resource_name": "kept", "configs": [row]}
        body = {"resources": [resource], "validate_only": False}
        altered: Any = await connection.call(Api.IncrementalAlterConfigs, body)
        assert altered.responses[0].error_code is ErrorCode.none
        expected["kept"] = 3
        await until(gone, 60, "a shorter retention to hold without a restart")


async def test_deleted_records_stay_deleted_over_a_restart_and_offsets_go_on(chroot: str, tmp_path: Path) -> None:
    async def delete(connection: BrokerConnection, offset: int) -> tuple[ErrorCode, int]:
        topic = {"name": "t", "partitions": [{"partition_index": 0, "offset": offset}]}
        answer = await connection.call(Api.DeleteRecords, {"topics": [topic], "timeout": 1000})
        found = answer.topics[0].partitions[0]
        return found.error_code, found.low_watermark

    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        connection = await client.any_connection()
        await create(broker, connection, "t")
        await produce(connection, "t", 0, 0, 0)
        assert await delete(connection, 4) == (ErrorCode.offset_out_of_range, -1)
        assert await begin(connection, "t") == 0, "refused requests deleted nothing"
        assert await delete(connection, 2) == (ErrorCode.none, 2)
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        connection = await client.any_connection()
        tp = TopicPartition("t", 0)
        await until(lambda: broker.cluster.leads(tp), 60, "the partition to be led again")
        assert await begin(connection, "t") == 2
        assert await delete(connection, -1) == (ErrorCode.none, 3)
        await produce(connection, "t", 0)
        ends = await list_offset(connection, {tp: -1})
        assert (await begin(connection, "t"), ends[tp]) == (3, ("", 4))
