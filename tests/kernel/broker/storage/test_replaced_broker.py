"""A whole broker, stopped inside an open transaction, replaced through ZooKeeper, and continued; under load."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from kernel.broker.broker import Broker
from kernel.client.connection import BrokerConnection
from kernel.client.producer import Producer, ProducerConfig
from kernel.client.reads import fetch
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.child import broker_child
from tests.support.brokers.live import client_of, running_broker
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session

TP = TopicPartition("orders", 0)
#: Outlives every pause of a busy machine; the stopped broker's session is expired by the test.
SESSION_MS = 30_000


async def everything(broker: Broker) -> list[tuple[int, bytes | None]]:
    """Every record of the partition, from the broker that leads it."""
    connection = await BrokerConnection.open("127.0.0.1", broker.address.port, "reader")
    try:
        found: list[tuple[int, bytes | None]] = []
        while True:
            got = (await fetch(connection, {TP: len(found)}, max_wait_ms=0))[TP]
            assert got.error == ""
            if not got.records:
                return found
            found += [(record.offset, record.value) for record in got.records]
    finally:
        connection.close()


async def leads(broker: Broker, leader: int, isr: tuple[int, ...]) -> bool:
    def is_so() -> bool:
        partition = broker.cluster.snapshot.partition(TP)
        return partition is not None and (partition.leader, partition.isr) == (leader, isr)

    return await broker.cluster.until(lambda _: is_so(), 10_000)


async def test_stopped_and_replaced_broker_neither_acknowledges_loses_nor_repeats(
    chroot: str, tmp_path: Path, link: ZooKeeperProxy
) -> None:
    async with (
        running_broker(chroot, tmp_path, node_id=2) as successor,
        broker_child(link.connect_string, tmp_path, 1, SESSION_MS, linger_ms=5) as child,
    ):
        assert child.stdout is not None
        port = int(await child.stdout.readline())
        assert await successor.cluster.until(lambda snapshot: set(snapshot.brokers) == {1, 2}, 10_000)
        await successor.cluster.create_topic(TP.topic, partitions=-1, replication_factor=-1, assignment=[[1, 2]])
        assert await leads(successor, 1, (1, 2))
        async with client_of(successor) as client:
            producer = Producer(client, ProducerConfig(request_timeout_ms=500, batch_records_max=5))
            acknowledged: dict[int, bytes] = {}

            async def send(number: int) -> None:
                acknowledged[await producer.send(TP, b"%d" % number)] = b"%d" % number

            await asyncio.gather(*(send(n) for n in range(20)))
            # These are in flight while it is stopped in the middle of a transaction.
            under_way = asyncio.gather(*(send(n) for n in range(20, 220)))
            await until(lambda: len(acknowledged) >= 60, 60, "some of them to be acknowledged", every_s=0.002)
            os.kill(child.pid, signal.SIGSTOP)
            await asyncio.to_thread(end_session, chroot, link.credentials())
            assert await leads(successor, 2, (2,))
            async with client_of(successor) as other_client:
                other = Producer(other_client)
                acknowledged[await other.send(TP, b"successor")] = b"successor"
                await other.close()
            os.kill(child.pid, signal.SIGCONT)
            await under_way
            await asyncio.gather(*(send(n) for n in range(220, 240)))
            assert await leads(successor, 2, (2, 1)), "the old broker registers again, as a follower"
            await producer.close()
        records = await everything(successor)
        assert [offset for offset, _ in records] == list(range(len(records)))
        # Idempotence survives the change of leader: each record once, in the order in which they were sent.
        values = [value for _, value in records]
        assert values.count(b"successor") == 1
        assert [value for value in values if value != b"successor"] == [b"%d" % n for n in range(240)]
        assert acknowledged == dict(records)
        old = await BrokerConnection.open("127.0.0.1", port, "reader")
        assert (await fetch(old, {TP: 0}, max_wait_ms=0))[TP].error == "NOT_LEADER_OR_FOLLOWER"
        old.close()
