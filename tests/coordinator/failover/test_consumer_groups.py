"""A coordinator that goes away at any step of the life of a `consumer` group: members go on as if nothing had happened.

The life is a list of steps. At each of them the coordinator is replaced in four ways: between two steps, by a transfer
or a death; after the step's records are durable, but its answer is lost; before they are durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.coordinator.failover.consumer_lives import Life
from tests.coordinator.failover.moving import MovedCoordinator, play

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What follows the name is what the step is for.
LIFE = (
    "join a, who gets everything",
    "join b, who has to wait",
    "beat a, who is told to revoke",
    "beat b, who still waits",
    "beat a, who has revoked",
    "beat b, who takes",
    "join C, while the group is Stable",
    "beat a, who is told to revoke",
    "beat b, who is told to revoke",
    "beat a, who has revoked",
    "beat C, who takes a part and waits for the rest",
    "join d, while b is revoking",
    "beat b, who has revoked, and is told to revoke more",
    "beat C, who is told to revoke",
    "beat b, who has revoked",
    "away C, while it is revoking",
    "beat d, who takes",
    "join C, under another id",
    "beat a, who is told to revoke",
    "beat a, who has revoked",
    "leave d, who has partitions",
    "beat b, who finds a new target",
    "beat C, who takes",
)
STEPS = [step.replace(",", "", 1) for step in LIFE]
#: 4.1.1 refuses a repetition, too: a static member that joins again has to wait until its session has ended, and a
#: member that reports more than it has left is fenced.
UNREPEATABLE = ("join C", "beat b who has revoked, and is told to revoke more")
REPEATABLE = [number for number, step in enumerate(STEPS) if not step.startswith(UNREPEATABLE)]


@pytest.mark.parametrize("is_dead", [True, False])
@pytest.mark.parametrize("number", range(len(STEPS)), ids=LIFE)
def test_group_continues_where_it_was_when_its_coordinator_goes_after(number: int, *, is_dead: bool) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number + 1)
        before = await life.describe()
        await life.fail_over(is_dead=is_dead)
        assert await life.describe() == before
        await live_on(life, number + 1)

    play(scene)


@pytest.mark.parametrize("number", REPEATABLE, ids=[LIFE[number] for number in REPEATABLE])
def test_group_continues_when_the_answer_is_lost_with_its_coordinator(number: int) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number)
        await life.lose_answer(STEPS[number])
        await live_on(life, number + 1)

    play(scene)


@pytest.mark.parametrize("number", range(len(STEPS)), ids=LIFE)
def test_group_continues_when_another_coordinator_takes_over_before_it_is_stored(number: int) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number)
        await life.fence(STEPS[number])
        await live_on(life, number + 1)

    play(scene)


async def lived(brokers: Sequence[MovedCoordinator], steps: int) -> Life:
    life = Life(brokers)
    await life.coordinator.leads(0)
    for step in STEPS[:steps]:
        await life.do(step)
    return life


async def live_on(life: Life, steps: int) -> None:
    for step in STEPS[steps:]:
        await life.do(step)
    await life.settle()
    described = await life.describe()
    assert described["epoch"] == described["target"]
    assert {epoch for epoch, _, _ in described["members"].values()} == {described["epoch"]}
