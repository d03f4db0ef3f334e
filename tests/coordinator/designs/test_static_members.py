"""Static members on a live broker: one that returns under its instance id causes no rebalance (KIP-345, KIP-814)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from coordinator.client.errors import GroupRefused
from coordinator.service.mount import mount
from kernel.assignors.registry import assignor
from kernel.assignors.subscription import Assignor
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Running, partitions_of
from tests.support.consumers.eager import bootstrap_of, eager, generation_of, settled

EVERYTHING = partitions_of("t", 6)


def asked(member: Running, api: str) -> int:
    return sum(event["api"] == api for event in member.tracer.of("request_answered"))


def given_up(members: list[Running]) -> int:
    return sum(len(member.listener.of("revoked")) + len(member.listener.of("lost")) for member in members)


def phases(member: Running) -> list[object]:
    return [event["phase"] for event in member.tracer.of("phase_entered") if event["phase"] != "backoff"]


async def test_static_members_restart_without_a_rebalance_and_the_newer_duplicate_wins(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[str] = []

    def counting(protocol: str) -> Assignor:
        rounds.append(protocol)
        return assignor(protocol)

    monkeypatch.setattr("coordinator.client.classic.group_leader.assignor", counting)
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 6})

        async def joined(name: str) -> Running:
            member = eager(bootstrap_of(broker), settings={"group.instance.id": name})
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        members = [await joined("a")]
        await settled(members, EVERYTHING)
        members += [await joined("b"), await joined("c")]
        await settled(members, EVERYTHING)
        generation, had, decided = generation_of(members[0]), [m.owned for m in members], len(rounds)

        for number, name in enumerate("abc"):  # the first leads
            others = [member for member in members if member is not members[number]]
            before = given_up(others)
            await members[number].close()
            assert asked(members[number], "LeaveGroup") == 0
            members[number] = await joined(name)
            await settled(members, EVERYTHING)
            assert given_up(others) == before
        assert [generation_of(member) for member in members] == [generation] * 3
        assert [member.owned for member in members] == had
        assert [(asked(m, "JoinGroup"), asked(m, "SyncGroup")) for m in members] == [(1, 1)] * 3
        assert len(rounds) == decided
        # The leader learns that it leads, and what it has to watch; the assignment stays as it is.
        follower = ["join", "claim", "resume"]
        assert [phases(member) for member in members] == [["join", "decide", "claim", "resume"], follower, follower]

        old, twin = members[1], await joined("b")
        await until(lambda: old.failure is not None, 60, "the older twin to be fenced")
        with pytest.raises(GroupRefused, match=r"FENCED_INSTANCE_ID.*another member with this group\.instance\.id"):
            await old.pause()
        assert old.owned == frozenset()
        assert old.listener.of("lost") == [had[1]]
        await settled([members[0], twin, members[2]], EVERYTHING)
        assert (twin.owned, generation_of(twin)) == (had[1], generation)
