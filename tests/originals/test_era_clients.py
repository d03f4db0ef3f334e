"""kafka-node and pykafka, which other authors wrote for brokers of the ZooKeeper era, on our broker as on a real one.

kafka-node claims its partitions by the same znodes as Kafka's own consumer, and so shares a group with it and with our
`zookeeper` members. pykafka's BalancedConsumer does not: it registers a bare topic name, which neither Kafka's consumer
nor ours can read, and claims under other paths. Its ManagedBalancedConsumer joins a group at the coordinator.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalFailed
from coordinator.service.mount import mount
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.errors import RebalanceLabError
from kernel.serials import numbered_value
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from tests.originals.era_clients import BALANCED, MANAGED, NODE, SIMPLE, EraMember, era_member
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import partitions_of
from tests.support.consumers.eager import eager
from tests.support.consumers.zookeeper import member as our_member
from tests.support.consumers.zookeeper import owners
from tests.support.java.originals import PROPERTIES
from tests.support.zookeeper.sessions import opened

PARTITIONS = 4
NUMBER = 600  #: of records, on all partitions
OURS, REAL = "ours", "1.1.1"


class Bed:
    """A broker of either kind, with a topic `t` of the test's own name."""

    def __init__(self, bootstrap: str, zookeeper: str, topic: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.zookeeper = zookeeper
        self.topic = topic
        self.folder = folder
        self._sent = 0

    def joined(self, kind: str) -> Any:
        return era_member(kind, self.bootstrap, self.zookeeper, self.topic, self.topic, self.folder)

    async def produce(self, number: int) -> list[tuple[int, int]]:
        """Send records, the same number to each partition; returns their (partition, offset)."""
        host, _, port = self.bootstrap.rpartition(":")
        each = number // PARTITIONS
        offsets = range(self._sent, self._sent + each)
        client = ClusterClient([(host, int(port))], "test")
        producer = Producer(client)
        try:
            await asyncio.gather(
                *(
                    producer.enqueue(TopicPartition(self.topic, partition), numbered_value(offset))
                    for partition in range(PARTITIONS)
                    for offset in offsets
                )
            )
        finally:
            await producer.close()
            await client.close()
        self._sent += each
        return [(partition, offset) for partition in range(PARTITIONS) for offset in offsets]


@asynccontextmanager
async def our_bed(chroot: str, tmp_path: Path) -> AsyncIterator[Bed]:
    async with running_broker(chroot, tmp_path / "data", mount=(mount,)) as broker:
        await create_topics(broker, {"t": PARTITIONS})
        yield Bed(f"{broker.address.host}:{broker.address.port}", chroot, "t", tmp_path)


@asynccontextmanager
async def real_bed(broker: RealBroker, name: str, tmp_path: Path) -> AsyncIterator[Bed]:
    assert broker.zookeeper is not None
    await asyncio.to_thread(broker.create_topic, name, PARTITIONS)
    yield Bed(broker.bootstrap, broker.zookeeper, name, tmp_path)


async def has_read(member: EraMember, expected: list[tuple[int, int]], since: int = 0) -> None:
    """Wait until it has read so many records; they must be these, each once, and in order in each partition."""
    await until(
        lambda: len(member.read) - since >= len(expected),
        120,
        lambda: f"{len(expected)} records, got {len(member.read) - since}: {member.said}",
    )
    got = member.read[since:]
    assert sorted(got) == sorted(expected)
    for partition in range(PARTITIONS):
        offsets = [offset for number, offset in got if number == partition]
        assert offsets == sorted(offsets)


@pytest.mark.parametrize("kind", [NODE, SIMPLE, BALANCED])
@pytest.mark.parametrize("where", [OURS, REAL])
def test_client_reads_all_and_goes_on_where_it_stopped(
    request: pytest.FixtureRequest, chroot: str, tmp_path: Path, where: str, kind: str
) -> None:
    async def test() -> None:
        made = (
            our_bed(chroot, tmp_path)
            if where == OURS
            else real_bed(request.getfixturevalue("broker_1_1"), f"all-{kind}", tmp_path)
        )
        async with made as bed:
            expected = await bed.produce(NUMBER)
            async with bed.joined(kind) as first:
                await has_read(first, expected)
            later = await bed.produce(40)
            async with bed.joined(kind) as second:
                await has_read(second, later)

    if where == REAL:
        request.getfixturevalue("broker_1_1")  # not inside a running loop
    asyncio.run(asyncio.wait_for(test(), 500))


async def test_kafka_node_shares_a_group_with_our_member(chroot: str, tmp_path: Path) -> None:
    """Each partition has one owner, every record one reader, and each takes over where the other stopped."""
    async with our_bed(chroot, tmp_path) as bed, opened(chroot) as session:

        async def shares() -> list[int]:
            """How many partitions each owner has."""
            return sorted(Counter((await owners(session, bed.topic)).values()).values())

        async def settled(*expected: int) -> None:
            async def as_expected() -> bool:
                return await shares() == list(expected)

            await until(as_expected, 120, f"partitions to be shared out {expected}")

        async with our_member(chroot, "c1", {bed.topic: 1}, group=bed.topic, auto_commit_interval_ms="200") as ours:
            async with bed.joined(NODE) as node:
                await settled(2, 2)
                expected = await bed.produce(NUMBER)

                def read() -> set[tuple[int, int]]:
                    """By either: nothing fences readers of this era, so some records may be read twice."""
                    mine = {(tp.partition, serial) for tp, serials in ours.records.items() for serial in serials}
                    return mine | set(node.read)

                async def all_read() -> bool:
                    await ours.read()
                    return read() >= set(expected)

                await until(all_read, 120, lambda: f"all records to be read: {node.said}")
                assert len(set(node.read)) >= NUMBER // 2
            await settled(4)  # kafka-node has left
            expected += await bed.produce(40)
            await until(all_read, 120, "the records that came when kafka-node had left")
            assert read() == set(expected)
        last = await bed.produce(40)
        async with bed.joined(NODE) as again:
            await has_read(again, last)


async def test_two_of_pykafka_share_a_group_with_offsets_at_our_coordinator(chroot: str, tmp_path: Path) -> None:
    async with our_bed(chroot, tmp_path) as bed:
        async with bed.joined(BALANCED) as first, bed.joined(BALANCED) as second, opened(chroot) as session:
            # pykafka writes a topic's name as Python shows its bytes, and a partition's under the id of its broker.
            node = paths.topic_owners(bed.topic, repr(bed.topic.encode()))

            async def owned_by_two() -> bool:
                try:
                    claims = [(await session.get(f"{node}/{name}"))[0] for name in await session.children(node)]
                except NoNode:
                    return False
                return sorted(Counter(claims).values()) == [2, 2]

            await until(owned_by_two, 120, lambda: f"two owners of {PARTITIONS}: {first.said} {second.said}")
            expected = await bed.produce(NUMBER)
            await until(
                lambda: len(first.read) + len(second.read) >= NUMBER,
                120,
                lambda: f"all records to be read: {first.said} {second.said}",
            )
            assert sorted(first.read + second.read) == sorted(expected)
            assert await session.exists(paths.offsets(bed.topic)) is None
        more = await bed.produce(40)
        async with bed.joined(BALANCED) as third:
            await has_read(third, more)


async def test_pykafka_shares_a_group_at_the_coordinator_with_our_eager_member(chroot: str, tmp_path: Path) -> None:
    async with our_bed(chroot, tmp_path) as bed:
        ours = eager(bed.bootstrap, bed.topic, {"partition.assignment.strategy": "range"})
        try:
            await ours.begin({bed.topic: 1})
            async with bed.joined(MANAGED) as theirs:
                await until(lambda: len(ours.owned) == 2, 120, lambda: f"our member to keep half: {theirs.said}")
                expected = await bed.produce(NUMBER)
                await until(
                    lambda: len(ours.records) + len(theirs.read) >= NUMBER, 120, lambda: f"all records: {theirs.said}"
                )
                mine = [(record.partition, record.offset) for record in ours.records]
                assert sorted(mine + theirs.read) == sorted(expected)
                assert len(theirs.read) == NUMBER // 2
            await until(lambda: ours.owned == partitions_of(bed.topic, PARTITIONS), 120, "our member to have all again")
        finally:
            await ours.close()


async def test_pykafkas_registration_fails_the_rebalance_of_our_member_as_of_the_original(
    chroot: str, tmp_path: Path, host_1_1: Any
) -> None:
    """The registration is no JSON. With neither kind of member can pykafka share a group in ZooKeeper."""
    async with our_bed(chroot, tmp_path) as bed, bed.joined(BALANCED) as theirs, opened(chroot) as session:
        registered = paths.member_ids(bed.topic)

        async def is_there() -> bool:
            return await session.exists(registered) is not None and await session.children(registered) != []

        await until(is_there, 120, lambda: f"pykafka to register: {theirs.said}")
        few = {"rebalance.max.retries": "2"}
        with pytest.raises(OriginalFailed, match="can't rebalance after 2 retries"):
            await host_1_1.join(
                "c1", zookeeper=chroot, group=bed.topic, topics={bed.topic: 1}, properties={**PROPERTIES, **few}
            )
        with pytest.raises(RebalanceLabError, match="can't rebalance after 2 retries"):
            async with our_member(chroot, "c2", {bed.topic: 1}, group=bed.topic, rebalance_max_retries="2"):
                pass
