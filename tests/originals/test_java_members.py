"""Kafka 4.1.1's own consumers in groups whose coordinator assigns (KIP-848), also beside librdkafka and ours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from tests.support.brokers.live import broker_thread
from tests.support.java.member import VERSION
from tests.support.java.originals import require
from tests.support.stock.members import JAVA
from tests.support.stock.protocol_stories import (
    STORIES,
    freeze_and_wake,
    restart_static,
    share_and_leave,
    share_with_ours,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stock.protocol_stories import Story


KINDS = ((JAVA, JAVA), (JAVA, "confluent"), ("confluent", JAVA))
#: One pair for each story; `make test-long` plays the others.
PAIRS = {
    share_and_leave: (JAVA, JAVA),
    freeze_and_wake: (JAVA, "confluent"),
    restart_static: ("confluent", JAVA),
    share_with_ours: (JAVA, "confluent"),
}
PLAYED = [
    pytest.param(
        story, kinds, marks=() if kinds == pair else pytest.mark.long, id=f"{story.__name__}-{'-'.join(kinds)}"
    )
    for story, pair in PAIRS.items()
    for kinds in KINDS
]


@pytest.mark.parametrize(("story", "kinds"), PLAYED)
def test_java_members(chroot: str, tmp_path: Path, story: Story, kinds: tuple[str, str]) -> None:
    require(VERSION)
    with broker_thread(chroot, tmp_path, settings=STORIES[story], mount=(mount,), topics={"t": 6}) as bootstrap:
        asyncio.run(story(bootstrap, *kinds))
