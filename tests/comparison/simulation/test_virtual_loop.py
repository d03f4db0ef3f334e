"""Virtual time: who runs when, what a killed or frozen node does, and that only the seed decides."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from comparison.scenarios.plan.links import Duration, Kind, Links
from comparison.simulation.node import CURRENT, Node
from comparison.simulation.virtual_loop import Stalled
from comparison.simulation.world import World, WorldClock

Said = list[tuple[float, str]]


def member(world: World, name: str, work: Callable[[], Coroutine[object, object, None]]) -> Node:
    node = world.node(name, Kind.MEMBER)
    world.spawn(node, work)
    return node


def test_time_passes_only_while_nothing_is_ready() -> None:
    world = World(1)
    passed: list[float] = []

    async def main() -> None:
        begun = world.loop.time()
        for _ in range(1000):
            await asyncio.sleep(0)
        passed.append(world.loop.time() - begun)
        await asyncio.sleep(3600)
        passed.append(world.loop.time() - begun)

    world.run(main)

    assert passed[0] == 0
    assert passed[1] == pytest.approx(3600)


@pytest.mark.parametrize("seconds", [0.1, 1e-9, 3.3, 12_345.678_901])
def test_whoever_was_woken_finds_the_moment_come(seconds: float) -> None:
    world = World(1)

    async def main() -> bool:
        deadline = world.loop.time() + seconds
        await asyncio.sleep(seconds)
        return world.loop.time() >= deadline

    assert world.run(main)


@pytest.mark.parametrize("stretch_ns", [1_000_000_000, 70_000_000, 1])
def test_however_time_is_divided_the_same_happens(stretch_ns: int) -> None:
    world = World(1)
    begun_ns, said = world.loop.now_ns, list[int]()

    async def speak() -> None:
        while True:
            said.append(world.loop.now_ns - begun_ns)
            await asyncio.sleep(0.25)

    member(world, "m1", speak)
    for until_ns in (*range(begun_ns, begun_ns + 100 * stretch_ns, stretch_ns), begun_ns + 1_000_000_000):
        world.loop.run_until(min(until_ns, begun_ns + 1_000_000_000))
        assert not said or world.loop.now_ns >= begun_ns + said[-1]

    assert world.loop.now_ns == begun_ns + 1_000_000_000
    assert said == [0, 250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
    assert world.loop.next_ns == begun_ns + 1_250_000_000


def test_timers_of_one_moment_keep_their_order() -> None:
    world = World(1)
    order: list[int] = []

    async def main() -> None:
        at = world.loop.time() + 1
        for number in range(100):
            world.loop.call_at(at, order.append, number)
        await asyncio.sleep(2)

    world.run(main)

    assert order == list(range(100))


def turns_of_three_nodes(seed: int) -> list[str]:
    world = World(seed)
    turns: list[str] = []

    async def count() -> None:
        for _ in range(10):
            turns.append(CURRENT.get().name)
            await asyncio.sleep(1)

    async def main() -> None:
        for name in ("a", "b", "c"):
            member(world, name, count)
        await asyncio.sleep(20)

    world.run(main)
    return turns


def test_the_seed_decides_which_of_several_nodes_comes_first() -> None:
    assert turns_of_three_nodes(1) == turns_of_three_nodes(1)
    assert turns_of_three_nodes(1) != turns_of_three_nodes(2)
    assert sorted(turns_of_three_nodes(1)) == sorted("abc" * 10)


def test_nothing_of_a_killed_host_runs_not_even_at_its_end() -> None:
    world = World(1)
    said: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_later(2, said.append, "timer")
        try:
            said.append("begun")
            await asyncio.sleep(2)
            said.append("went on")
        finally:
            said.append("finally")

    async def main() -> None:
        node = member(world, "victim", work)
        await asyncio.sleep(1)
        world.loop.kill(node)
        await asyncio.sleep(5)

    world.run(main)

    assert said == ["begun"]


def test_a_frozen_host_goes_on_where_it_was() -> None:
    world = World(1)
    said: Said = []

    async def work() -> None:
        begun = world.loop.time()
        for _ in range(3):
            await asyncio.sleep(1)
            said.append((round(world.loop.time() - begun, 3), "tick"))

    async def main() -> None:
        node = member(world, "frozen", work)
        await asyncio.sleep(1.5)
        world.loop.freeze(node)
        await asyncio.sleep(3)
        world.loop.thaw(node)
        await asyncio.sleep(3)

    world.run(main)

    assert said == [(1, "tick"), (4.5, "tick"), (5.5, "tick")]


def test_a_busy_host_comes_later() -> None:
    world = World(1, Links(cost=Duration(1_000_000)))
    done: list[float] = []

    async def work() -> None:
        begun = world.loop.time()
        for _ in range(10):
            await asyncio.sleep(0)
        done.append(world.loop.time() - begun)

    async def main() -> None:
        member(world, "busy", work)
        await asyncio.sleep(1)

    world.run(main)

    assert done == [pytest.approx(0.010)]


def test_what_computing_costs_is_drawn_from_the_seed() -> None:
    def ended_at(seed: int) -> float:
        world = World(seed, Links(cost=Duration(1_000_000, 900_000)))

        async def main() -> float:
            return await world.spawn(world.node("busy", Kind.MEMBER), work)

        async def work() -> float:
            for _ in range(10):
                await asyncio.sleep(0)
            return world.loop.time()

        return world.run(main)

    assert ended_at(1) == ended_at(1) != ended_at(2)


def test_waiting_for_what_never_comes_is_an_error() -> None:
    world = World(1)

    async def main() -> None:
        await world.loop.create_future()

    with pytest.raises(Stalled, match="nothing is ready, and no timer is set"):
        world.run(main)


def test_cancelled_timers_do_not_pile_up() -> None:
    world = World(1)

    async def main() -> int:
        for _ in range(100_000):
            world.loop.call_later(60, print).cancel()
        return len(world.loop._timers)

    assert world.run(main) < 5_000


def test_work_for_threads_is_done_at_once() -> None:
    world = World(1)

    def fails() -> None:
        raise ValueError("as in a thread")

    async def main() -> int:
        begun = world.loop.now_ns
        with pytest.raises(ValueError, match="as in a thread"):
            await asyncio.to_thread(fails)
        assert await asyncio.to_thread(int, "7") == 7
        assert await world.runtime(world.runner).threads.compute(lambda: 7, "seven") == 7
        return world.loop.now_ns - begun

    assert world.run(main) == 0


def test_each_host_has_a_wall_clock_of_its_own_and_shares_the_monotonic_one() -> None:
    world = World(1)
    one, other = WorldClock(world.loop), WorldClock(world.loop)

    one.step(5_000)

    assert one.wall_ms() - other.wall_ms() == 5_000
    assert one.monotonic_ns() + 1 == other.monotonic_ns()


def test_clocks_tell_what_came_first_while_no_time_passes() -> None:
    """Also events of two processes, one of which has got a command of the other."""
    world = World(1)
    one, other = world.clock(), world.clock()

    async def main() -> list[int]:
        read = [each.monotonic_ns() for each in (one, other, one)]
        await asyncio.sleep(1)
        return [*read, other.monotonic_ns(), one.monotonic_ns()]

    read = world.run(main)

    assert [each - read[0] for each in read] == [0, 1, 2, 1_000_000_000, 1_000_000_001]


def test_what_waits_in_a_thread_for_the_simulated_world_is_awaited() -> None:
    """As a user's step asks for a ZooKeeper server, whose calls block in a real run."""
    world = World(1)

    async def waits() -> float:
        await asyncio.sleep(5)
        return world.loop.time()

    async def main() -> float:
        begun = world.loop.time()
        return await asyncio.to_thread(waits) - begun  # type: ignore[arg-type, return-value, operator]

    assert world.run(main) == 5
