"""Stock consumers that let the coordinator assign (KIP-848, librdkafka's group.protocol=consumer)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers import broker_thread
from tests.support.consuming import partitions_of
from tests.support.stock_members import BROKERS, stock_member
from tests.support.wire_clients import WireConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERYTHING = partitions_of("t", 6)


@pytest.fixture
def bootstrap(chroot: str, tmp_path: Path) -> Iterator[str]:
    settings = dict.fromkeys(
        ("group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms"), "200"
    )
    with broker_thread(chroot, tmp_path, settings=settings, mount=(mount,), topics={"t": 6}) as address:
        yield address


def test_members_share_partitions_follow_a_growing_topic_and_leave(bootstrap: str) -> None:
    async def story() -> None:
        async with stock_member("confluent", bootstrap, "g", "t", strategy=BROKERS) as first:
            await until(lambda: first.owned == EVERYTHING, 30, "the first to own everything")
            async with stock_member("confluent", bootstrap, "g", "t", strategy=BROKERS) as second:
                await until(lambda: len(first.owned) == len(second.owned) == 3, 30, "them to share")
                assert first.owned | second.owned == EVERYTHING
                await grow(bootstrap, 8)
                await until(lambda: len(first.owned | second.owned) == 8, 30, "the new partitions to be shared out")
            await until(lambda: len(first.owned) == 8, 30, "the first to own everything again")
            assert first.failure is None

    asyncio.run(story())


async def grow(bootstrap: str, count: int) -> None:
    host, port = bootstrap.split(":")
    connection = await WireConnection.open(host, int(port), "admin")
    topic = {"name": "t", "count": count, "assignments": None}
    await connection.send(Api.CreatePartitions, 3, {"topics": [topic], "timeout": 10_000, "validate_only": False})
    connection.close()
