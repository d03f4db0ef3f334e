"""Processes of a simulated world: nodes that run the code of a run's children.

The runner reaches them as it reaches real ones, by lines and signals. One difference is left: Python cannot stop a
callback in its middle, so a process that stops itself goes on to the end of its callback. What it sends and traces
until then is held until it goes on, and lost if it is killed; only its own memory has changed already.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from contextlib import suppress
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING, NoReturn, cast

import msgspec

from comparison.logs import PrintableFormatter
from comparison.scenarios.plan.links import Kind
from comparison.scenarios.processes.host import Host
from comparison.simulation.node import CURRENT
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from comparison.simulation.node import Node
    from comparison.simulation.world import World, WorldClock
    from kernel.runtime import Runtime

log = logging.getLogger(__name__)

#: Until a process acts on a line of the runner's. The log of ZooKeeper, by which runs are judged, tells milliseconds
#: apart: what a change brings about must not come in the same one.
_ACTS_NS = 2 * NS_PER_MS

_BROKERS = "comparison.scenarios.processes.broker_process"


class ProcessEnded(BaseException):
    """Raised in a process that ends itself, so that the rest of its callback is left out."""


class _Lines:
    """A pipe: lines from one end to the other, until it is closed."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_closed = False

    def write(self, line: bytes) -> None:
        if not self._is_closed:
            self._queue.put_nowait(line)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._queue.put_nowait(None)

    async def read(self) -> AsyncIterator[bytes]:
        while (line := await self._queue.get()) is not None:
            yield line


class SimulatedHost(Host):
    """The child's side."""

    def __init__(self, process: SimulatedProcess, world: World) -> None:
        self.runtime = world.runtime(process.node)
        self._process = process

    async def lines(self) -> AsyncIterator[Mapping[str, object]]:
        async for line in self._process.input.read():
            yield msgspec.json.decode(line, type=dict[str, object])

    def write(self, event: Mapping[str, object]) -> None:
        self._process.output.write(msgspec.json.encode(event))

    def on_termination(self, call: Callable[[], object]) -> None:
        self._process.on_termination = call

    def halt(self) -> None:
        self._process.signal(Signals.SIGSTOP)

    def puts_off(self, call: Callable[[], object]) -> bool:
        """In the rest of a callback in which the process has stopped itself."""
        node = self._process.node
        if node.is_frozen:
            node.held.append(partial(_unless_it_ends, call))
        return node.is_frozen

    def end(self, code: int) -> NoReturn:
        self._process.end(code)
        raise ProcessEnded

    def step_clock(self, by_ms: int) -> None:
        cast("WorldClock", self.runtime.clock).step(by_ms)


def _unless_it_ends(call: Callable[[], object]) -> None:
    """Call; the process may end itself by it."""
    with suppress(ProcessEnded):
        call()


class SimulatedProcess:
    """The runner's side: a `comparison.scenarios.processes.children.Process`."""

    def __init__(self, world: World, node: Node, module: str) -> None:
        self.node = node
        self.pid = node.number
        self.input, self.output = _Lines(), _Lines()
        self.lines = self.output.read()
        self.ended: asyncio.Future[int] = world.loop.create_future()
        self.on_termination: Callable[[], object] = lambda: self.end(-Signals.SIGTERM)
        self._world = world
        self._running = world.spawn(node, self._run, module)

    async def _run(self, module: str) -> None:
        code = 1
        await self._world.started()
        try:
            code = await importlib.import_module(module).run(SimulatedHost(self, self._world)) or 0
        except Exception:
            log.exception("%s has failed", self.node.name)
        self.end(code)

    def end(self, code: int) -> None:
        """End it, with this exit code. Idempotent."""
        if self.node.is_alive:
            self._world.loop.kill(self.node)
            self.output.close()
            self.ended.set_result(code)

    def write(self, line: bytes) -> None:
        self._after_a_while(self.input.write, line)

    def close(self) -> None:
        self._after_a_while(self.input.close)

    def _after_a_while(self, what: Callable[..., None], *arguments: bytes) -> None:
        loop = self._world.loop
        loop.at_ns(loop.now_ns + _ACTS_NS, what, *arguments)

    def signal(self, number: Signals) -> None:
        if not self.node.is_alive:
            return
        match number:
            case Signals.SIGSTOP:
                self._world.loop.freeze(self.node)
            case Signals.SIGCONT:
                self._world.loop.thaw(self.node)
            case Signals.SIGTERM:
                self._world.call_soon(self.node, self.on_termination)
            case _:
                self.end(-number)

    @property
    def is_stopped(self) -> bool:
        return self.node.is_frozen

    @property
    def ports(self) -> frozenset[int]:
        return self._world.loop.network.ports_of(self.node)


class SimulatedProcesses:
    """A `comparison.scenarios.processes.children.Processes`."""

    def __init__(self, world: World, runtime: Runtime) -> None:
        """`runtime` is the runner's."""
        self.runtime = runtime
        self._world = world
        self._logs = NodeLogs()
        logging.getLogger().addHandler(self._logs)

    async def spawn(self, module: str, log: Path) -> SimulatedProcess:  # forking takes a while
        node = self._world.node(log.stem, Kind.BROKER if module == _BROKERS else Kind.MEMBER)
        self._logs.begin(node, log)
        return SimulatedProcess(self._world, node, module)


class NodeLogs(logging.Handler):
    """Writes the log lines of each node to a file of its own, as a process's standard error goes to one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(PrintableFormatter())
        self._files: dict[Node, Path] = {}

    def begin(self, node: Node, file: Path) -> None:
        file.touch()
        self._files[node] = file

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(LookupError), self._files[CURRENT.get()].open("a", encoding="utf-8") as file:
            file.write(self.format(record) + "\n")
