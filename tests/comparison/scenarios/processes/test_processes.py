"""Child processes of a run: forked quickly, commanded by lines, and ended in any case."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from comparison.scenarios.processes.children import ChildProcess, ended_within
from comparison.scenarios.processes.fork_server import ForkServer
from kernel.errors import EnvironmentFault
from kernel.waiting import WaitTimeout, until

MEMBER = "comparison.scenarios.processes.member_process"
BROKER = "comparison.scenarios.processes.broker_process"


class Family:
    """The children of one test; all tests share a fork server, which lives on their event loop."""

    def __init__(self, fork_server: ForkServer, runner: asyncio.Runner, folder: Path) -> None:
        self.run = runner.run
        self._fork_server, self._folder = fork_server, folder
        self._children: list[ChildProcess] = []

    async def spawn(self, module: str) -> tuple[ChildProcess, list[Mapping[str, object]]]:
        """A child of a module, and the list of its events."""
        events: list[Mapping[str, object]] = []
        name = f"child-{len(self._children)}"
        child = await ChildProcess.spawn(self._fork_server, module, name, self._folder / f"{name}.log", events.append)
        self._children.append(child)
        return child, events

    async def kill(self) -> None:
        for child in self._children:
            await child.kill()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def fork_server(runner: asyncio.Runner) -> Iterator[ForkServer]:
    fork_server = runner.run(ForkServer.open())
    yield fork_server
    runner.run(fork_server.stop())


@pytest.fixture
def family(fork_server: ForkServer, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Family]:
    family = Family(fork_server, runner, tmp_path)
    yield family
    runner.run(family.kill())


def test_a_child_ends_when_it_is_stopped(family: Family) -> None:
    async def live() -> None:
        (member, _), (broker, _) = await family.spawn(MEMBER), await family.spawn(BROKER)
        assert await asyncio.gather(member.stop(), broker.stop()) == [0, 0]
        assert member.log_tail() == ""

    family.run(live())


def test_a_killed_child_reports_its_signal_and_a_frozen_one_can_be_stopped(family: Family) -> None:
    async def live() -> None:
        (killed, _), (frozen, _) = await family.spawn(MEMBER), await family.spawn(MEMBER)
        assert await killed.kill() == -signal.SIGKILL
        assert killed.returncode == -signal.SIGKILL
        killed.send({"command": "commit"})  # no receiver, but no error
        frozen.freeze()
        process = psutil.Process(frozen.pid)
        await until(lambda: process.status() == psutil.STATUS_STOPPED, 20, "the child to be stopped")
        assert await frozen.stop() == 0

    family.run(live())


def test_a_child_that_does_not_end_in_time_is_a_timeout(family: Family) -> None:
    async def live() -> None:
        child, _ = await family.spawn(MEMBER)
        with pytest.raises(WaitTimeout, match=r"child-0 did not end within 0\.1 s"):
            await ended_within(child, 0.1)
        assert child.returncode is None

    family.run(live())


async def test_children_end_with_the_fork_server(tmp_path: Path) -> None:
    fork_server = await ForkServer.open()
    child = await ChildProcess.spawn(fork_server, MEMBER, "m1", tmp_path / "m1.log", lambda _: None)
    process = psutil.Process(child.pid)
    await fork_server.stop()
    await until(lambda: not process.is_running(), 20, "the child to end")
    assert child.returncode == -signal.SIGKILL


async def test_killed_fork_server_ends_its_children_and_fails_pending_requests(tmp_path: Path) -> None:
    fork_server = await ForkServer.open()
    child = await ChildProcess.spawn(fork_server, MEMBER, "m1", tmp_path / "m1.log", lambda _: None)
    open_before = psutil.Process().num_fds()
    os.kill(fork_server.pid, signal.SIGSTOP)
    waiting = [asyncio.create_task(fork_server.spawn(MEMBER, tmp_path / "waits.log")) for _ in range(2)]
    await until(lambda: psutil.Process().num_fds() >= open_before + 8, 20, "both to ask")
    os.kill(fork_server.pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        for result in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(result, EnvironmentFault), result
            assert f"(pid {fork_server.pid}) has ended" in str(result)
        assert await child.gone() == -signal.SIGKILL
        with pytest.raises(EnvironmentFault, match="has ended"):
            await fork_server.spawn(MEMBER, tmp_path / "late.log")
        await until(lambda: psutil.Process().num_fds() <= open_before, 20, "all pipes to be closed")
    await fork_server.stop()


async def test_child_of_a_cancelled_request_ends_and_is_not_confused_with_the_next_one(tmp_path: Path) -> None:
    fork_server = await ForkServer.open()
    os.kill(fork_server.pid, signal.SIGSTOP)  # it must not answer before the request is cancelled
    waiting = asyncio.create_task(fork_server.spawn(MEMBER, tmp_path / "given-up.log"))
    try:
        await until((tmp_path / "given-up.log").exists, 20, "the request")
        waiting.cancel()
    finally:
        os.kill(fork_server.pid, signal.SIGCONT)
    child = await ChildProcess.spawn(fork_server, MEMBER, "m1", tmp_path / "m1.log", lambda _: None)
    await until(lambda: len(psutil.Process(fork_server.pid).children()) == 1, 30, "the other one to end")
    assert child.returncode is None
    assert await child.stop() == 0
    await fork_server.stop()


def test_an_invalid_configuration_ends_the_child_with_the_reason_in_its_log(family: Family) -> None:
    async def live() -> None:
        child, _ = await family.spawn(MEMBER)
        child.send({"process": "m1"})
        assert await ended_within(child, 30) == 1
        assert "missing required field `design`" in str(child.failure("starting"))

    family.run(live())


def test_a_broker_that_cannot_start_says_why(family: Family, tmp_path: Path, unused_port: int) -> None:
    async def live() -> None:
        child, events = await family.spawn(BROKER)
        child.send(
            {
                **identity(tmp_path, "broker-1"),
                "zookeeper": f"127.0.0.1:{unused_port}",
                "data_dir": str(tmp_path / "data"),
                "settings": {"zookeeper.connection.timeout.ms": "300", "port": "0"},
            }
        )
        assert await ended_within(child, 30) == 1
        (event,) = events
        assert event["event"] == "failed"
        assert str(unused_port) in str(event["error"])

    family.run(live())


def test_member_reports_its_events_and_leaves_on_command(family: Family, tmp_path: Path, chroot: str) -> None:
    async def live() -> None:
        child, events = await family.spawn(MEMBER)
        child.send(
            {
                **identity(tmp_path, "m1"),
                "group": "g",
                "topics": {"t": 1},
                "zookeeper": chroot,
                "bootstrap": "",
                "settings": {"zookeeper.session.timeout.ms": "4000", "zookeeper.connection.timeout.ms": "30000"},
                "members": 2,
            }
        )
        await until(
            lambda: kinds(events).count("member_started") == 2,
            30,
            lambda: f"two members to start: {events}; {child.log_tail()}",
        )
        child.send({"command": "pause_consumption"})
        await until(lambda: "polling_stopped" in kinds(events), 30, "both to stop polling")
        child.send({"command": "resume"})
        child.send({"command": "sing"})
        child.send({"command": "leave"})
        assert await ended_within(child, 30) == 0
        assert kinds(events).count("member_closed") == 2
        assert "unknown command 'sing'" in child.log_tail()
        trace = (tmp_path / "m1.jsonl").read_text().splitlines()
        assert len(trace) > len(events)  # ZooKeeper operations are only in the trace

    family.run(live())


def identity(folder: Path, process: str) -> dict[str, object]:
    return {
        "process": process,
        "design": "zookeeper",
        "run": "r",
        "scenario": "s",
        "seed": 0,
        "trace": str(folder / f"{process}.jsonl"),
    }


def kinds(events: list[Mapping[str, object]]) -> list[object]:
    return [event["kind"] for event in events]
