"""The leader's assignment on a live broker."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.assignors.checking import BadAssignment, checked
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Running, partitions_of, shared_out
from tests.support.consumers.eager import bootstrap_of, eager

EVERYTHING = partitions_of("t", 6)


@pytest.mark.parametrize(("strategy", "kept"), [("sticky", 4), ("range", 3)])
async def test_members_keep_what_their_strategy_keeps_when_a_third_one_joins(
    chroot: str, tmp_path: Path, strategy: str, kept: int
) -> None:
    """Range, by contrast, keeps 0 and 1 with the first and 3 with the second. All are eager: everything stops."""
    async with AsyncExitStack() as stack:

        async def joined(name: str) -> Running:
            settings = {"partition.assignment.strategy": strategy, "client.id": name}
            member = eager(bootstrap_of(broker), settings=settings)
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 6})
        members = [await joined("a"), await joined("b")]
        await shared_out(members, EVERYTHING)
        await until(lambda: [len(member.owned) for member in members] == [3, 3], 60, "three partitions each")
        had = [member.owned for member in members]
        third = await joined("c")
        await shared_out([*members, third], EVERYTHING)
        await until(lambda: len(third.owned) == 2, 60, "two partitions for the third member")
        assert sum(len(before & member.owned) for before, member in zip(had, members, strict=True)) == kept
        assert all(member.listener.of("revoked")[-1] == before for before, member in zip(had, members, strict=True))


async def test_invalid_answer_of_a_strategy_is_raised_in_the_leaders_poll(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coordinator.client.classic.group_leader.assignor", lambda name: checked(name, lambda sizes, group: {})
    )
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 6})
        member = await eager(bootstrap_of(broker)).begin({"t": 1})
        await until(lambda: member.failure is not None, 60, "the poll to fail")
        with pytest.raises(BadAssignment, match="'range' left out"):
            await member.close()
        await member.consumer.close()
