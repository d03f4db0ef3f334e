"""A coordinating broker with many groups is killed: its successor has all of them, and no member has to rejoin."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.coordinator.failover.filled import filled, responses_while_moving, verify
from tests.support.coordinators.failover import cluster

DOOMED, SUCCESSOR = 1, 2
#: The answers for a partition that is led elsewhere, is being loaded, is loaded; each stage may be missed.
STAGES = {
    "fetch": ["not_coordinator", "coordinator_load_in_progress", "none"],
    "heartbeat": ["not_coordinator", "none"],
    "sync": ["not_coordinator", "rebalance_in_progress", "none"],
}


def is_in_stages(answers: list[str], stages: list[str]) -> bool:
    """Whether no stage comes back, and the last one is reached."""
    return answers == [stage for stage in stages if stage in answers] and answers[-1] == stages[-1]


async def play(chroot: str, folder: Path, *, groups: int, members: int, offsets: int) -> None:
    async with cluster(chroot, folder, 2) as brokers:
        made = await filled(brokers, DOOMED, groups=groups, members=members, offsets=offsets)
        await brokers.kill(DOOMED)
        responses = await responses_while_moving(brokers, SUCCESSOR, made)
        wrong = {
            what: answers for what, answers in responses.items() if not is_in_stages(answers, STAGES[what.split()[0]])
        }
        assert not wrong
        await verify(brokers, SUCCESSOR, made)


def test_successor_of_a_killed_coordinator_has_every_group_unchanged(chroot: str, tmp_path: Path) -> None:
    asyncio.run(play(chroot, tmp_path, groups=12, members=3, offsets=5))


@pytest.mark.long
def test_successor_of_a_killed_coordinator_has_a_thousand_groups_unchanged(chroot: str, tmp_path: Path) -> None:
    asyncio.run(play(chroot, tmp_path, groups=1_000, members=10, offsets=100))
