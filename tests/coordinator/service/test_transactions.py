"""Transactions on group offsets over the wire: handlers, bytes in the log, and markers from broker to broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.placement import partition_of
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.broker.storage.errors import StorageFailed
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_cluster
from tests.support.coordinators.in_memory import LoneCoordinator, MemoryStorage
from tests.support.time.manual_clock import ManualClock
from tests.support.wire.clients import WireConnection

SETTINGS = {"offsets.topic.num.partitions": "4"}
GROUP, TRANSACTION = "g", "x"


class Client:
    """Requests of a producer and of a member that fetches offsets."""

    def __init__(self, call: Callable[..., Awaitable[Any]], group_id: str = GROUP) -> None:
        self._call = call
        self._group_id = group_id
        self.producer: dict[str, Any] = {}

    async def init(self, transactional_id: str | None = TRANSACTION, *, version: int = 4, **fields: Any) -> ErrorCode:
        answer = await self._call(
            Api.InitProducerId, version, transactional_id=transactional_id, transaction_timeout=60_000, **fields
        )
        self.producer = {
            "transactional_id": transactional_id,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
        return answer.error_code

    async def add_offsets(self, *, version: int = 3) -> ErrorCode:
        answer = await self._call(Api.AddOffsetsToTxn, version, **self.producer, group_id=self._group_id)
        return answer.error_code

    async def commit(self, offset: int, *, version: int = 3, topic: str = "t") -> ErrorCode:
        partition = {"partition_index": 0, "committed_offset": offset}
        topics = [{"name": topic, "partitions": [partition]}]
        answer = await self._call(Api.TxnOffsetCommit, version, **self.producer, group_id=self._group_id, topics=topics)
        return answer.topics[0].partitions[0].error_code

    async def end(self, *, commits: bool = True, version: int = 3) -> ErrorCode:
        answer = await self._call(Api.EndTxn, version, **self.producer, committed=commits)
        return answer.error_code

    async def fetch(self, *, version: int = 8) -> tuple[int, ErrorCode]:
        """The stable offset of t-0, and the error."""
        topics = [{"name": "t", "partition_indexes": [0]}]
        groups = [{"group_id": self._group_id, "topics": topics}]
        one = {"group_id": self._group_id, "topics": topics} if version < 8 else {"groups": groups}
        answer = await self._call(Api.OffsetFetch, version, **one, require_stable=True)
        found = (answer if version < 8 else answer.groups[0]).topics[0].partitions[0]
        return found.committed_offset, found.error_code


UNSTABLE = (-1, ErrorCode.unstable_offset_commit)


@asynccontextmanager
async def playing(
    clock: ManualClock, storage: MemoryStorage | None = None
) -> AsyncIterator[tuple[LoneCoordinator, Client]]:
    """The handlers alone, and a client of them."""
    coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1}, storage)
    await coordinator.lead_all()
    try:
        connection = await coordinator.connect("p")
        yield coordinator, Client(connection.call)
    finally:
        await coordinator.stop()


@pytest.mark.parametrize("version", [7, 8])
async def test_transaction_goes_on_at_the_next_coordinator(version: int, virtual_clock: ManualClock):
    storage = MemoryStorage()
    async with playing(virtual_clock, storage) as (_, client):
        assert await client.init() is ErrorCode.none
        assert await client.add_offsets() is ErrorCode.none
        assert await client.commit(5) is ErrorCode.none
        assert await client.fetch(version=version) == UNSTABLE
        producer = client.producer
    async with playing(virtual_clock, storage) as (_, client):
        client.producer = producer
        assert await client.fetch(version=version) == UNSTABLE
        assert await client.end() is ErrorCode.none
        await asyncio.sleep(0.1)
        assert await client.fetch(version=version) == (5, ErrorCode.none)
        assert await client.init() is ErrorCode.none
        assert client.producer["producer_epoch"] == 1


async def test_successor_writes_missing_markers(virtual_clock: ManualClock):
    assert partition_of(GROUP, 4) != partition_of(TRANSACTION, 4)
    storage = MemoryStorage()
    async with playing(virtual_clock, storage) as (coordinator, client):
        await client.init()
        await client.add_offsets()
        await client.commit(5)
        group_log = storage.logs[coordinator.tp(partition_of(GROUP, 4))]
        group_log.broken = StorageFailed("the disk is full")
        assert await client.end() is ErrorCode.none
        await asyncio.sleep(1)
        assert await client.fetch() == UNSTABLE
        assert await client.init() is ErrorCode.concurrent_transactions
        await coordinator.resign_all()
        group_log.broken = None
    async with playing(virtual_clock, storage) as (_, client):
        await asyncio.sleep(0.1)
        assert await client.fetch() == (5, ErrorCode.none)


async def test_producer_without_transactions_gets_a_new_id(virtual_clock):
    async with playing(virtual_clock) as (_, client):
        assert await client.init(None) is ErrorCode.none
        first = client.producer["producer_id"]
        assert await client.init(None) is ErrorCode.none
        assert client.producer["producer_id"] > first


async def test_empty_or_overlong_transactional_id_is_an_invalid_request(virtual_clock):
    async with playing(virtual_clock) as (_, client):
        assert await client.init("") is ErrorCode.invalid_request
        assert await client.init("x" * 32_768) is ErrorCode.invalid_request
        client.producer = {"transactional_id": "", "producer_id": 1, "producer_epoch": 0}
        assert await client.add_offsets() is ErrorCode.invalid_request
        assert await client.end() is ErrorCode.invalid_request


async def test_fenced_producer_gets_invalid_producer_epoch_in_old_versions(virtual_clock):
    async with playing(virtual_clock) as (_, client):
        await client.init()
        old = client.producer
        await client.init()
        client.producer = old
        assert await client.add_offsets(version=1) is ErrorCode.invalid_producer_epoch
        assert await client.add_offsets(version=2) is ErrorCode.producer_fenced
        assert await client.end(version=1) is ErrorCode.invalid_producer_epoch
        assert await client.end(version=2) is ErrorCode.producer_fenced
        wrong = {"producer_id": old["producer_id"], "producer_epoch": 7}
        assert await client.init(version=3, **wrong) is ErrorCode.invalid_producer_epoch
        assert await client.init(version=4, **wrong) is ErrorCode.producer_fenced


async def test_commit_in_a_transaction_for_a_nonexistent_topic_is_refused_and_creates_no_group(virtual_clock):
    async with playing(virtual_clock) as (coordinator, client):
        await client.init()
        assert await client.commit(5, topic="nowhere") is ErrorCode.unknown_topic_or_partition
        described = await (await coordinator.connect("a")).call(Api.DescribeGroups, 5, groups=[GROUP])
        assert described.groups[0].group_state == "Dead"


@pytest.mark.kafka("testVerificationErrorsForTxnOffsetCommits")
async def test_commit_in_a_transaction_that_the_group_was_not_added_to_is_refused(virtual_clock):
    """KIP-890: otherwise an offset would stay pending that no EndTxn ends."""
    async with playing(virtual_clock) as (_, client):
        client.producer = {"transactional_id": TRANSACTION, "producer_id": 9, "producer_epoch": 0}
        assert await client.commit(5) is ErrorCode.invalid_producer_id_mapping
        await client.init()
        assert await client.commit(5) is ErrorCode.invalid_txn_state
        await client.add_offsets()
        assert await client.commit(5) is ErrorCode.none
        await client.end()
        await asyncio.sleep(0.1)
        assert await client.commit(6) is ErrorCode.invalid_txn_state
        old = client.producer
        await client.init()
        client.producer = old
        assert await client.commit(6) is ErrorCode.invalid_producer_epoch
        client.producer = {**old, "transactional_id": ""}
        assert await client.commit(6) is ErrorCode.invalid_request


async def test_transactions_are_refused_by_a_broker_that_does_not_lead_their_partition(virtual_clock):
    async with playing(virtual_clock) as (coordinator, client):
        await client.init()
        await coordinator.resign_all()
        assert await client.init() is ErrorCode.not_coordinator
        assert await client.add_offsets() is ErrorCode.not_coordinator
        assert await client.commit(5) is ErrorCode.not_coordinator
        assert await client.end() is ErrorCode.not_coordinator


async def test_markers_are_accepted_only_for_led_partitions(virtual_clock):
    async with playing(virtual_clock) as (coordinator, _):
        connection = await coordinator.connect("broker")
        topics = [{"name": OFFSETS_TOPIC, "partition_indexes": [0, 9]}, {"name": "t", "partition_indexes": [0, 1]}]
        marker = {"producer_id": 7, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0}
        answer = await connection.call(Api.WriteTxnMarkers, 1, markers=[marker | {"topics": topics}])
        offsets, data = answer.markers[0].topics
        codes = [partition.error_code for partition in (*offsets.partitions, *data.partitions)]
        assert codes == [
            ErrorCode.none,
            ErrorCode.not_coordinator,
            ErrorCode.not_leader_or_follower,
            ErrorCode.unknown_topic_or_partition,
        ]


def test_group_on_another_broker_gets_the_transactions_marker(chroot: str, tmp_path: Path):
    asyncio.run(_commit_across_brokers(chroot, tmp_path))


async def _commit_across_brokers(chroot: str, tmp_path: Path) -> None:
    async with running_cluster(2, chroot, tmp_path, mount=(mount,)) as brokers:
        await create_topics(brokers[0], {"t": 1})
        admin = await _connect(brokers[0])

        async def all_led() -> bool:
            await admin.send(Api.FindCoordinator, 2, {"key": GROUP, "key_type": 1})
            numbers = [TopicPartition(OFFSETS_TOPIC, number) for number in range(4)]
            return all(any(broker.cluster.leads(tp) for broker in brokers) for tp in numbers)

        await until(all_led, 60, "every partition of __consumer_offsets to be led")
        here, there = ({n for n in range(4) if b.cluster.leads(TopicPartition(OFFSETS_TOPIC, n))} for b in brokers)
        transactional_id = next(name for name in map(str, range(99)) if partition_of(name, 4) in here)
        group_id = next(name for name in map(str, range(99)) if partition_of(name, 4) in there)
        connections = {api: await _connect(brokers[1]) for api in (Api.TxnOffsetCommit, Api.OffsetFetch)}

        async def call(api: Api, version: int, **body: Any) -> Any:
            return await connections.get(api, admin).send(api, version, body)

        client = Client(call, group_id)
        assert await client.init(transactional_id) is ErrorCode.none
        assert await client.commit(4) is ErrorCode.invalid_txn_state
        assert await client.add_offsets() is ErrorCode.none
        assert await client.commit(4) is ErrorCode.none
        assert await client.commit(5) is ErrorCode.none
        assert await client.fetch() == UNSTABLE
        assert await client.end() is ErrorCode.none

        async def committed() -> bool:
            return await client.fetch() == (5, ErrorCode.none)

        await until(committed, 60, "the group's coordinator to receive it")
        for connection in (admin, *connections.values()):
            connection.close()


async def _connect(broker: Broker) -> WireConnection:
    return await WireConnection.open(broker.address.host, broker.address.port, "p")
