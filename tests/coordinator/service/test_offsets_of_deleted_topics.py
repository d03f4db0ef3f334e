"""Coordinators notice deleted topics, and remove their offsets from memory and log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import LoneCoordinator, MemoryStorage
from tests.support.time.manual_clock import ManualClock

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
