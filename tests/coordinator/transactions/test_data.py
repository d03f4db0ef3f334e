"""Transactions on data over the wire: one broker, a producer of raw requests, readers at both isolation levels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.coordinator.transactions.transactional import read, stable_and_end, transactional
from tests.support.brokers.live import client_of, create_topics, running_broker, running_cluster
from tests.support.brokers.peers import opened_by_coordinators
from tests.support.consumers.consuming import partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of, eager
from tests.support.wire.clients import WireConnection

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@asynccontextmanager
async def broker_at(chroot: str, data_dir: Path) -> AsyncIterator[str]:
    """The bootstrap address of a broker whose topic t has two partitions."""
    async with running_broker(chroot, data_dir, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 2})
        yield bootstrap_of(broker)


async def settled(bootstrap: str, *partitions: TopicPartition) -> None:
    """Wait until the markers have been written."""

    async def stable() -> bool:
        return all([len(set(await stable_and_end(bootstrap, tp))) == 1 for tp in partitions])

    await until(stable, 60, "no transaction to be open")


async def test_committed_reader_sees_a_committed_transaction_atomically_and_an_aborted_one_never(
    chroot: str, tmp_path: Path
):
    async with broker_at(chroot, tmp_path) as bootstrap, transactional(bootstrap, "x") as producer:
        await producer.init()
        await producer.send(T0, "a", "b")
        await producer.send(T1, "c")
        assert (await read(bootstrap, T0), await read(bootstrap, T1)) == ([], [])
        assert await read(bootstrap, T0, committed=False) == ["a", "b"]
        assert await stable_and_end(bootstrap, T0) == (0, 2)
        assert await producer.end() is ErrorCode.none
        await settled(bootstrap, T0, T1)
        assert (await read(bootstrap, T0), await read(bootstrap, T1)) == (["a", "b"], ["c"])
        assert await stable_and_end(bootstrap, T0) == (3, 3), "the marker takes an offset"
        await producer.send(T0, "d")
        assert await producer.end(commits=False) is ErrorCode.none
        await settled(bootstrap, T0)
        await producer.send(T0, "e")
        assert await producer.end() is ErrorCode.none
        await settled(bootstrap, T0)
        assert await read(bootstrap, T0) == ["a", "b", "e"]
        assert await read(bootstrap, T0, committed=False) == ["a", "b", "d", "e"]


async def test_zombie_is_fenced_by_its_epoch_in_every_request(chroot: str, tmp_path: Path):
    async with (
        broker_at(chroot, tmp_path) as bootstrap,
        transactional(bootstrap, "x") as zombie,
        transactional(bootstrap, "x") as successor,
    ):
        await zombie.init()
        await zombie.send(T0, "of the zombie")
        await successor.init()
        assert successor.producer_id == zombie.producer_id
        assert successor.epoch == zombie.epoch + 2, "one epoch to abort with, one for the successor"
        before = await stable_and_end(bootstrap, T0)
        assert await zombie.produce(T0, "late") is ErrorCode.invalid_producer_epoch
        assert await zombie.add(T1) is ErrorCode.producer_fenced
        assert await zombie.end() is ErrorCode.producer_fenced
        assert await stable_and_end(bootstrap, T0) == before == (2, 2)
        await successor.send(T0, "of the successor")
        assert await successor.end() is ErrorCode.none
        await settled(bootstrap, T0)
        assert await read(bootstrap, T0) == ["of the successor"]


async def test_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(chroot: str, tmp_path: Path):
    async with (
        broker_at(chroot, tmp_path) as bootstrap,
        transactional(bootstrap, "x", timeout_ms=300) as producer,
        transactional(bootstrap, "x") as successor,
    ):
        await producer.init()
        await producer.send(T0, "a")
        await settled(bootstrap, T0)
        assert await read(bootstrap, T0) == []
        assert await producer.produce(T0, "b") is ErrorCode.invalid_producer_epoch
        assert await producer.end() is ErrorCode.producer_fenced
        await successor.init()
        assert successor.producer_id == producer.producer_id
        await successor.send(T0, "c")
        assert await successor.end() is ErrorCode.none
        await settled(bootstrap, T0)
        assert await read(bootstrap, T0) == ["c"]


@pytest.mark.parametrize(
    ("version", "refusal"), [(9, ErrorCode.invalid_txn_state), (11, ErrorCode.transaction_abortable)]
)
async def test_batch_for_a_partition_that_was_not_added_is_refused_and_hides_nothing(
    version: int, refusal: ErrorCode, chroot: str, tmp_path: Path
):
    async with broker_at(chroot, tmp_path) as bootstrap, transactional(bootstrap, "x") as producer:
        await producer.init()
        await producer.send(T0, "a")
        assert await producer.produce(T1, "b", version=version) is refusal
        assert await producer.end() is ErrorCode.none
        await settled(bootstrap, T0)
        assert await producer.produce(T0, "late", version=version) is refusal
        assert await stable_and_end(bootstrap, T1) == (0, 0)
        assert await stable_and_end(bootstrap, T0) == (2, 2)


async def test_partitions_are_added_all_or_none(chroot: str, tmp_path: Path):
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 2})
        async with transactional(bootstrap_of(broker), "x") as producer:
            await producer.init()
            connection = await client.any_connection()
            body = {
                "v3_and_below_transactional_id": "x",
                "v3_and_below_producer_id": producer.producer_id,
                "v3_and_below_producer_epoch": producer.epoch,
                "v3_and_below_topics": [{"name": "t", "partitions": [0, 7]}],
            }
            answer = await connection.call(Api.AddPartitionsToTxn, body, version=3)
            (topic,) = answer.results_by_topic_v3_and_below
            codes = {one.partition_index: one.partition_error_code for one in topic.results_by_partition}
            assert codes == {0: ErrorCode.operation_not_attempted, 7: ErrorCode.unknown_topic_or_partition}
            assert await producer.produce(T0, "a", version=9) is ErrorCode.invalid_txn_state


async def test_markers_and_verification_use_persistent_connections_between_brokers(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened = opened_by_coordinators(monkeypatch)
    async with running_cluster(2, chroot, tmp_path, mount=(mount,)) as brokers:
        await create_topics(brokers[0], {"t": 2})
        bootstrap = bootstrap_of(*brokers)
        for number in range(4):  # so that both brokers coordinate some transactional id
            async with transactional(bootstrap, f"x{number}") as producer:
                await producer.init()
                await producer.send(T0, f"a{number}")
                await producer.send(T1, f"b{number}")
                assert await producer.end(commits=number != 2) is ErrorCode.none
        await settled(bootstrap, T0, T1)
        assert await read(bootstrap, T0) == ["a0", "a1", "a3"]
        assert await read(bootstrap, T1) == ["b0", "b1", "b3"]
        assert sorted(connection.node_id for connection in opened) == [1, 2]


async def test_transaction_ends_for_the_remaining_partitions_when_a_topic_is_deleted(chroot: str, tmp_path: Path):
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 1, "doomed": 1})
        bootstrap = bootstrap_of(broker)
        async with transactional(bootstrap, "x") as producer:
            await producer.init()
            await producer.send(T0, "a")
            await producer.send(TopicPartition("doomed", 0), "b")
            connection = await client.any_connection()
            await connection.call(Api.DeleteTopics, {"topic_names": ["doomed"], "timeout": 10_000}, version=3)
            await until(lambda: "doomed" not in broker.cluster.snapshot.topics, 60, "the topic to be deleted")
            assert await producer.end() is ErrorCode.none
            await settled(bootstrap, T0)
            await producer.init()  # waits until the transaction is complete
        assert await read(bootstrap, T0) == ["a"]


async def test_member_with_read_committed_gets_committed_records_and_no_markers(chroot: str, tmp_path: Path):
    async with broker_at(chroot, tmp_path) as bootstrap, transactional(bootstrap, "x") as producer:
        await producer.init()
        for value, commits in (("a", True), ("b", False), ("c", True)):
            await producer.send(T0, value)
            await producer.send(T1, f"{value}1")
            assert await producer.end(commits=commits) is ErrorCode.none
        await settled(bootstrap, T0, T1)
        await producer.send(T0, "open")
        committed = eager(bootstrap, "committed", {"isolation.level": "read_committed"})
        uncommitted = eager(bootstrap, "uncommitted")
        members = [await committed.begin({"t": 1}), await uncommitted.begin({"t": 1})]
        try:
            for member in members:
                await shared_out([member], partitions_of("t", 2))
            await until(lambda: len(uncommitted.records) == 7, 60, "the uncommitted reader to read all")
            await until(lambda: len(committed.records) == 4, 60, "the committed reader to read all")
            assert sorted(uncommitted.values()) == [b"a", b"a1", b"b", b"b1", b"c", b"c1", b"open"]
            assert await producer.end() is ErrorCode.none
            await until(lambda: len(committed.records) == 5, 60, "the last transaction to be read")
            assert sorted(committed.values()) == [b"a", b"a1", b"c", b"c1", b"open"]
        finally:
            for member in members:
                await member.close()


@pytest.mark.parametrize("version", [0, 2, 3])
async def test_client_older_than_transactions_waits_at_a_marker_for_the_next_record(
    version: int, chroot: str, tmp_path: Path
):
    """It is given nothing of the marker, so with an immediate answer it would ask again and again."""
    async with (
        broker_at(chroot, tmp_path) as bootstrap,
        transactional(bootstrap, "x") as producer,
        producing(bootstrap) as plain,
    ):
        await producer.init()
        await producer.send(T0, "a")
        await producer.end()
        await settled(bootstrap, T0)
        host, _, port = bootstrap.rpartition(":")
        connection = await WireConnection.open(host, int(port), "old")
        partition = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1_000}
        body = {
            "replica_id": -1,
            "max_wait": 20_000,
            "min_bytes": 1,
            "max_bytes": 10_000,
            "topics": [{"topic": "t", "partitions": [partition]}],
        }
        answer = connection.send(Api.Fetch, version, body)
        assert not (await asyncio.wait([answer], timeout=0.3))[0], "there is nothing but the marker"
        await plain.send_values("t", lambda _: [b"next"])
        records = (await answer).responses[0].partitions[0].records
        assert b"next" in records
        connection.close()
