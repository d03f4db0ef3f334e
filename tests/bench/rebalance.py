"""One more member joins a `zookeeper` group of 5, 10 and 20: seconds, and ZooKeeper operations beside the count model.

The model is that of the 0.8.2 consumer with static subscriptions and no conflict: with N members after the join,
T topics, P partitions and B brokers, reads = N^2 + N(T+3B+9) + P + T and writes = 1 + 2P + U, where U are commits
(measured apart). All members live in this process, so the seconds also hold Python's share of the herd.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.broker.client import ClusterClient
from kernel.trace.writer import ListTracer
from kernel.waiting import until
from kernel.wire.versions import Api
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.lab import Server

READS = {"exists", "getData", "getChildren"}
WRITES = {"create", "delete"}
PARTITIONS = 24


@dataclass(frozen=True)
class JoinCost:
    """One join that left `members` members. `commits` are the offset writes among the operations."""

    members: int
    seconds: float
    reads: int
    model_reads: int
    writes: int
    model_writes: int
    commits: int
    notifications: int
    attempts: int


def model(members: int, partitions: int, *, topics: int = 1, brokers: int = 1) -> tuple[int, int]:
    """(reads, writes without commits) of one join without conflict."""
    reads = members**2 + members * (topics + 3 * brokers + 9) + partitions + topics
    return reads, 1 + 2 * partitions


async def join_costs(server: Server, sizes: Sequence[int]) -> list[JoinCost]:
    """The cost of the join into each size, of one group that grows."""
    await _create_topic(server)
    members: list[tuple[ZooKeeperConsumer, ListTracer]] = []
    costs = []
    try:
        for size in sizes:
            while len(members) < size - 1:
                await _join(members, server.zookeeper)
            costs.append(await _join(members, server.zookeeper))
    finally:
        await asyncio.gather(*(consumer.close() for consumer, _ in members))
    return costs


async def _create_topic(server: Server) -> None:
    client = ClusterClient([("127.0.0.1", server.port)], "bench")
    connection = await client.any_connection()
    topic = {"name": "herd", "num_partitions": PARTITIONS, "replication_factor": 1, "assignments": [], "configs": []}
    await connection.call(Api.CreateTopics, {"topics": [topic], "timeout": 10_000})
    await until(lambda: _led(client), 10, "the topic has leaders")
    await client.close()


async def _led(client: ClusterClient) -> bool:
    metadata = await client.refresh(["herd"])
    return sum(leader.node_id >= 0 for leader in metadata.leaders.values()) == PARTITIONS


async def _join(members: list[tuple[ZooKeeperConsumer, ListTracer]], connect: str) -> JoinCost:
    tracer = ListTracer()
    settings = {
        "zookeeper.connect": connect,
        "group.id": "bench",
        "consumer.id": f"m{len(members):02}",
        "rebalance.backoff.ms": "500",
        "auto.commit.enable": "false",
        "rebalance.retries.while.closing": "false",  # 1.1's: many leave at once at the end of the bench
        "auto.offset.reset": "smallest",
    }
    config, _ = ZkConsumerConfig.from_settings(settings)
    joiner = ZooKeeperConsumer(config, tracer=tracer, process=f"m{len(members):02}")
    await joiner.start()
    members.append((joiner, tracer))
    seen = [len(each.events) for _, each in members]
    started = time.monotonic()
    await joiner.subscribe({"herd": 1})

    def news() -> list[Mapping[str, object]]:
        return [event for (_, each), old in zip(members, seen, strict=True) for event in each.events[old:]]

    def settled() -> bool:
        done = news()
        ended = sum(event["kind"] == "rebalance_ended" for event in done)
        found = sum(event["kind"] == "zk_op" and event["step"] == "leader-finder" for event in done)
        owned = [tp for consumer, _ in members for own in consumer.assignment().values() for tp in own]
        return ended >= len(members) and len(owned) == len(set(owned)) == PARTITIONS and found >= 2 * len(members)

    await until(settled, 60, lambda: f"the group of {len(members)} is settled")
    return _cost(len(members), time.monotonic() - started, news())


def _cost(members: int, seconds: float, events: Sequence[Mapping[str, object]]) -> JoinCost:
    operations = [event for event in events if event["kind"] == "zk_op"]
    reads, writes = model(members, PARTITIONS)
    return JoinCost(
        members=members,
        seconds=seconds,
        reads=sum(event["op"] in READS for event in operations),
        model_reads=reads,
        writes=sum(event["op"] in WRITES and bool(event["ok"]) for event in operations),
        model_writes=writes,
        commits=sum(event["op"] == "setData" for event in operations),
        notifications=sum(event["kind"] == "zk_notified" for event in events),
        attempts=sum(event["kind"] == "attempt_started" for event in events),
    )


def run(server: Server, sizes: Sequence[int]) -> list[JoinCost]:
    return asyncio.run(join_costs(server, sizes))
