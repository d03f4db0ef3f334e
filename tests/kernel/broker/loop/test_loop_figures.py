"""How long the loop's turns took: with a manual clock, and on a real loop."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from kernel.broker.apis.loop import LoopHandlers
from kernel.broker.loop import measured_loop
from kernel.broker.loop.loop_figures import LoopFigures, Stopwatch
from kernel.broker.loop.measured_loop import MeasuredLoop
from kernel.broker.server.server import BrokerServer
from kernel.client.connection import BrokerConnection
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api


class Clock:
    def __init__(self) -> None:
        self.ns = 1_000_000

    def __call__(self) -> int:
        return self.ns


def turned(stopwatch: Stopwatch, clock: Clock, *turns_us: int) -> None:
    for turn_us in turns_us:
        stopwatch.begin()
        clock.ns += turn_us * 1000
        stopwatch.end()
        clock.ns += 7_000_000  # asleep


def test_turns_are_counted_by_their_size_and_the_longest_is_kept() -> None:
    clock = Clock()
    stopwatch = Stopwatch(clock)
    turned(stopwatch, clock, 0, 1, 3, 3, 40_000, 4)
    figures = stopwatch.figures()
    assert (figures.turns, figures.longest_us) == (6, 40_000)
    assert figures.measured_us == 40_011 + 6 * 7_000
    assert {exponent: count for exponent, count in enumerate(figures.histogram) if count} == {
        0: 1,
        1: 1,
        2: 2,
        3: 1,
        16: 1,
    }
    assert [figures.quantile_us(share) for share in (0.1, 0.5, 0.8, 0.99)] == [1, 4, 8, 40_000]
    stopwatch.reset()
    turned(stopwatch, clock, 2)
    assert stopwatch.figures()[:3] == (1, 7_002, 2)


def test_turn_of_hours_has_a_bucket() -> None:
    clock = Clock()
    stopwatch = Stopwatch(clock)
    turned(stopwatch, clock, 3_600_000_000)
    assert stopwatch.figures().histogram[-1] == 1
    assert stopwatch.figures().quantile_us(0.5) == 2**26


def test_no_quantile_without_measurements() -> None:
    assert LoopFigures(0, 0, 0, 0, (0,) * 27).quantile_us(0.99) == 0


def test_collections_are_timed() -> None:
    clock = Clock()
    stopwatch = Stopwatch(clock)
    for took_us in (5, 2):
        stopwatch.on_collection("start", {})
        clock.ns += took_us * 1000
        stopwatch.on_collection("stop", {})
    assert stopwatch.figures().longest_collection_us == 5


def test_turn_that_blocks_is_the_longest_of_its_loop() -> None:
    async def test() -> LoopFigures:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MeasuredLoop)
        before = loop.stopwatch.figures().turns
        time.sleep(0.02)  # noqa: ASYNC251  # the long turn to be found
        for _ in range(10):
            await asyncio.sleep(0)
        figures = loop.stopwatch.figures()
        assert figures.turns >= before + 10
        return figures

    assert measured_loop.run(test()).longest_us >= 20_000


async def _asked(*, reset: bool) -> list[Any]:
    """A broker's answers to two requests, with a heartbeat that waits for its turn in between."""
    server = BrokerServer({})
    server.mount(LoopHandlers(server.turns).table())
    await server.start()
    connection = await BrokerConnection.open(server.host, server.port, "c")
    answers: list[object] = [await connection.call(Api.DescribeLoop, {"reset": reset}) for _ in range(2)]
    connection.close()
    await connection.wait_closed()
    await server.stop()
    return answers


def test_broker_reports_its_figures_and_resets_them_on_request() -> None:
    first, second = measured_loop.run(_asked(reset=False))
    assert first.error_code is second.error_code is ErrorCode.none
    assert 0 < first.turns < second.turns == sum(second.histogram)
    assert first.longest_piece == "ApiVersions"
    first, second = measured_loop.run(_asked(reset=True))
    assert second.measured_us < first.measured_us or second.turns < first.turns
    assert second.longest_piece == "DescribeLoop"


def test_broker_inside_another_program_has_no_figures() -> None:
    first, _ = asyncio.run(_asked(reset=False))
    assert first.error_code is ErrorCode.unsupported_version
