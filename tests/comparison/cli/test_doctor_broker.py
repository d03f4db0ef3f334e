"""`doctor` shows a running broker's event-loop latency, or why it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from comparison.cli import doctor
from comparison.cli.doctor_broker import BrokerLoop, _ask, loop_of
from kernel.broker.apis.loop import LoopHandlers
from kernel.broker.loop import measured_loop
from kernel.broker.loop.loop_figures import LoopFigures
from kernel.broker.server.server import BrokerServer
from kernel.errors import ConfigurationError, EnvironmentFault, Unavailable
from kernel.platform.ports import free_ports
from tests.support.commands.called import output_of

HISTOGRAM = (0,) * 5 + (98, 1, 0, 0, 0, 0, 1) + (0,) * 15
FOUND = BrokerLoop(LoopFigures(100, 2_500_000, 1_700, 300, HISTOGRAM), "JoinGroup", 1_200)


async def _asked(*, ours: bool) -> BrokerLoop:
    server = BrokerServer({})
    if ours:
        server.mount(LoopHandlers(server.turns).table())
    await server.start()
    try:
        return await _ask(server.host, server.port, reset=False)
    finally:
        await server.stop()


def test_broker_of_ours_reports_its_figures() -> None:
    found = measured_loop.run(_asked(ours=True))
    assert found.figures.turns > 0
    assert found.longest_piece == "ApiVersions"
    assert found.lines()[0].startswith("longest turn ")


def test_figures_are_shown_in_milliseconds() -> None:
    assert FOUND.lines() == [
        "longest turn 1.7 ms, of 100 in 2.5 s; 99 % took at most 0.064 ms",
        "longest piece of work 1.2 ms: JoinGroup",
        "longest garbage collection 0.3 ms",
    ]


@pytest.mark.parametrize(
    ("run", "ours", "said"),
    [(measured_loop.run, False, "not one of rebalance-lab's"), (asyncio.run, True, "inside another program")],
)
def test_broker_without_figures_is_named(run: Callable[[Coroutine[Any, Any, Any]], Any], ours: bool, said: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"{said}.*Give a broker started by"):
        run(_asked(ours=ours))


def test_unreachable_broker_is_named() -> None:
    (port,) = free_ports(1)
    with pytest.raises(Unavailable, match=rf"no broker answers at 127\.0\.0\.1:{port}"):
        loop_of(f"127.0.0.1:{port}", reset=False)


@pytest.mark.parametrize("address", ["here", "127.0.0.1", "a:1,b:2", ":9092"])
def test_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="HOST:PORT of one broker"):
        loop_of(address, reset=False)


def test_command_shows_the_brokers_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def found(address: str, *, reset: bool) -> BrokerLoop:
        asked.append((address, reset))
        return FOUND

    monkeypatch.setattr(doctor, "loop_of", found)
    assert output_of(doctor.doctor, "--broker", "127.0.0.1:9092").splitlines() == FOUND.lines()
    json = output_of(doctor.doctor, "--broker", "127.0.0.1:9092", "--reset", "--format", "json")
    assert '"longest_us": 1700' in json
    assert asked == [("127.0.0.1:9092", False), ("127.0.0.1:9092", True)]


def test_reset_without_a_broker_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Add --broker HOST:PORT"):
        output_of(doctor.doctor, "--reset")
