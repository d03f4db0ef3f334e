"""The controller's writes to a real ZooKeeper, one step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from kernel.broker.cluster.controlling import Controller
from kernel.broker.cluster.observing import Observation, Observer
from kernel.broker.cluster.registration import ensure_cluster, register
from kernel.broker.cluster.topics import TopicWriter
from kernel.runtime import Runtime
from kernel.values import BrokerAddress
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.time.manual_clock import ManualClock
from tests.support.zookeeper.sessions import gone, opened

RUNTIME = Runtime(clock=ManualClock())


@dataclass
class Candidate:
    """One broker's session, view of the cluster and candidacy, without the tasks that drive them."""

    session: ZooKeeperSession
    observer: Observer
    controller: Controller

    async def look(self) -> Observation:
        # What others have written arrives before the answer to this, and so do the watches that it fires; their
        # callbacks wait for the loop.
        await self.session.sync("/")
        await asyncio.sleep(0)
        return await self.observer.refresh()

    async def step(self) -> bool:
        return await self.controller.step(await self.look())

    async def states(self, topic: str) -> list[tuple[int, int, int]]:
        """(leader, leader epoch, controller epoch) of each partition, read from ZooKeeper."""
        self.observer.invalidate()
        partitions = (await self.look()).snapshot.topics[topic].partitions
        return [(p.leader, p.leader_epoch, p.controller_epoch) for p in partitions]


@asynccontextmanager
async def candidates(chroot: str, number: int) -> AsyncIterator[list[Candidate]]:
    async with AsyncExitStack() as stack:
        made = []
        for node_id in range(1, number + 1):
            session = await stack.enter_async_context(opened(chroot))
            cluster_id = await ensure_cluster(session, RUNTIME.random)
            await register(session, BrokerAddress(node_id, "127.0.0.1", 9000), RUNTIME.clock, patience_ms=30_000)
            made.append(Candidate(session, Observer(session, cluster_id), Controller(session, node_id, RUNTIME)))
        yield made


async def create(candidate: Candidate, name: str, assignment: Sequence[Sequence[int]]) -> None:
    snapshot = (await candidate.look()).snapshot
    await TopicWriter(candidate.session, RUNTIME.random).create(
        snapshot, name, partitions=-1, replication_factor=-1, config=None, assignment=assignment, validate_only=False
    )


async def test_replaced_controller_writes_nothing(chroot: str) -> None:
    async with candidates(chroot, 2) as (old, new):
        assert await old.step()  # elected
        await create(new, "t", [[1, 2]])
        belief = await old.look()
        assert belief.controller_session == old.session.session_id
        await new.session.delete("/controller")  # as if the old one's session had expired
        assert await new.step()
        assert not await old.controller.step(belief)
        assert await new.states("t") == [(-1, -1, -1)]
        assert await new.step()
        assert await new.states("t") == [(1, 0, 2)]


async def test_broker_restarted_unnoticed_loses_its_previous_leadership(chroot: str) -> None:
    async with candidates(chroot, 2) as (one, two), opened(chroot) as reborn:
        await one.step()
        await create(one, "shared", [[2, 1]])
        await create(one, "lone", [[2]])
        await one.step()
        assert await one.states("shared") == [(2, 0, 1)]
        await two.session.delete("/brokers/ids/2")
        await register(reborn, BrokerAddress(2, "127.0.0.1", 9000), RUNTIME.clock, patience_ms=30_000)
        await one.step()
        # As Kafka does for a bounced broker: it left, then it returned.
        assert await one.states("shared") == [(1, 1, 1)]
        assert await one.states("lone") == [(-1, 1, 1)]
        await one.step()
        assert await one.states("shared") == [(1, 1, 1)]
        assert await one.states("lone") == [(2, 2, 1)]


async def test_leftover_folders_do_not_prevent_an_election(chroot: str) -> None:
    async with candidates(chroot, 1) as (one,):
        await one.step()
        await create(one, "t", [[1], [1], [1]])
        await one.session.create("/brokers/topics/t/partitions/1", None, makepath=True)
        await one.step()
        assert await one.states("t") == [(1, 0, 1)] * 3


async def test_half_deleted_topic_is_deleted_by_the_next_controller(chroot: str) -> None:
    async with candidates(chroot, 2) as (old, new):
        await old.step()
        await create(old, "t", [[1], [1]])
        await old.step()
        await TopicWriter(old.session, RUNTIME.random).delete("t")
        await old.session.delete("/brokers/topics/t/partitions/0/state")
        await old.session.delete("/controller")
        await new.step()
        await new.step()
        assert await new.session.exists("/brokers/topics/t") is None
        assert await new.session.exists("/config/topics/t") is None
        assert await new.session.children("/admin/delete_topics") == []


async def test_many_partitions_are_led_and_moved_in_few_transactions(chroot: str) -> None:
    async with candidates(chroot, 2) as (one, two):
        await one.step()
        await create(one, "t", [[2, 1]] * 250)
        await one.step()
        assert await one.states("t") == [(2, 0, 1)] * 250
        await two.session.close()
        await gone(one.session, paths.broker(2))  # its session has ended on the server, too
        await one.step()
        assert await one.states("t") == [(1, 1, 1)] * 250
