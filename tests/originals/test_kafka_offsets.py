"""offsets.storage=kafka on a real broker of 1.1.1: our member does what the originals do, and they take over from each
other. Ours sends OffsetFetch and OffsetCommit version 2, 0.8.2.2 version 1, 1.1.1 version 2.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost, OriginalMember
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection
from kernel.client.producer import Producer
from kernel.serials import numbered_value
from kernel.values import NO_OFFSET, TopicPartition
from kernel.waiting import until
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.zookeeper import Member, member
from tests.support.java.originals import PROPERTIES
from tests.support.zookeeper.sessions import opened

OURS, OLD, LAST = "ours", "0.8.2.2", "1.1.1"
KAFKA = {"offsets.storage": "kafka", "offsets.channel.backoff.ms": "100"}
ONLY_KAFKA = {**KAFKA, "dual.commit.enabled": "false"}


class Reader(Protocol):
    """A member of any kind that reads its topic's only partition."""

    async def read(self, total: int) -> list[int]:
        """Wait for `total` records; returns the offsets of all that arrived."""

    async def commit(self) -> None: ...


class OurReader:
    def __init__(self, made: Member) -> None:
        self._made = made

    async def read(self, total: int) -> list[int]:
        await self._made.read_until(total)
        return [offset for offsets in self._made.records.values() for offset in offsets]  # serials are offsets here

    async def commit(self) -> None:
        await self._made.consumer.commit()


class OriginalReader:
    def __init__(self, made: OriginalMember) -> None:
        self._made = made

    async def read(self, total: int) -> list[int]:
        await self._made.read_until(total)
        return [message.offset for message in self._made.messages]

    async def commit(self) -> None:
        await self._made.commit()


class Bed:
    """A group and a topic for one test on the shared broker."""

    def __init__(
        self, broker: RealBroker, name: str, session: ZooKeeperSession, host_of: Callable[[str], OriginalHost]
    ) -> None:
        self.broker = broker
        self.name = name  #: of group and topic
        self.session = session
        self._host_of = host_of

    @asynccontextmanager
    async def joined(self, kind: str, name: str, settings: dict[str, str]) -> AsyncIterator[Reader]:
        """A member that leaves at the end, with a last commit."""
        assert self.broker.zookeeper is not None
        if kind == OURS:
            given = {key.replace(".", "_"): value for key, value in settings.items()}
            async with member(self.broker.zookeeper, name, {self.name: 1}, group=self.name, **given) as ours:
                yield OurReader(ours)
            return
        original = await self._host_of(kind).join(
            name,
            zookeeper=self.broker.zookeeper,
            group=self.name,
            topics={self.name: 1},
            properties={**PROPERTIES, **settings},
        )
        try:
            yield OriginalReader(original)
        finally:
            await original.leave()

    @property
    def node(self) -> str:
        return paths.offset(self.name, self.name, 0)

    async def in_zookeeper(self) -> int | None:
        if await self.session.exists(self.node) is None:
            return None
        return int((await self.session.get(self.node))[0])

    async def in_kafka(self) -> int:
        async with self._coordinator() as connection:
            topics = [{"name": self.name, "partition_indexes": [0]}]
            answer = await connection.call(Api.OffsetFetch, {"group_id": self.name, "topics": topics}, version=2)
            return int(answer.topics[0].partitions[0].committed_offset)

    async def commit_in_kafka(self, offset: int) -> None:
        """As a simple consumer; waits for a coordinator that has just been named."""
        parts = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
        body = {
            "group_id": self.name,
            "generation_id_or_member_epoch": -1,
            "retention_time": -1,
            "topics": [{"name": self.name, "partitions": parts}],
        }

        async def accepted() -> bool:
            async with self._coordinator() as connection:
                answer = await connection.call(Api.OffsetCommit, body, version=2)
            return answer.topics[0].partitions[0].error_code.value == 0

        await until(accepted, 60, "the coordinator to take a commit")

    async def produce(self, serials: range) -> None:
        client = ClusterClient([("127.0.0.1", self.broker.port)], "test")
        producer = Producer(client)
        try:
            sent = [producer.enqueue(TopicPartition(self.name, 0), numbered_value(serial)) for serial in serials]
            await asyncio.gather(*sent)
        finally:
            await producer.close()
            await client.close()

    @asynccontextmanager
    async def _coordinator(self) -> AsyncIterator[BrokerConnection]:
        client = ClusterClient([("127.0.0.1", self.broker.port)], "test")
        try:
            connection = await client.any_connection()  # the cluster has one broker
            await connection.call(Api.FindCoordinator, {"key": self.name}, version=0)  # makes the topic of offsets
            yield connection
        finally:
            await client.close()


@pytest.fixture
def bed(broker_1_1, request):
    """Makes a test's bed; its name must be unique."""
    hosts = {OLD: "host_0_8", LAST: "host_1_1"}

    @asynccontextmanager
    async def made(name: str, *, leader: bool = True) -> AsyncIterator[Bed]:
        async with opened(broker_1_1.zookeeper) as session:
            if leader:
                await asyncio.to_thread(broker_1_1.create_topic, name, 1)
            else:
                # Without the second partition the broker would not know the topic.
                replicas = b'{"version":1,"partitions":{"0":[99],"1":[%d]}}' % broker_1_1.node_id
                await session.create(paths.topic(name), replicas)
            yield Bed(broker_1_1, name, session, lambda kind: request.getfixturevalue(hosts[kind]))

    return made


@pytest.mark.parametrize("kind", [OURS, OLD, LAST])
@pytest.mark.parametrize(
    ("before", "kafka", "settings", "start"),
    [(30, 20, KAFKA, 30), (5, 20, KAFKA, 20), (None, 20, KAFKA, 20), (30, 20, ONLY_KAFKA, 20)],
    ids=["30-20-dual", "5-20-dual", "none-20-dual", "30-20-single"],
)
async def test_member_starts_from_its_stores_offsets_and_commits_to_the_right_store(
    bed, request, kind, before, kafka, settings, start
):
    async with bed("start-" + request.node.callspec.id) as made:
        await made.produce(range(40))
        await made.commit_in_kafka(kafka)
        if before is not None:
            await made.session.create(made.node, b"%d" % before, makepath=True)
        async with made.joined(kind, "c1", settings) as reader:
            assert await reader.read(40 - start) == list(range(start, 40))
            assert await made.in_kafka() == kafka  # no member has committed
            assert await made.in_zookeeper() == before
        assert await made.in_kafka() == 40
        assert await made.in_zookeeper() == (before if settings is ONLY_KAFKA else 40)


@pytest.mark.parametrize(("first", "second"), [(OURS, OLD), (OLD, OURS), (LAST, OURS), (OURS, LAST)])
async def test_each_kind_continues_at_the_others_offset(bed, first, second):
    async with bed(f"hand-over-{first}-{second}") as made:
        await made.produce(range(10))
        async with made.joined(first, "c1", ONLY_KAFKA) as reader:
            await reader.read(10)
            await reader.commit()
            assert await made.in_kafka() == 10
        await made.produce(range(10, 20))
        async with made.joined(second, "c2", ONLY_KAFKA) as reader:
            assert await reader.read(10) == list(range(10, 20))
        assert await made.in_zookeeper() is None


@pytest.mark.parametrize("kind", [OURS, OLD, LAST])
async def test_unknown_position_overwrites_a_known_one(bed, kind):
    """A partition without a leader: the member read "no offset", so its commit overwrites later ones with -1.

    Such a position is never written to ZooKeeper; every commit to Kafka includes all positions.
    """
    async with bed(f"unresolved-{kind}", leader=False) as made:
        async with made.joined(kind, "c1", KAFKA) as reader:
            await made.commit_in_kafka(30)
            assert await made.in_kafka() == 30
            await reader.commit()
            assert await made.in_kafka() == NO_OFFSET
        assert await made.in_zookeeper() is None


#: As most applications that want only what is new: the log's end if there is no offset, and commits of their own.
FROM_THE_END = {"auto.offset.reset": "largest", "auto.commit.enable": "false"}


async def first_read(made: Bed, reader: Reader, end: int) -> tuple[int, int]:
    """Send one record after the other until the reader gets one; returns its offset, and the log's end."""
    for offset in itertools.count(end):
        await made.produce(range(offset, offset + 1))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                return (await reader.read(1))[0], offset + 1
    raise AssertionError("an endless loop has ended")


@pytest.mark.parametrize(("first", "second"), [(OURS, OURS), (OLD, OLD), (LAST, LAST), (OLD, OURS), (OURS, LAST)])
async def test_what_comes_between_two_owners_is_skipped_before_the_first_commit(bed, first, second):
    """The scenario uncommitted-reset: nothing failed, and nobody delivers what came in between."""
    async with bed(f"between-{first}-{second}") as made:
        await made.produce(range(10))
        async with made.joined(first, "c1", FROM_THE_END) as reader:
            start, end = await first_read(made, reader, 10)
            assert start >= 10
        assert await made.in_zookeeper() is None
        await made.produce(range(end, end + 10))
        async with made.joined(second, "c2", FROM_THE_END) as reader:
            start, _ = await first_read(made, reader, end + 10)
            assert start >= end + 10
            await reader.commit()
        committed = await made.in_zookeeper()
        assert committed is not None
        await made.produce(range(committed, committed + 10))
        async with made.joined(second, "c3", FROM_THE_END) as reader:
            assert await reader.read(10) == list(range(committed, committed + 10))
