"""Coordinating brokers that are killed one after the other while clients have many commits in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coordinator.groups.placement import partition_of
from kernel.waiting import until
from tests.support.coordinators.failover import Brokers, CommittingClient, cluster, committing

PARTITIONS = 4


def groups_of(number: int) -> list[str]:
    """So many group ids, in different partitions as long as there are enough."""
    names = (f"g{i}" for i in range(1000))
    found: dict[int, str] = {}
    for name in names:
        found.setdefault(partition_of(name, PARTITIONS) if len(found) < PARTITIONS else len(found) + 100, name)
        if len(found) == number:
            break
    return list(found.values())


async def busy(clients: list[CommittingClient], commits: int = 50) -> None:
    """Wait until each client has had so many more commits acknowledged, and some client waits for an answer."""
    since = {client.group_id: client.acknowledged for client in clients}

    def are() -> bool:
        for client in clients:
            client.check()
        done = all(client.acknowledged >= since[client.group_id] + commits for client in clients)
        return done and any(client.under_way for client in clients)

    await until(are, 60, lambda: f"commits of {[(c.group_id, c.acknowledged) for c in clients]}", every_s=0.001)


async def agreed(brokers: Brokers, *groups: str) -> dict[str, int]:
    """Wait until all running brokers name the same coordinators, all of them running: {group: broker id}."""
    answers: list[list[int]] = []

    async def same() -> bool:
        answers[:] = [await brokers.found_at(node_id, *groups) for node_id in sorted(brokers.running)]
        return all(found == answers[0] for found in answers) and set(answers[0]) <= brokers.running.keys()

    await until(same, 60, lambda: f"brokers {sorted(brokers.running)} to agree: {answers}")
    return dict(zip(groups, answers[0], strict=True))


async def play(chroot: str, folder: Path, *, number: int, rounds: int, clients: int) -> None:
    groups = groups_of(clients)
    async with cluster(chroot, folder, number) as brokers, committing(brokers, *groups) as members:
        for left in reversed(range(rounds)):
            where = await agreed(brokers, *groups)
            victim = max(brokers.running, key=lambda node_id: list(where.values()).count(node_id))
            await busy(members)
            await brokers.kill(victim)
            moved = await agreed(brokers, *groups)
            assert {group: node_id for group, node_id in where.items() if node_id != victim}.items() <= moved.items()
            for member in members:
                await member.verify()
            await busy(members)
            if left:
                await brokers.start(victim)
        for member in members:
            await member.stop()
            assert member.under_way == 0
            await member.verify()


def test_successor_has_every_acknowledged_commit_and_no_member_has_to_rejoin(chroot: str, tmp_path: Path) -> None:
    asyncio.run(play(chroot, tmp_path, number=2, rounds=1, clients=4))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_successor_has_every_acknowledged_commit_after_many_kills(chroot: str, tmp_path: Path) -> None:
    asyncio.run(play(chroot, tmp_path, number=3, rounds=25, clients=12))
