"""Our members on real brokers that have a ZooKeeper, 1.1.1 and 3.9.1, and on ours: one test for all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel.client.client import ClusterClient
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper.chroot import ensure_chroot
from tests.support.brokers.live import broker_thread
from tests.support.consumers.zookeeper import member, settled, shared
from tests.support.java.mixed_groups import mixed_group
from tests.support.java.originals import real_broker
from tests.support.zookeeper.sessions import opened
from zkconsumer.znodes.filters import TopicFilter


@dataclass
class OurBroker:
    """Our broker with the interface of `RealBroker`."""

    zookeeper: str
    bootstrap: str

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def create_topic(self, name: str, partitions: int) -> None:
        asyncio.run(self._create(name, partitions))

    async def _create(self, name: str, partitions: int) -> None:
        client = ClusterClient([("127.0.0.1", self.port)], "create")
        wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        connection = await client.any_connection()
        answer = await connection.call(Api.CreateTopics, {"topics": [wanted], "timeout": 10_000})
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.none]

        async def led() -> bool:
            await client.refresh([name])
            return all(client.leader_of(TopicPartition(name, number)) is not None for number in range(partitions))

        await until(led, 60, f"leaders of {name}")
        await client.close()


@contextmanager
def broker_of(kind: str, chroot: str, folder: Path) -> Iterator[object]:
    if kind == "ours":
        asyncio.run(ensure_chroot(chroot, tracer=SilentTracer(), name="chroot", connection_timeout_ms=10_000))
        with broker_thread(chroot, folder) as bootstrap:
            yield OurBroker(chroot, bootstrap)
    else:
        with real_broker(kind, folder, zookeeper=chroot) as broker:
            yield broker


@pytest.mark.parametrize("kind", ["1.1.1", "3.9.1", "ours"])
def test_members_share_a_brokers_topics_and_lose_nothing(chroot, tmp_path, kind):
    async def story(broker):
        async with mixed_group(broker, "g", {"t-a": 5}, tmp_path) as group:
            group.load()
            await group.join_ours("c1", {"t-a": 2})
            await group.settled()
            c2 = await group.join_ours("c2", TopicFilter.white("t-.*"), 2)
            await group.settled()
            await group.create_topic("t-b", 3)
            owned = await group.settled()
            assert {thread for tp, thread in owned.items() if tp.topic == "t-b"} == {"g_c2-0", "g_c2-1"}
            c3 = await group.join_ours_as_process("c3", {"t-a": 1, "t-b": 1})
            await group.settled()
            await group.leaves(c2)
            await group.settled()
            await group.dies(c3)
            await group.join_ours("c4", {"t-b": 1})
            await group.settled()
            await group.drained()
            group.verify()

    with broker_of(kind, chroot, tmp_path / "broker") as broker:
        asyncio.run(story(broker))


@pytest.mark.parametrize("stored_as", ["0.8.2", "0.10.2", "1.1"])
def test_records_of_an_old_producer_are_read_in_every_stored_format(chroot, tmp_path, host_0_8, stored_as):
    """Message formats 0, 1 and 2: with Fetch 4 and later our fetchers get records as they are stored."""

    async def story(broker):
        values = {partition: [b"%d:%d" % (serial, partition) for serial in range(50)] for partition in range(2)}
        await host_0_8.produce(broker.bootstrap, "t", values)
        gzip = {partition: [b"%d:z" % serial for serial in range(50, 60)] for partition in range(2)}
        await host_0_8.produce(broker.bootstrap, "t", gzip, properties={"compression.type": "gzip"})
        async with opened(chroot) as session, member(chroot, "c1", {"t": 2}) as c1:
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c1-1", [1])))
            await c1.read_until(120)
            assert c1.records == {TopicPartition("t", partition): list(range(60)) for partition in range(2)}

    settings = {"log.message.format.version": stored_as}
    with real_broker("1.1.1", tmp_path / "broker", zookeeper=chroot, settings=settings) as broker:
        broker.create_topic("t", 2)
        asyncio.run(story(broker))


# Our member on a broker that is too old to fetch from: it claims, as 1.1.1 does there, delivers nothing, and warns.


async def test_member_claims_on_a_broker_of_0_8_and_warns_that_it_cannot_fetch(chroot, tmp_path, caplog):
    with caplog.at_level(logging.WARNING), real_broker("0.8.2.2", tmp_path, zookeeper=chroot) as broker:

        def warned() -> bool:
            return any("older than Kafka 0.11" in record.getMessage() for record in caplog.records)

        broker.create_topic("t", 2)
        async with opened(chroot) as session, member(chroot, "c1", {"t": 1}):
            await settled(session, shared("t", ("g_c1-0", range(2))))
            await until(warned, 60, "the warning")
    warnings = [record for record in caplog.records if "older than Kafka 0.11" in record.getMessage()]
    assert len(warnings) == 1
