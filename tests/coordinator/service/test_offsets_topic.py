"""`__consumer_offsets` read over the wire: its records, their offsets, and which clients can read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.placement import partition_of
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.client.connection import BrokerConnection
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api
from tests.support.brokers.live import broker_thread, create_topics, running_broker, running_cluster
from tests.support.coordinators.in_memory import LoneCoordinator, MemoryStorage
from tests.support.coordinators.log import EARLIEST, LATEST, MAX_TIMESTAMP, TOPIC, OffsetsTopic, commit, converse
from tests.support.time.manual_clock import ManualClock
from tests.support.wire.clients import WireConnection, wait_for_coordinator

#: What a real 4.1.1 wrote (tests.support.coordinators.log).
RECORDED = Path(__file__).with_name("offsets-topic-4.1.1.json")
GROUP = "g"
NUMBER = partition_of(GROUP, 4)


async def connected(broker: Broker) -> WireConnection:
    return await WireConnection.open("127.0.0.1", broker.address.port, "c")


async def committed(connection: WireConnection, number: int, offset: int, group: str = GROUP) -> None:
    answer = await connection.send(Api.OffsetCommit, 8, commit(group, {number: offset}))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.none, answer


async def test_topic_has_the_keys_and_values_that_4_1_1_writes_in_the_same_conversation(
    chroot: str, tmp_path: Path
) -> None:
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 2})
        # As recorded: what is stored includes the client's id.
        connection = await WireConnection.open("127.0.0.1", broker.address.port, "log")
        written = await converse(connection)
        connection.close()
    assert written == json.loads(RECORDED.read_text())


async def test_offsets_grow_with_every_write_and_stay_when_the_coordinator_moves(chroot: str, tmp_path: Path) -> None:
    """A reader continues at the next coordinator where it was, and misses no write."""
    place = TopicPartition(TOPIC, NUMBER)
    async with running_cluster(2, chroot, tmp_path, mount=(mount,)) as brokers:
        await create_topics(brokers[0], {"t": 2})
        connections = [await connected(broker) for broker in brokers]
        # Either broker may become its leader; the first lookup creates the topic.
        await connections[0].send(Api.FindCoordinator, 4, {"key_type": 0, "coordinator_keys": [GROUP]})
        await until(lambda: any(broker.cluster.leads(place) for broker in brokers), 20, "one of the brokers to lead")
        (first,) = [n for n in (0, 1) if brokers[n].cluster.leads(place)]
        old, new = connections[first], connections[1 - first]
        await wait_for_coordinator(old, GROUP)
        reader = await OffsetsTopic.of(old)
        reader.positions = {NUMBER: 0}
        for offset in range(3):
            await committed(old, 0, offset)
        await committed(old, 1, 9)
        seen = await reader.new()
        assert [r.offset for r in seen] == [2, 3], "only the newest write of a key is kept"
        assert seen[0].key == b"\0\x01\0\x01g\0\x01t" + bytes(4)
        await committed(old, 0, 3)
        (again,) = await reader.new()
        assert (again.offset, again.key) == (4, seen[0].key)
        assert again.value is not None
        assert again.value[2:10] == (3).to_bytes(8)
        before = await OffsetsTopic.of(old)
        before.positions = {NUMBER: 0}
        kept = await before.new()
        await brokers[first].stop()
        await until(lambda: brokers[1 - first].cluster.leads(place) is not None, 60, "the other broker to lead")
        await wait_for_coordinator(new, GROUP)
        reader.connection = before.connection = new
        before.positions = {NUMBER: 0}
        assert await before.new() == kept
        await committed(new, 1, 10)
        (after,) = await reader.new()
        assert (after.offset, after.key) == (5, seen[1].key)
        assert after.leader_epoch > again.leader_epoch
        epochs = {"topic": TOPIC, "partitions": [{"partition": NUMBER, "leader_epoch": again.leader_epoch}]}
        answer = await new.send(Api.OffsetForLeaderEpoch, 3, {"replica_id": -2, "topics": [epochs]})
        assert answer.topics[0].partitions[0].end_offset == 5
        for connection in connections:
            connection.close()


async def test_ends_times_and_watermarks_are_those_of_a_log(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 2})
        connection = await connected(broker)
        await wait_for_coordinator(connection, GROUP)
        topic = await OffsetsTopic.of(connection)
        assert await topic.offset_at(NUMBER, EARLIEST) == await topic.offset_at(NUMBER, LATEST) == (0, -1)
        for number in (0, 1, 0):
            await committed(connection, number, 5)
        assert await topic.offset_at(NUMBER, EARLIEST) == (0, -1)
        assert await topic.offset_at(NUMBER, LATEST) == (3, -1)
        part = await topic.fetched(NUMBER, 0)
        assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (3, 3, 0)
        one, two = sorted(r for r in await topic.new())
        assert (one.offset, two.offset) == (1, 2)
        assert one.timestamp_ms <= two.timestamp_ms
        assert await topic.offset_at(NUMBER, 0) == (1, one.timestamp_ms)
        assert await topic.offset_at(NUMBER, two.timestamp_ms + 1) == (-1, -1)
        assert (await topic.offset_at(NUMBER, MAX_TIMESTAMP))[1] == two.timestamp_ms
        above = await topic.fetched(NUMBER, 4)
        assert above.error_code is ErrorCode.offset_out_of_range
        waiting = asyncio.create_task(topic.fetched(NUMBER, 3))
        assert not (await waiting).records
        connection.close()


def test_client_may_read_but_not_write_the_topic(chroot: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
            await create_topics(broker, {"t": 2})
            connection = await connected(broker)
            await wait_for_coordinator(connection, GROUP)
            await committed(connection, 0, 5)
            topic = await OffsetsTopic.of(connection)
            found = (await topic.fetched(NUMBER, 0)).records
            assert found
            for client, error in (("c", "invalid_topic_exception"), ("__admin_client", "not_leader_or_follower")):
                writer = await WireConnection.open("127.0.0.1", broker.address.port, client)
                data = [{"name": TOPIC, "partition_data": [{"index": NUMBER, "records": bytes(found)}]}]
                body = {"transactional_id": None, "acks": -1, "timeout": 1000, "topic_data": data}
                answer = await writer.send(Api.Produce, 9, body)
                assert answer.responses[0].partition_responses[0].error_code.name == error
                writer.close()
            assert await topic.offset_at(NUMBER, LATEST) == (1, -1), "nothing has changed"
            connection.close()

    asyncio.run(body())


def _with_kafka_python(bootstrap: str) -> list[tuple[int, int, bytes]]:
    kafka: Any = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=60_000
    )
    consumer.assign([kafka.TopicPartition(TOPIC, n) for n in sorted(consumer.partitions_for_topic(TOPIC))])
    consumer.seek_to_beginning()
    found = []
    for record in consumer:
        found.append((record.partition, record.offset, record.key))
        if len(found) == 4:
            break
    consumer.close()
    return found


def _with_confluent(bootstrap: str) -> list[tuple[int, int, bytes]]:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, n, 0) for n in range(4)])
    found = []
    while len(found) < 4:
        message = consumer.poll(10)
        assert message is not None, found
        assert message.error() is None, message.error()
        found.append((message.partition(), message.offset(), message.key()))
    consumer.close()
    return found


@pytest.mark.parametrize("read", [_with_kafka_python, _with_confluent])
def test_stock_consumers_read_the_topic(chroot: str, tmp_path: Path, read: Any) -> None:
    with broker_thread(chroot, tmp_path, mount=(mount,), topics={"t": 2}) as bootstrap:
        host, _, port = bootstrap.rpartition(":")

        async def fill() -> None:
            connection = await WireConnection.open(host, int(port), "c")
            groups = ["g", "h"]
            await wait_for_coordinator(connection, *groups)
            for group in groups:
                for number in (0, 1, 0):
                    await committed(connection, number, 5, group)
            connection.close()

        asyncio.run(fill())
        found = read(bootstrap)
    expected = [
        (partition_of(group, 4), b"\0\x01\0\x01" + group.encode() + b"\0\x01t" + number.to_bytes(4))
        for group in ("g", "h")
        for number in (1, 0)
    ]
    assert sorted((partition, key) for partition, _, key in found) == sorted(expected)
    for partition in range(4):
        offsets = [offset for at, offset, _ in found if at == partition]
        assert offsets == sorted(offsets)


# DeleteTopics of `__consumer_offsets` is allowed, as by real 3.9.1 and 4.1.1: groups lose their offsets and go on.

WAIT_S = 60


async def test_groups_can_commit_after_their_topic_was_deleted(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=[mount]) as broker:
        await create_topics(broker, {"t": 1})
        connection = await BrokerConnection.open("127.0.0.1", broker.address.port, "test")

        async def commit(offset: int) -> bool:
            await connection.call(Api.FindCoordinator, {"key": "g", "key_type": 0}, version=2)
            partitions = ({"partition_index": 0, "committed_offset": offset, "committed_metadata": ""},)
            asked: dict[str, Any] = {"group_id": "g", "topics": ({"name": "t", "partitions": partitions},)}
            answer = await connection.call(Api.OffsetCommit, asked, version=6)
            return error_name(answer.topics[0].partitions[0].error_code) == ""

        async def committed() -> int:
            topics = ({"name": "t", "partition_indexes": (0,)},)
            answer = await connection.call(Api.OffsetFetch, {"group_id": "g", "topics": topics}, version=5)
            offset: int = answer.topics[0].partitions[0].committed_offset
            return offset

        await until(lambda: commit(7), WAIT_S, "a first commit")
        assert await committed() == 7
        answer = await connection.call(
            Api.DeleteTopics, {"topic_names": (OFFSETS_TOPIC,), "timeout": 10_000}, version=3
        )
        assert [error_name(one.error_code) for one in answer.responses] == [""]
        await until(lambda: commit(8), WAIT_S, "a commit into the new topic")
        assert await committed() == 8
        connection.close()


# -- coordinators notice deleted topics, and remove their offsets from memory and log ----------------------------------

SETTINGS = {"offsets.topic.num.partitions": "4"}
GROUPS = ("g1", "g2", "g3")


class Scene:
    """Offset 5 of t-0 and of u-0, committed by three groups."""

    def __init__(self, clock: ManualClock, storage: MemoryStorage) -> None:
        self.coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1, "u": 1}, storage)

    async def begin(self) -> None:
        await self.coordinator.lead_all()
        self.connection = await self.coordinator.connect("c")

    async def commit(self) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 5}]} for name in ("t", "u")]
        for group_id in GROUPS:
            await self.connection.call(
                Api.OffsetCommit, 7, group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics
            )

    async def committed(self, topic: str) -> set[int]:
        wanted = [{"name": topic, "partition_indexes": [0]}]
        answers = [await self.connection.call(Api.OffsetFetch, 7, group_id=g, topics=wanted) for g in GROUPS]
        return {answer.topics[0].partitions[0].committed_offset for answer in answers}

    def change(self, topic: str, partitions: int) -> None:
        self.coordinator.cluster.change_topic(topic, partitions)


@asynccontextmanager
async def playing(clock: ManualClock, storage: MemoryStorage | None = None) -> AsyncIterator[Scene]:
    scene = Scene(clock, storage or MemoryStorage())
    await scene.begin()
    try:
        yield scene
    finally:
        await scene.coordinator.stop()


async def test_offsets_of_a_deleted_topic_end_in_every_group(virtual_clock):
    async with playing(virtual_clock) as scene:
        await scene.commit()
        scene.change("t", 0)
        await asyncio.sleep(0.1)
        assert (await scene.committed("t"), await scene.committed("u")) == ({-1}, {5})
        keys = [key for log in scene.coordinator.storage.logs.values() for key in log.pairs]
        assert not any(b"\x01t\x00" in key for key in keys)


async def test_topic_that_takes_the_name_before_anybody_looks_has_no_offsets(virtual_clock):
    async with playing(virtual_clock) as scene:
        await scene.commit()
        scene.change("t", 0)
        scene.change("t", 1)
        await asyncio.sleep(0.1)
        assert (await scene.committed("t"), await scene.committed("u")) == ({-1}, {5})


async def test_topic_that_grows_keeps_its_offsets(virtual_clock):
    async with playing(virtual_clock) as scene:
        await scene.commit()
        scene.change("t", 3)
        await asyncio.sleep(0.1)
        assert await scene.committed("t") == {5}


async def test_coordinator_that_loads_later_keeps_offsets_of_a_deleted_topic_as_4_1_1_does(virtual_clock):
    storage = MemoryStorage()
    async with playing(virtual_clock, storage) as former:
        await former.commit()
    async with playing(virtual_clock, storage) as later:
        await later.coordinator.resign_all()
        later.change("t", 0)
        await asyncio.sleep(0.1)
        await later.coordinator.lead_all(epoch=1)
        assert await later.committed("t") == {5}
