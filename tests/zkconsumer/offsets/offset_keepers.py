"""Only the part of a ZooKeeper member that commits: a session, a registry that the test fills, and its offsets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kernel.values import CommitOutcome, TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.trace.tracers import ListTracer
from zkconsumer.offsets.commits import Offsets
from zkconsumer.rebalance.effects import Claim
from zkconsumer.records.streams import PartitionInfo, Registry, Stream
from zkconsumer.settings import ZkConsumerConfig
from zkconsumer.watching.watcher import Watcher


@dataclass
class Keeper:
    """Commits a registry; `closing` is the member's shutdown flag."""

    session: ZooKeeperSession
    offsets: Offsets
    registry: Registry
    tracer: ListTracer
    closing: bool = False

    def own(self, *claimed: int, topic: str = "t", epoch: int | None = None) -> None:
        """Also adopt t-0, t-1, ... at these committed offsets (-1: none), claimed in the current session."""
        stream = Stream("g_c1-0", 2, asyncio.Event())
        infos = [PartitionInfo.of(Claim(topic, n, stream.thread, offset), stream) for n, offset in enumerate(claimed)]
        for info in infos:
            info.session, info.epoch = self.session.session_id, epoch
        self.registry.adopt([*self.registry.infos(), *infos])

    def move(self, *consumed: int) -> None:
        """Move the consumed positions of all partitions, in order."""
        for info, offset in zip(self.registry.infos(), consumed, strict=True):
            info.consumed = offset

    async def commit(self, step: str = "commit", *, explicit: bool = True) -> CommitOutcome:
        return await self.offsets.commit(explicit=explicit, step=step)

    def requests(self) -> list[str]:
        """`operation path result` of every ZooKeeper request so far."""
        return [f"{e['op']} {e['path']} {e['error'] or 'ok'}" for e in self.tracer.of("zk_op")]

    def answered(self) -> list[tuple[object, ...]]:
        """(store, partition, offset, outcome) of every commit so far."""
        events = self.tracer.of("commit_answered")
        return [(e["store"], e["partition"], e["offset"], e["outcome"]) for e in events]


@asynccontextmanager
async def keeper(connect_string: str, *, session_timeout_ms: int = 30_000, **settings: str) -> AsyncIterator[Keeper]:
    """Settings by Kafka's names with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    base = {"zookeeper.connect": connect_string, "group.id": "g", "consumer.id": "c1"}
    config, _ = ZkConsumerConfig.from_settings({**base, **given})
    tracer = ListTracer()
    session = await ZooKeeperSession.open(
        connect_string,
        session_timeout_ms=session_timeout_ms,
        tracer=tracer,
        name="g_c1",
        connection_timeout_ms=30_000,
        retry_forever=True,
    )
    session.member = "g_c1"

    async def renewed() -> None:
        raise AssertionError("there is no delivery task here")

    registry = Registry()
    watching = Watcher(session, renewed)
    offsets = Offsets(session, watching, registry, config, tracer, closing=lambda: made.closing)
    made = Keeper(session, offsets, registry, tracer)
    try:
        yield made
    finally:
        await offsets.close()
        await session.close()


async def stored(session: ZooKeeperSession, partition: int = 0) -> int:
    """The offset of t-`partition` in ZooKeeper; raises `NoNode`."""
    data, _ = await session.get(paths.offset("g", "t", partition))
    return int(data)


def t(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)
