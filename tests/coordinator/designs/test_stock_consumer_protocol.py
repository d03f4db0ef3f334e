"""Stock consumers that let the coordinator assign (KIP-848, librdkafka's group.protocol=consumer), also beside ours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from tests.support.brokers.live import broker_thread
from tests.support.stock.members import BROKERS, stock_member
from tests.support.stock.protocol_stories import PATIENCE_S, SETTINGS, STORIES, described

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stock.protocol_stories import Story


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_librdkafka_members(chroot: str, tmp_path: Path, story: Story) -> None:
    with broker_thread(chroot, tmp_path, settings=STORIES[story], mount=(mount,), topics={"t": 6}) as bootstrap:
        asyncio.run(story(bootstrap, "confluent", "confluent"))


def test_librdkafka_member_that_subscribes_by_a_regular_expression(chroot: str, tmp_path: Path) -> None:
    async def story(bootstrap: str) -> None:
        async with stock_member("confluent", bootstrap, "matching", "^t(opic)?$", strategy=BROKERS) as member:
            await until(lambda: len(member.owned) == 6, PATIENCE_S, "it to have the topic")
            (row,) = (await described(bootstrap, "matching")).members
            assert (row.subscribed_topic_names, row.subscribed_topic_regex) == ((), "(^t(opic)?$)")
            assert member.failure is None

    with broker_thread(chroot, tmp_path, settings=SETTINGS, mount=(mount,), topics={"t": 6, "u": 1}) as bootstrap:
        asyncio.run(story(bootstrap))
