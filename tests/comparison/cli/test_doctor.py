"""`doctor` names what is missing, and the remedy."""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

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


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    "check", [doctor.check_java, doctor.check_ports, doctor.check_open_files, doctor.check_clock, doctor.check_disk]
)
def test_this_machine_needs_no_remedy(check: object) -> None:
    finding = check()  # type: ignore[operator]  # a check of the table
    assert finding.remedy == ""
    assert finding.found


def test_a_server_is_started_for_real() -> None:
    assert doctor.check_zookeeper().found.startswith("started in ")


def test_no_java_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise EnvironmentFault("no Java of version 17 or later")

    monkeypatch.setattr(doctor, "find_java", none)
    finding = doctor.check_java()
    assert finding.found == "no Java of version 17 or later"
    assert "JAVA_HOME" in finding.remedy


def test_a_full_disk_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=1024))
    assert "choose a folder on another disk with --output" in doctor.check_disk().remedy


def test_a_low_limit_of_open_files_is_named_with_the_command() -> None:
    program = "from comparison.cli.doctor import check_open_files; print(check_open_files().remedy)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    )
    assert result.stdout.strip() == "ulimit -n 1024"


def test_something_missing_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = doctor.Finding("java", "none", "install one")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: bad, lambda: doctor.Finding("disk", str(tmp_path))))
    assert doctor.doctor.callback("text", None, reset=False) == 1  # type: ignore[misc]  # click's commands have one
    assert capsys.readouterr().out.splitlines() == [
        "BAD java: none",
        "    remedy: install one",
        f"ok  disk: {tmp_path}",
    ]


# -- `doctor` shows a running broker's event-loop latency, or why it cannot --------------------------------------------

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
