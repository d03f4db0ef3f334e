"""Kafka 4.1.1's own consumers in groups whose coordinator assigns (KIP-848), alone and beside librdkafka, on ours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from tests.support.brokers import broker_thread
from tests.support.java_member import VERSION
from tests.support.originals import require
from tests.support.protocol_stories import STORIES, freeze_and_wake, restart_static, share_and_leave
from tests.support.stock_members import JAVA

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    Story = Callable[[str, str, str], Coroutine[None, None, None]]


KINDS = ((JAVA, JAVA), (JAVA, "confluent"), ("confluent", JAVA))
#: One story for each pair; `make test-long` plays the others.
PLAYED = [
    pytest.param(story, pair, marks=() if at == of else pytest.mark.long, id=f"{story.__name__}-{'-'.join(pair)}")
    for at, story in enumerate((share_and_leave, freeze_and_wake, restart_static))
    for of, pair in enumerate(KINDS)
]


@pytest.mark.parametrize(("story", "kinds"), PLAYED)
def test_java_members(chroot: str, tmp_path: Path, story: Story, kinds: tuple[str, str]) -> None:
    require(VERSION)
    with broker_thread(chroot, tmp_path, settings=STORIES[story], mount=(mount,), topics={"t": 6}) as bootstrap:
        asyncio.run(story(bootstrap, *kinds))
