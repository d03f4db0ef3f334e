"""Live tests of the ZooKeeper consumer: a broker, numbered records, and members that keep what they receive."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel.broker.broker import Broker
from kernel.broker.settings.configuration import BrokerConfig
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.client.reads import LATEST, list_offset
from kernel.serials import numbered_value, serial_of
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.brokers.live import client_of
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import READS
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig

#: Short times for tests; only the session is longer than any pause of a busy machine.
SETTINGS = {
    "zookeeper.session.timeout.ms": "30000",
    "rebalance.backoff.ms": "200",
    "rebalance.max.retries": "20",
    "auto.commit.interval.ms": "3600000",
    "auto.offset.reset": "smallest",
    "rebalance.retries.while.closing": "false",
    "zookeeper.reconnect": "soon",
}


@asynccontextmanager
async def running_broker(
    chroot: str, data_dir: Path, topics: Mapping[str, int], node_id: int = 0
) -> AsyncIterator[Broker]:
    """One of our brokers, with these topics ({name: partitions}) led by it."""
    config, _ = BrokerConfig.from_settings({"broker.id": str(node_id), "port": "0"})
    async with Broker(config, chroot, data_dir, SilentTracer()) as broker:
        for name, partitions in topics.items():
            await broker.cluster.create_topic(name, partitions=partitions, replication_factor=1)
        for name, partitions in topics.items():
            await led(broker, name, partitions)
        yield broker


async def _led(client: ClusterClient, topic: str, partitions: int) -> bool:
    """Whether every partition has a leader that serves it, which happens a moment after it is named."""
    await client.refresh([topic])
    leaders = {tp: client.leader_of(tp) for tp in (TopicPartition(topic, n) for n in range(partitions))}
    for node in set(leaders.values()):
        if node is None:
            return False
        wanted = {tp: LATEST for tp, leader in leaders.items() if leader == node}
        answers = await list_offset(await client.connection(node), wanted)
        if any(error for error, _ in answers.values()):
            return False
    return bool(leaders)


async def led(broker: Broker, topic: str, partitions: int) -> None:
    """Wait until every partition's leader has taken over, so that members look for leaders only once."""
    async with client_of(broker) as client:
        await until(lambda: _led(client, topic, partitions), 60, f"leaders of {topic}")


async def produce(broker: Broker, topic: str, partitions: int, serials: range) -> None:
    """Send records numbered `serials` to each partition."""
    async with client_of(broker) as client:
        producer = Producer(client)
        await asyncio.gather(
            *(
                producer.enqueue(TopicPartition(topic, partition), numbered_value(serial))
                for partition in range(partitions)
                for serial in serials
            )
        )
        await producer.close()


@dataclass
class Member:
    """A consumer under test, and its listener, which records its calls."""

    consumer: ZooKeeperConsumer
    tracer: ListTracer
    calls: list[tuple[str, int, frozenset[TopicPartition]]] = field(default_factory=list)
    records: dict[TopicPartition, list[int]] = field(default_factory=dict)  #: delivered serials

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("assigned", stream, partitions))

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("revoked", stream, partitions))

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError("the 0.8 consumer never notices a loss")

    @property
    def id(self) -> str:
        return self.consumer.member_ids[0]

    @property
    def session(self) -> ZooKeeperSession:
        return self.consumer.session

    async def read(self, *, timeout_ms: int = 100) -> int:
        """Poll once and keep the serials. Returns the number of records."""
        got = 0
        for batch in await self.consumer.getmany(timeout_ms=timeout_ms):
            serials = [serial_of(record.value) for record in batch.records]
            self.records.setdefault(batch.topic_partition, []).extend(s for s in serials if s is not None)
            got += len(serials)
        return got

    async def read_until(self, total: int, *, timeout_s: float = 60) -> None:
        """Poll until `total` records have been delivered."""

        async def enough() -> bool:
            await self.read()
            return sum(map(len, self.records.values())) >= total

        await until(enough, timeout_s, lambda: f"{total} records, got {self.records}")

    def rebalances(self, outcome: str = "ok") -> int:
        return sum(event["outcome"] == outcome for event in self.tracer.of("rebalance_ended"))

    def operations(self) -> list[tuple[str, str, str]]:
        """(step, operation, path) of every ZooKeeper request so far."""
        return [(str(e["step"]), str(e["op"]), str(e["path"])) for e in self.tracer.of("zk_op")]


def wait_for_id(who: Member, ms: int) -> None:
    """Set a started member's wait between attempts to register a taken id. By default it is the session timeout, which
    must be longer than a busy machine's pauses.
    """
    who.consumer._config = replace(who.consumer._config, session_timeout_ms=ms)


def new_member(chroot: str, name: str, *, group: str = "g", **settings: str) -> Member:
    """A member that has not been started; settings by Kafka's names with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    base = {"zookeeper.connect": chroot, "group.id": group, "consumer.id": name}
    config, _ = ZkConsumerConfig.from_settings({**SETTINGS, **base, **given})
    tracer = ListTracer(process=name)
    return Member(ZooKeeperConsumer(config, tracer=tracer, process=name), tracer)


@asynccontextmanager
async def member(
    chroot: str, name: str, topics: Mapping[str, int], *, group: str = "g", **settings: str
) -> AsyncIterator[Member]:
    """A member that has joined (see `new_member`). Closed at the end."""
    made = new_member(chroot, name, group=group, **settings)
    try:
        await made.consumer.start()
        await made.consumer.subscribe(topics, made)
        yield made
    finally:
        await made.consumer.close()


async def owners(session: ZooKeeperSession, group: str = "g") -> dict[TopicPartition, str]:
    """{partition: thread id} of the owner nodes in ZooKeeper."""
    found = {}
    try:
        for topic in await session.children(paths.owners(group)):
            for partition in await session.children(paths.topic_owners(group, topic)):
                try:
                    data, _ = await session.get(paths.owner(group, topic, int(partition)))
                except NoNode:
                    continue
                found[TopicPartition(topic, int(partition))] = data.decode()
    except NoNode:
        return {}
    return found


async def settled(session: ZooKeeperSession, expected: Mapping[TopicPartition, str], *, timeout_s: float = 60) -> None:
    """Wait until the owner nodes are exactly these."""
    seen: dict[TopicPartition, str] = {}

    async def as_expected() -> bool:
        nonlocal seen
        seen = await owners(session)
        return seen == dict(expected)

    await until(as_expected, timeout_s, lambda: f"owners {dict(expected)}, got {seen}")


def shared(topic: str, *pieces: tuple[str, range]) -> dict[TopicPartition, str]:
    """{partition: thread id} from (thread id, partitions) pairs."""
    return {TopicPartition(topic, partition): thread for thread, piece in pieces for partition in piece}


def counted(who: Member, since: int = 0) -> Counter[str]:
    """ZooKeeper requests since event number `since`: by operation, and `step operation` for R8 and R11."""
    counts: Counter[str] = Counter()
    for event in who.tracer.events[since:]:
        if event["kind"] == "zk_op":
            counts["reads" if event["op"] in READS else "writes"] += 1
            counts[f"{event['step']} {event['op']}"] += 1
            counts[
                "ok reads" if event["op"] in READS and event["ok"] else "ok writes" if event["ok"] else "failed"
            ] += 1
    return counts
