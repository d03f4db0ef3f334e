"""Offsets expire by the broker's settings: checked at each interval from the load on, and removed from the log too."""

from __future__ import annotations

import asyncio

from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import LoneCoordinator, MemoryStorage
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "500",
}
OFFSETS = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]


def test_expired_offset_is_removed_from_fetch_and_log():
    clock = ManualClock()
    storage = MemoryStorage()

    async def play() -> None:
        coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1}, storage)
        await coordinator.lead_all()
        connection = await coordinator.connect("c")
        await connection.call(
            Api.OffsetCommit, 7, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=OFFSETS
        )

        async def committed() -> int:
            wanted = [{"name": "t", "partition_indexes": [0]}]
            answer = await connection.call(Api.OffsetFetch, 7, group_id="g", topics=wanted)
            return int(answer.topics[0].partitions[0].committed_offset)

        await asyncio.sleep(59.9)
        assert await committed() == 5
        await asyncio.sleep(1)
        assert await committed() == -1
        described = await connection.call(Api.DescribeGroups, 5, groups=["g"])
        assert described.groups[0].group_state == "Dead"
        assert not any(log.pairs for log in storage.logs.values())
        await coordinator.stop()

    run_virtually(play(), clock)
