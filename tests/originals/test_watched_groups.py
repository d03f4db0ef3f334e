"""`watch` on real brokers, and beside Kafka's own tools: the same group in the same columns."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from comparison.consumers import CONSUMERS, ConsumerRequest
from comparison.group_readers.cluster import open_client
from comparison.group_readers.columns import GroupSeen, Part, tables
from comparison.group_readers.coordinator import CoordinatorReader
from comparison.group_readers.zookeeper import ZooKeeperReader
from comparison.originals import jars
from comparison.originals.brokers import RealBroker
from comparison.originals.java import OPTIONS, logging_options
from kernel.errors import Unavailable
from kernel.platform.jre import find_java
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.java.originals import real_broker, require
from tests.support.zookeeper.sessions import opened

T = [TopicPartition("t", number) for number in range(2)]


def tool(version: str, name: str, *arguments: str) -> list[str]:
    """What a tool of Kafka prints, without empty lines."""
    path = os.pathsep.join(map(str, jars.class_path(version)))
    done = subprocess.run(
        [*(str(find_java().path), "-Xmx128m", *OPTIONS, *logging_options("WARN"), "-cp", path, name, *arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [line.rstrip() for line in done.stdout.splitlines() if line.strip() and not line.startswith("Note: ")]


async def consuming(
    design: str, group: str, broker: RealBroker, test: Callable[[], Awaitable[None]], zookeeper: str = ""
) -> None:
    """Run a test while one member of the group polls; it commits every 100 ms."""
    reset = "smallest" if design == "zookeeper" else "earliest"
    request = ConsumerRequest(
        process="m1",
        group=group,
        client_id="client",
        zookeeper=zookeeper,
        bootstrap=broker.bootstrap,
        settings={"auto.offset.reset": reset, "auto.commit.interval.ms": "100"},
    )
    consumer = CONSUMERS[design].consumer(request, SilentTracer())

    async def poll() -> None:
        while True:
            await consumer.getmany(timeout_ms=50)

    await consumer.start()
    await consumer.subscribe({"t": 1})
    polling = asyncio.create_task(poll())
    try:
        await test()
    finally:
        polling.cancel()
        await consumer.close()


async def seen_whole(read: Callable[[], Awaitable[GroupSeen]]) -> GroupSeen:
    """The group once each partition has its owner and its log end."""
    seen: GroupSeen | None = None

    async def whole() -> bool:
        nonlocal seen
        with contextlib.suppress(Unavailable):  # the coordinator is being elected
            seen = await read()
        return (
            seen is not None
            and [row.partition for row in seen.partitions] == T
            and all(row.owner and row.end is not None for row in seen.partitions)
        )

    await until(whole, 60, lambda: f"owners and log ends of both partitions: {seen}", every_s=0.2)
    assert seen is not None
    return seen


@pytest.mark.parametrize("version", ["1.1.1", "3.9.1", "4.1.1"])
def test_group_of_a_real_coordinator_is_shown(version: str, chroot: str, tmp_path: Path) -> None:
    where = {} if version == "4.1.1" else {"zookeeper": chroot}
    with real_broker(version, tmp_path, **where) as broker:
        broker.create_topic("t", 2)

        async def run() -> None:
            client = await open_client([("127.0.0.1", broker.port)])
            reader = CoordinatorReader(client, "g")
            try:

                async def shown() -> None:
                    seen = await seen_whole(reader.read)
                    (member,) = seen.members
                    assert (seen.state, seen.strategy) == ("Stable", "range")
                    assert seen.coordinator == f"127.0.0.1:{broker.port} (1)"
                    assert (member.owned, member.client) == (tuple(T), "client")
                    assert [row.end for row in seen.partitions] == [0, 0]
                    if version == "1.1.1":
                        asked = ("--describe", "--group", "g", "--members", "--timeout", "60000")
                        arguments = ("--bootstrap-server", broker.bootstrap, *asked)
                        printed = await asyncio.to_thread(tool, version, "kafka.admin.ConsumerGroupCommand", *arguments)
                        (table,) = tables(seen, [Part.MEMBERS])
                        assert [line.split()[1:5] for line in table.lines()] == [line.split()[:4] for line in printed]

                await consuming("eager", "g", broker, shown)

                async def is_empty() -> bool:
                    return not (await reader.read()).members

                await until(is_empty, 60, "the member to have left")
            finally:
                await client.close()

        asyncio.run(run())


def test_group_of_kip_848_is_shown(tmp_path: Path) -> None:
    with real_broker("4.1.1", tmp_path) as broker:
        broker.create_topic("t", 2)
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "modern", "group.protocol": "consumer"}
        with contextlib.closing(Consumer({**settings, "client.id": "stock"})) as consumer:
            consumer.subscribe(["t"])

            async def run() -> None:
                client = await open_client([("127.0.0.1", broker.port)])
                reader = CoordinatorReader(client, "modern")

                async def read() -> GroupSeen:
                    await asyncio.to_thread(consumer.poll, 0.2)
                    return await reader.read()

                try:
                    seen = await seen_whole(read)
                finally:
                    await client.close()
                (member,) = seen.members
                assert (member.client, member.owned) == ("stock", tuple(T))
                assert seen.state == "Stable"
                assert seen.strategy

            asyncio.run(run())


def test_group_in_zookeeper_is_shown_as_by_consumer_offset_checker(chroot: str, tmp_path: Path) -> None:
    """The brokers are of 0.8.2.2, which cannot be asked for the versions of their requests."""
    require("0.8.2.2")
    with real_broker("0.8.2.2", tmp_path, zookeeper=chroot) as broker:
        broker.create_topic("t", 2)

        async def run() -> None:
            reader = await ZooKeeperReader.open(chroot, "g")
            try:

                async def shown() -> None:
                    async with opened(chroot) as session:
                        for tp in T:  # without offsets the tool ends with an exception
                            await session.create(paths.offset("g", "t", tp.partition), b"0", makepath=True)
                    seen = await seen_whole(reader.read)
                    (table,) = tables(seen, [Part.OFFSETS])
                    checker = "kafka.tools.ConsumerOffsetChecker"
                    printed = await asyncio.to_thread(tool, "0.8.2.2", checker, "--zookeeper", chroot, "--group", "g")
                    assert table.lines() == printed

                await consuming("zookeeper", "g", broker, shown, zookeeper=chroot)
            finally:
                await reader.close()

        asyncio.run(run())
