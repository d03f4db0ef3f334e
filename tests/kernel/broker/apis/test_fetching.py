"""Fetch and ListOffsets against a live broker: long poll, limits, refusals, topic ids, points in time."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.storage.reading import Reader
from kernel.client.connection import BrokerConnection
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api
from tests.kernel.broker.apis.test_data_plane import TP, batch, data_plane, produce

OTHER = TopicPartition("t", 1)


async def test_long_poll_is_answered_with_new_records_or_empty_after_its_wait(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (broker, _, connection):
        begun = time.monotonic()
        assert (await fetch(connection, {TP: 0, OTHER: 0}, max_wait_ms=100))[TP].records == ()
        assert 0.09 <= time.monotonic() - begun < 15
        waiting = asyncio.create_task(fetch(connection, {TP: 0, OTHER: 0}, max_wait_ms=20_000))
        other = await BrokerConnection.open(broker.address.host, broker.address.port, "producer")
        assert await produce(other, batch(b"news")) == ("", 0)
        got = await asyncio.wait_for(waiting, 15)
        assert [record.value for record in got[TP].records] == [b"news"]
        assert got[OTHER].records == ()
        large = asyncio.create_task(fetch(connection, {TP: 1}, max_wait_ms=20_000, min_bytes=1000))
        sent = 0
        while not large.done() and sent < 20:
            await produce(other, batch(b"x" * 10))
            sent += 1
        got = await asyncio.wait_for(large, 15)
        assert len(got[TP].records) > 5, "min_bytes were waited for"
        other.close()


async def test_limits_apply_except_to_the_first_batch(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for tp in (TP, OTHER):
            for _number in range(3):
                await produce(connection, batch(b"x" * 1000), tp)
        got = await fetch(connection, {TP: 0, OTHER: 0}, partition_max_bytes=10)
        assert (got[TP].next_offset, got[OTHER].next_offset) == (1, 0)
        got = await fetch(connection, {TP: 0, OTHER: 0}, partition_max_bytes=2500)
        assert (got[TP].next_offset, got[OTHER].next_offset) == (2, 2)
        got = await fetch(connection, {TP: 0, OTHER: 0}, max_bytes=2500)
        assert (got[TP].next_offset, got[OTHER].next_offset) == (2, 0)
        assert got[OTHER].error == ""


async def test_fetch_with_min_bytes_above_max_bytes_is_answered_with_max_bytes(chroot: str, tmp_path: Path) -> None:
    """KafkaApis.handleFetchRequest: fetchMinBytes = min(minBytes, fetchMaxBytes)."""
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for _number in range(3):
            await produce(connection, batch(b"x" * 1000))
        waiting = fetch(connection, {TP: 0}, min_bytes=1_000_000, max_bytes=2_500, max_wait_ms=20_000)
        got = await asyncio.wait_for(waiting, 10)
        assert got[TP].next_offset == 2


async def test_fetch_reads_no_records_while_it_waits(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    batches = Reader.batches

    def noted(self: Reader, segments: Any, offset: int, *limits: Any) -> tuple[bytes, int]:
        reads.append(offset)
        return batches(self, segments, offset, *limits)

    monkeypatch.setattr(Reader, "batches", noted)
    async with data_plane(chroot, tmp_path) as (broker, _, connection):
        other = await BrokerConnection.open(broker.address.host, broker.address.port, "producer")
        one = len(batch(b"x" * 1000))
        await produce(other, batch(b"x" * 1000))
        waiting = asyncio.create_task(
            fetch(connection, {TP: 0, OTHER: 0}, min_bytes=6 * one, max_wait_ms=20_000, partition_max_bytes=4 * one)
        )
        for number in range(6):  # 4 from the first partition, which has more, and 2 from the other one
            assert not waiting.done()
            assert reads == []
            await produce(other, batch(b"x" * 1000), TP if number < 4 else OTHER)
        got = await asyncio.wait_for(waiting, 10)
        assert (got[TP].next_offset, got[OTHER].next_offset) == (4, 2)
        assert reads == [0, 0]
        other.close()


async def test_fetch_is_refused_as_kafka_refuses_it(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (broker, client, connection):
        await produce(connection, batch(b"a", b"b"))
        wrong = {TP: 3, OTHER: -1, TopicPartition("t", 2): 0, TopicPartition("absent", 0): 0}
        begun = time.monotonic()
        got = await fetch(connection, wrong, max_wait_ms=20_000)
        assert time.monotonic() - begun < 15, "an error is answered at once"
        assert [partition.error for partition in got.values()] == [
            "OFFSET_OUT_OF_RANGE",
            "OFFSET_OUT_OF_RANGE",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ]

        async def one(version: int, topic: dict[str, Any], **fields: Any) -> Any:
            partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, **fields}
            body = {"max_wait": 0, "max_bytes": 10_000, "topics": [{**topic, "partitions": [partition]}]}
            answer = await connection.call(Api.Fetch, body, version=version)
            return answer.responses[0].partitions[0]

        epoch = broker.cluster.snapshot.topics["t"].partitions[0].leader_epoch
        name, topic_id = {"topic": "t"}, {"topic_id": client.metadata.topic_ids["t"]}
        assert (await one(12, name, current_leader_epoch=epoch)).error_code is ErrorCode.none
        assert (await one(12, name, current_leader_epoch=epoch + 1)).error_code is ErrorCode.unknown_leader_epoch
        if epoch > 0:
            assert (await one(12, name, current_leader_epoch=epoch - 1)).error_code is ErrorCode.fenced_leader_epoch
        assert (await one(17, topic_id)).records == (await one(4, name)).records != b""
        assert (await one(13, {"topic_id": uuid.uuid4()})).error_code is ErrorCode.unknown_topic_id
        session = await connection.call(Api.Fetch, {"session_id": 5, "session_epoch": 1, "topics": ()}, version=12)
        assert session.error_code is ErrorCode.fetch_session_id_not_found


async def test_waiting_fetch_ends_when_the_topic_is_deleted(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (broker, _, connection):
        waiting = asyncio.create_task(fetch(connection, {TP: 0}, max_wait_ms=20_000))
        await asyncio.sleep(0)
        other = await BrokerConnection.open(broker.address.host, broker.address.port, "admin")
        await other.call(Api.DeleteTopics, {"topic_names": ["t"], "timeout": 5000}, version=5)
        assert (await asyncio.wait_for(waiting, 15))[TP].error in (
            "NOT_LEADER_OR_FOLLOWER",
            "UNKNOWN_TOPIC_OR_PARTITION",
        )
        other.close()


async def test_closed_connection_leaves_no_waiting_fetch_behind(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (broker, _, _connection):

        def handled() -> list[asyncio.Task[Any]]:
            return [task for task in asyncio.all_tasks() if "FetchHandlers.fetch" in repr(task.get_coro())]

        other = await BrokerConnection.open(broker.address.host, broker.address.port, "gone")
        waiting = asyncio.create_task(fetch(other, {TP: 0}, max_wait_ms=600_000))
        await until(handled, 60, "the fetch to wait")
        other.close()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: not handled(), 60, "it to be cancelled")


@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_offsets_are_found_by_end_and_by_point_in_time(codec: str, chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):

        async def offset(timestamp: int, version: int = 7) -> tuple[str, int, int]:
            partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
            body = {"replica_id": -1, "topics": [{"name": "t", "partitions": [partition]}]}
            found = (await connection.call(Api.ListOffsets, body, version=version)).topics[0].partitions[0]
            return error_name(found.error_code), found.offset, found.timestamp

        assert await offset(-3) == ("", -1, -1), "no record, no largest timestamp"
        assert await offset(0) == ("", -1, -1)
        for times in ((100, 200, 300), (250, 700, 400)):
            records = [NewRecord(b"v", None, time_ms) for time_ms in times]
            await produce(connection, build_batch(records, codec=codec))
        assert await offset(EARLIEST) == ("", 0, -1)
        assert await offset(LATEST) == ("", 6, -1)
        assert await offset(0) == ("", 0, 100)
        assert await offset(101) == ("", 1, 200)
        assert await offset(300, version=1) == ("", 2, 300)
        assert await offset(301) == ("", 4, 700)
        assert await offset(701) == ("", -1, -1)
        assert await offset(-3) == ("", 4, 700)
        ends = await list_offset(connection, {TP: LATEST, TopicPartition("t", 5): LATEST})
        assert ends == {TP: ("", 6), TopicPartition("t", 5): ("UNKNOWN_TOPIC_OR_PARTITION", -1)}
