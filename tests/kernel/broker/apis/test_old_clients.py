"""Requests of the original consumers of 0.8 to 1.1 to a live broker, answered as by a broker of 1.1.1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel.client.connection import BrokerConnection
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.records.records import NewRecord, build_batch, decode
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.apis.test_data_plane import TP, batch, data_plane, produce
from tests.support.brokers.live import create_topics, running_cluster
from tests.support.wire.clients import WireConnection

OTHER = TopicPartition("t", 1)


async def old_fetch(
    connection: BrokerConnection,
    version: int,
    offset: int,
    partition_max_bytes: int,
    *,
    partitions: Sequence[int] = (0,),
    **fields: Any,
) -> list[tuple[str, bytes]]:
    """[(error, records)] of partitions of `t`, all from one offset."""
    wanted = [
        {"partition": partition, "fetch_offset": offset, "partition_max_bytes": partition_max_bytes}
        for partition in partitions
    ]
    body = {"max_wait": 20, "min_bytes": 1, "topics": [{"topic": "t", "partitions": wanted}], **fields}
    answer = await connection.call(Api.Fetch, body, version=version)
    return [(one.error_code.name, bytes(one.records)) for one in answer.responses[0].partitions]


@pytest.mark.parametrize("version", range(4))
async def test_old_fetch_returns_the_format_of_its_version(chroot: str, tmp_path: Path, version: int) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for codec in ("none", "gzip", "snappy", "lz4"):
            if codec != "lz4" or version > 1:  # our own reader has no lz4 in format 0
                await produce(connection, batch(b"a", b"b", codec=codec))
        ((error, records),) = await old_fetch(connection, version, 1, 100_000)
        assert error == "none"
        assert records[16] == (0 if version < 2 else 1)
        got, end = decode(TP, records, 1)
        assert [record.offset for record in got] == list(range(1, end))
        assert {record.value for record in got} == {b"a", b"b"}
        assert end == (6 if version < 2 else 8)


@pytest.mark.parametrize("version", range(3))
async def test_partition_limit_is_strict_before_version_3(chroot: str, tmp_path: Path, version: int) -> None:
    """What does not fit is truncated, unconverted; of what fits, whole batches are converted."""
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        stored = batch(*[b"x" * 100] * 5)
        for _number in range(2):
            await produce(connection, stored)
        size = len(stored)
        ((_, whole),) = await old_fetch(connection, version, 0, 2 * size)
        ((_, half),) = await old_fetch(connection, version, 0, 2 * size - 1)
        assert len(decode(TP, whole, 0)[0]) == 10
        assert half == whole[: len(whole) // 2]
        for limit in (1, 17, size - 1):
            ((error, cut),) = await old_fetch(connection, version, 0, limit)
            assert (error, len(cut)) == ("none", limit)
            assert (cut[8:12], cut[16:]) == (stored[8 : min(limit, 12)], stored[16:limit])  # between: the leader epoch
        assert await old_fetch(connection, version, 0, 0) == [("none", b"")]


async def test_version_3_returns_one_whole_batch_despite_the_limits(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for tp in (TP, OTHER):
            for _number in range(2):
                await produce(connection, batch(b"x" * 100), tp)
        for limits in ((10, 10**6), (10**6, 10), (0, 0)):
            first, second = await old_fetch(connection, 3, 0, limits[0], partitions=(0, 1), max_bytes=limits[1])
            assert len(decode(TP, first[1], 0)[0]) == 1
            assert second == ("none", b"")


async def test_brokers_limit_of_a_response_cuts_no_batch(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, fetch_max_bytes="1024") as (_, _client, connection):
        for tp in (TP, OTHER):
            await produce(connection, batch(b"x" * 800), tp)
        first, second = await old_fetch(connection, 0, 0, 1000, partitions=(0, 1))
        assert len(decode(TP, first[1], 0)[0]) == 1
        assert second == ("none", b"")


async def test_old_fetch_is_refused_with_errors_that_old_clients_know(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        await produce(connection, batch(b"a"))
        assert await old_fetch(connection, 0, 5, 100) == [("offset_out_of_range", b"")]
        assert await old_fetch(connection, 0, 0, 100, partitions=(7,)) == [("unknown_topic_or_partition", b"")]
        await produce(connection, build_batch([NewRecord(b"a", None, 0)], codec="zstd"), version=9)
        assert await old_fetch(connection, 3, 1, 10_000) == [("unsupported_compression_type", b"")]


async def test_oldest_list_offsets_returns_a_list_like_1_1_1(chroot: str, tmp_path: Path) -> None:
    """Recorded: a log of ten records with times up to 1_600_000_000_004 ms, and an empty one."""
    records = [NewRecord(b"x", None, 1_600_000_000_000 + n % 5) for n in range(10)]
    future_ms = 9 * 10**12
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        await produce(connection, build_batch(records))

        async def ask(timestamp: int, number: int) -> list[tuple[str, tuple[int, ...]]]:
            wanted = [
                {"partition_index": partition, "timestamp": timestamp, "max_num_offsets": number}
                for partition in (0, 1, 99)
            ]
            answer = await connection.call(
                Api.ListOffsets, {"topics": [{"name": "t", "partitions": wanted}]}, version=0
            )
            return [(one.error_code.name, one.old_style_offsets) for one in answer.topics[0].partitions]

        unknown = ("unknown_topic_or_partition", ())
        assert await ask(-1, 1) == [("none", (10,)), ("none", (0,)), unknown]
        for latest in (-1, future_ms):
            assert await ask(latest, 5) == [("none", (10, 0)), ("none", (0,)), unknown]
        assert await ask(-2, 5) == [("none", (0,)), ("none", (0,)), unknown]
        assert await ask(-1, 0) == [("none", ()), ("none", ()), unknown]
        assert await ask(-1, -1) == [("unknown_server_error", ()), ("unknown_server_error", ()), unknown]
        for early in (-3, 0, 1_600_000_000_003):
            assert await ask(early, 5) == [("none", ()), ("none", ()), unknown]
        # Here the time of a segment is that of its newest record; in Kafka the file's time decides.
        assert (await ask(1_600_000_000_004, 5))[0] == ("none", (0,))


async def test_oldest_metadata_names_no_dead_broker(chroot: str, tmp_path: Path) -> None:
    """An original consumer looks up every replica among the answer's brokers, and fails if one is missing."""
    async with running_cluster(2, chroot, tmp_path) as (stays, goes):
        await create_topics(stays, {"t": 2}, replication_factor=2)
        connection = await WireConnection.open(stays.address.host, stays.address.port, "original")

        async def ask(version: int) -> list[Any]:
            answer = await connection.send(Api.Metadata, version, {"topics": [{"name": "t"}]})
            assert [broker.node_id for broker in answer.brokers] in ([1, 2], [1])
            return sorted(answer.topics[0].partitions, key=lambda one: one.partition_index)

        for partition in await ask(0):
            assert partition.error_code is ErrorCode.none
            assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == [1, 2]
        await goes.stop()
        await until(lambda: all(stays.cluster.leads(tp) for tp in (TP, OTHER)), 10, "one broker to lead all partitions")
        for partition in await ask(0):
            assert partition.error_code is ErrorCode.replica_not_available
            assert (partition.leader_id, list(partition.replica_nodes), list(partition.isr_nodes)) == (1, [1], [1])
        for partition in await ask(1):
            assert partition.error_code is ErrorCode.none
            assert sorted(partition.replica_nodes) == [1, 2]
        created = await connection.send(Api.Metadata, 0, {"topics": [{"name": "new"}]})
        assert created.topics[0].name == "new"
        connection.close()


async def test_our_own_client_reads_from_an_old_broker(chroot: str, tmp_path: Path) -> None:
    """Kafka 0.10.0 offers Fetch 0 to 2 and ListOffsets 0; our broker offers the same here."""
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        await produce(connection, batch(b"a", b"b", codec="gzip"))
        connection.offered = {**connection.offered, Api.Fetch: (0, 2), Api.ListOffsets: (0, 0)}
        got = (await fetch(connection, {TP: 1}))[TP]
        assert [(record.offset, record.value) for record in got.records] == [(1, b"b")]
        assert (got.next_offset, got.high_watermark) == (2, 2)
        assert await list_offset(connection, {TP: EARLIEST, OTHER: LATEST}) == {TP: ("", 0), OTHER: ("", 0)}
        assert await list_offset(connection, {TP: LATEST}) == {TP: ("", 2)}
        assert await list_offset(connection, {TP: 0}) == {TP: ("", -1)}


@pytest.mark.parametrize("version", [0, 2, 3])
async def test_partition_named_many_times_is_answered_once(chroot: str, tmp_path: Path, version: int) -> None:
    """As by Kafka, which keeps the wanted partitions in a map; each repetition would return another truncated batch."""
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        await produce(connection, batch(b"x" * 10_000))
        answers = await old_fetch(connection, version, 0, 5_000, partitions=[0] * 1_000)
        assert len(answers) == 1
        assert len(answers[0][1]) == (5_000 if version < 3 else 10_034)


async def test_truncated_batches_together_stay_within_the_limit_of_a_response(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, fetch_max_bytes="9999") as (_, _client, connection):
        for tp in (TP, OTHER):
            await produce(connection, batch(b"x" * 10_000), tp)
        first, second = await old_fetch(connection, 0, 0, 5_000, partitions=(0, 1))
        assert (len(first[1]), len(second[1])) == (5_000, 0)
