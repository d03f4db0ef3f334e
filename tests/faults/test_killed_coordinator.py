"""Members of the server design whose coordinating broker, a process, is killed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import partitions_of, shared_out
from tests.support.coordinators.failover import cluster

pytestmark = pytest.mark.faults


async def test_members_go_on_in_their_generation_when_the_coordinating_broker_is_killed(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        brokers = await stack.enter_async_context(cluster(chroot, tmp_path, 2))
        await brokers.create_topic("u", 4)
        members = []
        for _ in range(2):
            member = commanded(brokers.bootstrap, chroot)
            stack.push_async_callback(member.close)
            members.append(await member.begin({"u": 1}))
        await shared_out(members, partitions_of("u", 4))
        owned = [member.owned for member in members]
        await brokers.kill(await brokers.coordinator_of("g"))
        for member in members:
            outcome = await member.consumer.commit(dict.fromkeys(member.owned, 0))
            assert not outcome.refused
        assert [member.owned for member in members] == owned
        heard = [what for member in members for what, _, _ in member.listener.heard]
        assert heard.count("assigned") == heard.count("revoked") + 2  # the assignments before the kill
        assert "lost" not in heard
