"""Polls wait no longer, and wake up no more often, than they have to."""

from __future__ import annotations

import asyncio

from comparison.scenarios.plan.links import Kind
from comparison.simulation.world import World
from coordinator.client.polling import PollingConsumer, Stream
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.trace.writer import SilentTracer

POLLS, MEMBERS = 3, 4


class IdleConsumer(PollingConsumer[Stream, CoordinatorConsumerConfig]):
    """Has no streams, and counts how often it would poll them."""

    polled = 0
    _subscribed = True

    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        """It has none."""

    async def _poll_streams(self, deadline_ns: int) -> None:
        self.polled += 1


def _consumer(world: World, name: str) -> IdleConsumer:
    config, _ = CoordinatorConsumerConfig.from_settings({"group.id": "g", "bootstrap.servers": "127.0.0.1:1"})
    return IdleConsumer(
        config, tracer=SilentTracer(), process=name, runtime=world.runtime(world.node(name, Kind.MEMBER))
    )


def test_idle_poll_looks_at_its_streams_when_it_begins_and_when_it_ends() -> None:
    """Also where the clock, whose readings differ by nanoseconds, is ahead of the loop that fires the timer."""
    world = World(1)
    consumers = [_consumer(world, f"m{number}") for number in range(MEMBERS)]

    async def polls(consumer: IdleConsumer) -> None:
        for _ in range(POLLS):
            assert not await consumer.getmany(timeout_ms=100)

    async def main() -> float:
        begun = world.loop.time()
        await asyncio.gather(*map(polls, consumers))
        return world.loop.time() - begun

    took_s = world.run(main)

    assert round(took_s, 6) == 0.3
    assert [consumer.polled for consumer in consumers] == [2 * POLLS] * MEMBERS


def test_polls_that_never_wait_let_others_run() -> None:
    world = World(1)
    consumer = _consumer(world, "m1")
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async def main() -> int:
        await consumer.getmany(timeout_ms=10)
        running = asyncio.create_task(other())
        for _ in range(10):
            await consumer.getmany(timeout_ms=0)
        running.cancel()
        return others

    assert world.run(main) >= 9
