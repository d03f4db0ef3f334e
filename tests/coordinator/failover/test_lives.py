"""A coordinator that goes away at any step of a group's life: its members go on as if nothing had happened.

The lives are lists of steps. At each of them the coordinator is replaced in four ways: between two steps, by a transfer
or a death; after the step's records are durable, but its answer is lost; before they are durable.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.coordinator.failover.consumer_lives import ConsumerLife, Life
from tests.coordinator.failover.migrating_life import MigratingLife
from tests.coordinator.failover.moving import TOPIC_PARTITIONS, MovedCoordinator, two_coordinators
from tests.support.time.manual_clock import ManualClock

STEPS: list[tuple[type[Life], int]] = [
    (life, number) for life in (ConsumerLife, MigratingLife) for number in range(len(life.STEPS))
]
REPEATABLE = [(life, number) for life, number in STEPS if not life.STEPS[number].startswith(life.UNREPEATABLE)]


def named(steps: list[tuple[type[Life], int]]) -> list[str]:
    return [f"{life.__name__}: {life.STEPS[number]}" for life, number in steps]


END = MigratingLife.STEPS.index("leave m, with whom the consumer group ends")


@pytest.mark.parametrize("is_dead", [True, False])
@pytest.mark.parametrize(("kind", "number"), STEPS, ids=named(STEPS))
async def test_group_continues_where_it_was_when_its_coordinator_goes_after(
    kind: type[Life], number: int, virtual_clock: ManualClock, *, is_dead: bool
) -> None:
    async with two_coordinators(virtual_clock) as brokers:
        life = await lived(kind, brokers, number + 1)
        before = await life.describe()
        await life.fail_over(is_dead=is_dead)
        assert await life.describe() == before
        await live_on(life, number + 1)


@pytest.mark.parametrize(("kind", "number"), REPEATABLE, ids=named(REPEATABLE))
async def test_group_continues_when_the_answer_is_lost_with_its_coordinator(
    kind: type[Life], number: int, virtual_clock: ManualClock
) -> None:
    async with two_coordinators(virtual_clock) as brokers:
        life = await lived(kind, brokers, number)
        await life.lose_answer(life.STEPS[number])
        await live_on(life, number + 1)


@pytest.mark.parametrize(("kind", "number"), STEPS, ids=named(STEPS))
async def test_group_continues_when_another_coordinator_takes_over_before_it_is_stored(
    kind: type[Life], number: int, virtual_clock: ManualClock
) -> None:
    async with two_coordinators(virtual_clock) as brokers:
        life = await lived(kind, brokers, number)
        await life.fence(life.STEPS[number])
        await live_on(life, number + 1)


async def lived(kind: type[Life], brokers: Sequence[MovedCoordinator], steps: int) -> Life:
    life = kind(brokers)
    await life.begin()
    for step in life.STEPS[:steps]:
        await life.do(step)
    return life


async def live_on(life: Life, steps: int) -> None:
    for step in life.STEPS[steps:]:
        await life.do(step)
    await life.settle()


async def test_classic_member_is_told_that_the_consumer_group_has_ended(virtual_clock: ManualClock) -> None:
    async with two_coordinators(virtual_clock) as brokers:
        life = await lived(MigratingLife, brokers, END + 1)
        await life.settle()


@pytest.mark.parametrize("is_dead", [True, False])
async def test_nobody_is_told_if_the_coordinator_goes_as_the_consumer_group_ends(
    virtual_clock: ManualClock, *, is_dead: bool
) -> None:
    """As with a real 4.1.1 that was killed there: the classic group is Stable, and the rebalance is forgotten."""
    async with two_coordinators(virtual_clock) as brokers:
        life = await lived(MigratingLife, brokers, END + 1)
        await life.fail_over(is_dead=is_dead)
        owned = life.clients["a"].owned
        for _ in range(3):
            await life.clients["a"].live(life.coordinator)
        assert life.clients["a"].owned == owned
        assert 0 < len(owned) < TOPIC_PARTITIONS
        assert (await life.coordinator.describe())[0] == "Stable"
        for step in ("rejoin a", "sync a"):
            await life.do(step)
        await life.settle()
