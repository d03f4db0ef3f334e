"""A live broker, with our own client: topics and refusals, produce, idempotence, failover."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.broker import Broker
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection
from kernel.client.producer import ProduceFailed, Producer, ProducerConfig
from kernel.client.reads import fetch
from kernel.records.compression import CODECS
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, create_topics, running_broker, running_cluster

TP = TopicPartition("t", 0)
Test = Callable[["Broker", ClusterClient, "BrokerConnection"], Awaitable[None]]


@asynccontextmanager
async def data_plane(
    chroot: str, tmp_path: Path, **settings: str
) -> AsyncIterator[tuple[Broker, ClusterClient, BrokerConnection]]:
    """A broker with topic `t` of two partitions, a client of it, and a connection to it."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    async with running_broker(chroot, tmp_path, settings=given) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 2})
        await client.refresh(["t"])
        yield broker, client, await client.connection(1)


def batch(*values: bytes, sequence: int = -1, producer: int = -1, epoch: int = -1, codec: str = "none") -> bytes:
    records = [NewRecord(value, None, 1_700_000_000_000 + n) for n, value in enumerate(values)]
    return build_batch(records, codec=codec, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


async def produce(
    connection: BrokerConnection, records: bytes | None, tp: TopicPartition = TP, *, acks: int = -1, version: int = 9
) -> tuple[str, int]:
    """(error, base offset)."""
    data = [{"name": tp.topic, "partition_data": [{"index": tp.partition, "records": records}]}]
    body = {"acks": acks, "timeout": 1000, "topic_data": data}
    answer = await connection.call(Api.Produce, body, version=version)
    partition = answer.responses[0].partition_responses[0]
    return error_name(partition.error_code), partition.base_offset


async def test_records_are_fetched_as_they_were_sent_with_every_codec(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, client, connection):
        values = []
        for codec in CODECS:
            producer = Producer(client, ProducerConfig(compression=codec))
            sent = [b"%s-%d" % (codec.encode(), n) for n in range(30)]
            offsets = await asyncio.gather(*(producer.send(TP, v, key=b"k", headers=(("h", None),)) for v in sent))
            assert offsets == list(range(len(values), len(values) + 30))
            values += sent
            await producer.close()
        got = (await fetch(connection, {TP: 0}))[TP]
        assert (got.error, got.high_watermark, got.next_offset) == ("", len(values), len(values))
        assert [record.value for record in got.records] == values
        assert {(record.key, record.headers) for record in got.records} == {(b"k", (("h", None),))}
        assert [record.offset for record in got.records] == list(range(len(values)))


async def test_repeated_batch_is_answered_with_its_first_offset_and_stored_once(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        batches = [batch(b"a", b"b", producer=7, epoch=0, sequence=2 * n) for n in range(6)]
        assert [await produce(connection, b) for b in batches] == [("", 2 * n) for n in range(6)]
        assert [await produce(connection, b) for b in batches[1:]] == [("", 2 * n) for n in range(1, 6)]
        assert await produce(connection, batches[0]) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1), (
            "forgotten: the sixth last"
        )
        gap = batch(b"x", producer=7, epoch=0, sequence=99)
        assert await produce(connection, gap) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
        assert await produce(connection, batch(b"n", producer=7, epoch=1, sequence=0)) == ("", 12)
        assert await produce(connection, batches[5]) == ("INVALID_PRODUCER_EPOCH", -1)
        assert (await fetch(connection, {TP: 0}))[TP].high_watermark == 13, "the refused ones stored nothing"


def _corrupted() -> bytes:
    good = bytearray(batch(b"value"))
    good[-1] ^= 1
    return bytes(good)


REFUSED = {
    "no batch": (b"", 9, "INVALID_RECORD"),
    "null": (None, 9, "INVALID_RECORD"),
    "nonsense": (b"x" * 30, 9, "CORRUPT_MESSAGE"),
    "nonsense as long as a header": (b"x" * 100, 9, "INVALID_RECORD"),
    "wrong checksum": (_corrupted(), 9, "CORRUPT_MESSAGE"),
    "two batches": (batch(b"a") + batch(b"b"), 9, "INVALID_RECORD"),
    "cut short": (batch(b"abc")[:-1], 9, "CORRUPT_MESSAGE"),
    "too large": (batch(b"x" * 3000), 9, "MESSAGE_TOO_LARGE"),
    "zstd before version 7": (batch(b"a", codec="zstd"), 6, "UNSUPPORTED_COMPRESSION_TYPE"),
    "producer without a sequence": (batch(b"a", producer=1, epoch=0), 9, "INVALID_RECORD"),
}


async def test_refused_batch_has_kafkas_error_and_stores_nothing(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, message_max_bytes="2000") as (_, _client, connection):
        for name, (records, version, error) in REFUSED.items():
            assert await produce(connection, records, version=version) == (error, -1), name
        good = batch(b"a")
        assert await produce(connection, good, TopicPartition("t", 2)) == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
        assert await produce(connection, good, TopicPartition("absent", 0)) == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
        assert await produce(connection, good, TopicPartition("__consumer_offsets", 0)) == (
            "INVALID_TOPIC_EXCEPTION",
            -1,
        )
        assert await produce(connection, good, acks=5) == ("INVALID_REQUIRED_ACKS", -1)
        assert (await fetch(connection, {TP: 0}))[TP].high_watermark == 0


async def test_acks_zero_is_stored_unanswered_and_a_refusal_closes_the_connection(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):

        def body(records: bytes) -> dict[str, Any]:
            data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
            return {"acks": 0, "timeout": 1000, "topic_data": data}

        connection.send_only(Api.Produce, body(batch(b"unseen")))
        assert (await fetch(connection, {TP: 0}))[TP].high_watermark == 1
        connection.send_only(Api.Produce, body(_corrupted()))
        await until(lambda: connection.closed, 60, "the connection to be closed")


async def test_create_grow_and_delete_are_refused_as_kafka_refuses_them(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, client, connection):

        async def create(name: str, **fields: Any) -> str:
            wanted = {"name": name, "num_partitions": 1, "replication_factor": 1, **fields}
            answer = await connection.call(Api.CreateTopics, {"topics": [wanted], "timeout": 5000})
            return error_name(answer.topics[0].error_code)

        async def grow(name: str, count: int) -> str:
            wanted = {"name": name, "count": count, "assignments": None}
            answer = await connection.call(Api.CreatePartitions, {"topics": [wanted], "timeout": 5000})
            return error_name(answer.results[0].error_code)

        async def delete(name: str) -> str:
            body = {"topics": [{"name": name}], "topic_names": [name], "timeout": 5000}
            answers = [await connection.call(Api.DeleteTopics, body, version=version) for version in (5, 6)]
            return error_name(answers[0].responses[0].error_code)

        by_hand = [{"partition_index": n, "broker_ids": [1]} for n in (0, 1)]
        no_numbers = {"num_partitions": -1, "replication_factor": -1}
        assert await create("u") == ""
        assert await create("u") == "TOPIC_ALREADY_EXISTS"
        assert await create("bad name") == "INVALID_TOPIC_EXCEPTION"
        assert await create("v", num_partitions=0) == "INVALID_PARTITIONS"
        assert await create("v", replication_factor=2) == "INVALID_REPLICATION_FACTOR"
        assert await create("v", configs=[{"name": "no.such.setting", "value": "1"}]) == "INVALID_CONFIG"
        assert await create("v", assignments=by_hand) == "INVALID_REQUEST", "numbers and an assignment"
        assert await create("v", assignments=by_hand[1:], **no_numbers) == "INVALID_REPLICA_ASSIGNMENT"
        assert await create("w", assignments=by_hand, **no_numbers) == ""
        assert await create("d", **no_numbers) == "", "num.partitions and default.replication.factor"
        assert await grow("u", 3) == ""
        assert await grow("u", 3) == "INVALID_PARTITIONS"
        assert await grow("absent", 3) == "UNKNOWN_TOPIC_OR_PARTITION"
        metadata = await client.refresh()
        sizes = {name: len(metadata.partitions_of(name)) for name in metadata.topic_ids}
        assert sizes == {"t": 2, "u": 3, "w": 2, "d": 1}
        assert await delete("u") == ""
        assert await delete("u") == "UNKNOWN_TOPIC_OR_PARTITION"
        assert metadata.partitions_of("u") == (0, 1, 2), "a snapshot does not change"
        assert (await client.refresh()).partitions_of("u") == ()


async def test_metadata_creates_a_topic_only_if_both_sides_allow_it(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, num_partitions="3") as (_, client, _connection):
        assert (await client.refresh(["n"])).errors == {"n": "UNKNOWN_TOPIC_OR_PARTITION"}
        assert (await client.refresh(["no good"], create=True)).errors["no good"] == "INVALID_TOPIC_EXCEPTION"
        first = await client.refresh(["n"], create=True)
        assert first.errors == {"n": "UNKNOWN_TOPIC_OR_PARTITION"} | {"no good": "INVALID_TOPIC_EXCEPTION"}

        async def described() -> bool:
            metadata = await client.refresh(["n"])
            return metadata.partitions_of("n") == (0, 1, 2) and "n" not in metadata.errors

        await until(described, 60, "the requested topic")


async def test_metadata_creates_nothing_when_the_broker_does_not_allow_it(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, auto_create_topics_enable="false") as (_, client, _connection):
        assert (await client.refresh(["n"], create=True)).errors == {"n": "UNKNOWN_TOPIC_OR_PARTITION"}


async def test_clients_share_metadata_until_it_changes_for_one_of_them(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (broker, client, _connection), client_of(broker) as other:
        assert await other.refresh(["t"]) is await client.refresh(["t"])
        await create_topics(broker, {"u": 3})

        assert (await client.refresh(["u"])).sizes() == {"t": 2, "u": 3}

        assert other.metadata.sizes() == {"t": 2}
        assert (await other.refresh(None)).sizes() == {"t": 2, "u": 3}


async def test_transactional_producer_is_refused_permanently(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        body = {"transactional_id": "tx", "transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
        answer = await connection.call(Api.InitProducerId, body)
        assert error_name(answer.error_code) == "INVALID_TXN_STATE"
        ids = [
            (await connection.call(Api.InitProducerId, {**body, "transactional_id": None})).producer_id for _ in "ab"
        ]
        assert len(set(ids)) == 2


async def test_producer_goes_on_at_the_next_leader_without_loss_or_duplicates(chroot: str, tmp_path: Path) -> None:
    settings = {"default.replication.factor": "2"}
    async with running_cluster(2, chroot, tmp_path, settings=settings) as brokers, client_of(*brokers) as client:
        await create_topics(brokers[0], {"t": 1}, replication_factor=2)
        await client.refresh(["t"])
        leader = client.leader_of(TP)
        producer = Producer(client, ProducerConfig(retry_backoff_ms=20))
        waiting = []
        for number in range(200):
            waiting.append(asyncio.ensure_future(producer.send(TP, b"%d" % number)))
            if number == 100:
                await brokers[(leader or 1) - 1].stop()
            await asyncio.sleep(0.001)  # paced, so that the change comes in the middle
        offsets = await asyncio.gather(*waiting)
        assert offsets == list(range(200))
        await client.refresh(["t"])
        assert client.leader_of(TP) == 3 - (leader or 1)
        connection = await client.connection(3 - (leader or 1))
        got = (await fetch(connection, {TP: 0}))[TP]
        assert [record.value for record in got.records] == [b"%d" % number for number in range(200)]
        await producer.close()


async def test_producer_error_names_the_reason_for_refused_records(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path, message_max_bytes="2000") as (_, client, _connection):
        producer = Producer(client, ProducerConfig(delivery_timeout_ms=2000, retry_backoff_ms=20))
        with pytest.raises(ProduceFailed, match=r"TIMED_OUT.*LEADER_NOT_AVAILABLE"):
            await producer.send(TopicPartition("t", 9), b"no such partition")
        with pytest.raises(ProduceFailed, match="MESSAGE_TOO_LARGE"):
            await producer.send(TP, b"x" * 5000)
        assert await producer.send(TP, b"small") == 0
        await producer.close()
