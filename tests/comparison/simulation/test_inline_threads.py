"""What a simulated broker writes: at once, or after the time that its disk takes, in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from comparison.scenarios.plan.links import Kind, links_of
from comparison.simulation.world import World

Written = list[tuple[float, list[str]]]


def written(links: str, use: Callable[[World, Any], Coroutine[Any, Any, None]], seed: int = 1) -> Written:
    """What a worker on a node has written, and when, in milliseconds; `use` has the world and the worker."""
    world, found = World(seed, links_of(links)), Written()
    node = world.node("broker-1", Kind.BROKER)

    async def main() -> None:
        begun = world.loop.time()

        def handle(items: list[str]) -> bool:
            found.append((round((world.loop.time() - begun) * 1000, 3), items))
            return "stop" not in items

        async def work() -> None:
            worker = world.runtime(node).threads.worker(handle, "storage")
            worker.start()
            await use(world, worker)

        world.spawn(node, work)
        await asyncio.sleep(1)

    world.run(main)
    return found


async def three_writes(_: World, worker: Any) -> None:
    worker.put("a")
    await asyncio.sleep(0.001)
    worker.put("b")
    worker.put("c")


def test_what_comes_while_the_disk_is_at_work_is_the_next_group() -> None:
    assert written("disk=2ms", three_writes) == [(2, ["a"]), (4, ["b", "c"])]
    assert written("loopback", three_writes) == [(0, ["a"]), (1, ["b", "c"])]


def test_how_long_the_disk_takes_follows_from_the_seed() -> None:
    (first, _), *_ = found = written("disk=2ms±1", three_writes)
    assert 1 <= first <= 3
    assert found == written("disk=2ms±1", three_writes) != written("disk=2ms±1", three_writes, seed=2)


def test_a_broker_that_is_killed_meanwhile_has_written_nothing() -> None:
    async def killed(world: World, worker: Any) -> None:
        worker.put("a")
        await asyncio.sleep(0.001)
        world.loop.kill(world.nodes[-1])

    assert written("disk=2ms", killed) == []


def test_what_is_left_is_written_when_the_worker_is_joined_and_nothing_after_the_last() -> None:
    async def joined(_: World, worker: Any) -> None:
        worker.put("a")
        await asyncio.sleep(0.001)
        worker.put("stop")
        worker.join()
        worker.put("late")

    assert written("disk=2ms", joined) == [(1, ["a"]), (1, ["stop"])]
