"""Stock consumers that let the coordinator assign (KIP-848, librdkafka's group.protocol=consumer)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from tests.support.brokers import broker_thread
from tests.support.protocol_stories import STORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    Story = Callable[[str, str, str], Coroutine[None, None, None]]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_librdkafka_members(chroot: str, tmp_path: Path, story: Story) -> None:
    with broker_thread(chroot, tmp_path, settings=STORIES[story], mount=(mount,), topics={"t": 6}) as bootstrap:
        asyncio.run(story(bootstrap, "confluent", "confluent"))
