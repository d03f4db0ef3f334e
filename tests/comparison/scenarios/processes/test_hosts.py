"""A child's code in a host of the runner's own event loop, behind the same seam as a process."""

from __future__ import annotations

import asyncio
import importlib
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from comparison.scenarios.processes.children import ChildProcess, ended_within
from comparison.scenarios.processes.host import Host
from comparison.scenarios.processes.lines import NEVER_JOINS, REFUSED
from kernel.runtime import REAL
from kernel.waiting import until


class InLoop(Host):
    """The child's side: lines through queues, no signals of the operating system."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.outbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def lines(self) -> AsyncIterator[Mapping[str, object]]:
        while line := await self.inbox.get():
            yield msgspec.json.decode(line, type=dict[str, object])

    def write(self, event: Mapping[str, object]) -> None:
        self.outbox.put_nowait(msgspec.json.encode(event))

    def on_termination(self, call: Callable[[], object]) -> None:
        del call


class HostedProcess:
    """The runner's side."""

    pid = 0
    is_stopped = False
    ports: frozenset[int] = frozenset()

    def __init__(self, module: str) -> None:
        self._host = InLoop()
        self.lines = self._written()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(importlib.import_module(module).run))

    def write(self, line: bytes) -> None:
        self._host.inbox.put_nowait(line)

    def close(self) -> None:
        self._host.inbox.put_nowait(b"")

    def signal(self, number: signal.Signals) -> None:
        if number is signal.SIGKILL and not self.ended.done():
            self._end(-number)
            self._running.cancel()

    async def _run(self, run: Callable[[Host], Any]) -> None:
        self._end(await run(self._host) or 0)

    def _end(self, code: int) -> None:
        self.ended.set_result(code)
        self._host.outbox.put_nowait(b"")

    async def _written(self) -> AsyncIterator[bytes]:
        while line := await self._host.outbox.get():
            yield line


class Hosts:
    runtime = REAL

    async def spawn(self, module: str, _log: Path) -> HostedProcess:
        return HostedProcess(module)


async def member_in(
    folder: Path, zookeeper: str, name: str = "m1", **settings: str
) -> tuple[ChildProcess, list[Mapping[str, Any]]]:
    events: list[Mapping[str, Any]] = []
    module = "comparison.scenarios.processes.member_process"
    child = await ChildProcess.spawn(Hosts(), module, name, folder / f"{name}.log", events.append)
    child.send(
        {"process": name, "design": "zookeeper", "run": "r", "scenario": "s", "seed": 0, "group": "g",
         "trace": str(folder / f"{name}.jsonl"), "topics": {"t": 1}, "zookeeper": zookeeper, "bootstrap": "",
         "settings": settings or {"zookeeper.connection.timeout.ms": "300"}}
    )  # fmt: skip
    return child, events


async def test_a_member_in_a_host_says_that_it_could_not_start_and_ends_on_command(
    tmp_path: Path, unused_port: int
) -> None:
    child, events = await member_in(tmp_path, f"127.0.0.1:{unused_port}")

    def said() -> list[Mapping[str, Any]]:
        return [event for event in events if event["kind"] == NEVER_JOINS]

    assert str(unused_port) in (await until(said, 30, "the process to say so"))[0]["error"]
    assert "member_failed" in {event["kind"] for event in events}
    child.send({"command": "leave"})
    assert await ended_within(child, 30) == 0
    assert '{"end":' in (tmp_path / "m1.jsonl").read_text(encoding="utf-8").splitlines()[-1]


async def test_a_host_that_is_killed_ends_as_a_process_does(tmp_path: Path, unused_port: int) -> None:
    child, _ = await member_in(tmp_path, f"127.0.0.1:{unused_port}")
    assert child.returncode is None
    assert await child.kill() == child.returncode == -signal.SIGKILL


async def test_a_member_whose_id_is_taken_asks_once_and_its_process_stays(tmp_path: Path, chroot: str) -> None:
    taken = {"consumer.id": "one", "registration.conflict": "fail"}
    first, events = await member_in(tmp_path, chroot, **taken)
    await until(lambda: "member_started" in {event["kind"] for event in events}, 30, "the first to be a member")
    second, others = await member_in(tmp_path, chroot, "m2", **taken)
    await until(lambda: REFUSED in {event["kind"] for event in others}, 30, "the second to be refused")
    second.send({"command": "commit"})
    for child in (second, first):
        child.send({"command": "leave"})
        assert await ended_within(child, 30) == 0
    traced = [msgspec.json.decode(line) for line in (tmp_path / "m2.jsonl").read_bytes().splitlines()]
    kinds = [line["kind"] for line in traced if "kind" in line]
    (refused,) = [line for line in traced if line.get("kind") == "member_refused"]
    assert (refused["group"], refused["api"], refused["error"]) == ("g", "create", "NodeExists")
    assert not {"member_started", "member_failed"} & {*kinds}
    assert [event["kind"] for event in others].count(REFUSED) == 1
