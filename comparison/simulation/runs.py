"""Runs of scenarios in a simulated world, each in a process of its own, which is spent with it."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import signal
import sys
import traceback
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from comparison.consumers import CONSUMERS
from comparison.scenarios.plan.links import links_of
from comparison.scenarios.processes.fork_server import prepare
from comparison.scenarios.processes.parent_death import set_parent_death_signal
from comparison.scenarios.run import runner
from comparison.scenarios.testbed.group_members import MEMBER_MODULE
from comparison.scenarios.testbed.quorum import QuorumProxies
from comparison.scenarios.testbed.testbed import BROKER_MODULE
from comparison.simulation.processes import SimulatedProcesses
from comparison.simulation.world import World
from comparison.simulation.zookeeper_servers import WorldZooKeeper
from kernel.errors import EnvironmentFault, RebalanceLabError
from kernel.platform.lean_imports import collect_seldom
from kernel.platform.ports import ReservedPorts
from kernel.platform.syncing import forgo_syncing
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.servers import follower_of, leader_of
from kernel.zookeeper.target import make_servers
from kernel.zookeeper.txnlog import read_ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.run.runner import RunOutcome

T = TypeVar("T")


class _Ports:
    """In place of `ReservedPorts`: nobody else takes the ports of a world."""

    def __init__(self, world: World, number: int) -> None:
        self.numbers = [world.loop.network.free_port() for _ in range(number)]

    def release(self) -> None:
        """They stay free."""


def processes_of(world: World) -> SimulatedProcesses:
    """The processes of a run, whose runner finds the world's ZooKeeper in place of a real one."""
    zookeeper = WorldZooKeeper(world)

    runtime = world.runtime(world.runner)
    instead: dict[Callable[..., Any], Callable[..., Any]] = {
        make_servers: zookeeper.make_servers,
        QuorumProxies: zookeeper.quorum_proxies,
        leader_of: zookeeper.leader_of,
        follower_of: zookeeper.follower_of,
        read_ensemble: zookeeper.read_ensemble,
        read_counters: zookeeper.read_counters,
        ReservedPorts: lambda number: _Ports(world, number),
    }
    return SimulatedProcesses(world, replace(runtime, instead={**runtime.instead, **instead}))


def performed(
    request: RunRequest,
    provenance: Mapping[str, object],
    on_stage: Callable[[str], None],
) -> RunOutcome:
    """One run in this process, which is spent with it."""
    forgo_syncing()
    world = World(request.parameters.seed, links_of(request.parameters.links))

    async def main() -> RunOutcome:
        interrupted = asyncio.Event()
        signal.signal(signal.SIGTERM, lambda *_: world.interrupt(interrupted.set))
        return await runner.perform(request, provenance, processes_of(world), interrupted, on_stage)

    return world.run(main)


async def perform(
    request: RunRequest,
    provenance: Mapping[str, object],
    interrupted: asyncio.Event,
    on_stage: Callable[[str], None],
) -> RunOutcome:
    """One run in a process of its own, so that what it leaves in memory changes nothing for the next one.

    Raises what `runner.perform` does, and `EnvironmentFault` if the process is killed.
    """
    if _TO_LOAD:
        _TO_LOAD.pop(0)()
    CONSUMERS[request.design].load()
    return await done_in_a_child(partial(performed, request, provenance), interrupted, on_stage)


def _load_processes() -> None:
    for module in (BROKER_MODULE, MEMBER_MODULE):
        importlib.import_module(module)


#: What this process has still to load: the first before its first run, since each needs it, and the other before its
#: second one, so that no further child has to.
_TO_LOAD: list[Callable[[], None]] = [_load_processes, prepare]


async def done_in_a_child(
    work: Callable[[Callable[[str], None]], T],
    interrupted: asyncio.Event,
    on_stage: Callable[[str], None],
) -> T:
    """Have a child do a piece of work, which is handed what passes its stages on; an interrupt is a SIGTERM to it.

    What it returns is no text. Raises what `work` raises if it is a `RebalanceLabError`, and `EnvironmentFault` if the
    child has ended without a result.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(work, theirs, os.getpid()), daemon=True)
    child.start()
    theirs.close()
    stopping = asyncio.create_task(_terminated(child, interrupted))
    try:
        while isinstance(said := await asyncio.to_thread(received, ours), str):
            on_stage(said)
    finally:
        stopping.cancel()
        child.kill()
        await asyncio.to_thread(child.join)
        ours.close()
    if isinstance(said, BaseException):
        raise said
    return said  # type: ignore[no-any-return]  # what `work` returned


async def _terminated(child: BaseProcess, interrupted: asyncio.Event) -> None:
    await interrupted.wait()
    child.terminate()


def received(connection: Connection) -> Any:
    """What a child has said, and a fault if it has ended instead."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        return EnvironmentFault("the process of the simulation has ended without a result")


def _child(work: Callable[[Callable[[str], None]], object], said: Connection, parent: int) -> NoReturn:
    set_parent_death_signal(parent)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    end_with(lambda: work(said.send), said)


def end_with(work: Callable[[], object], said: Connection) -> NoReturn:
    """Do a piece of work, say what came of it, and end this process: what is left undone stays so."""
    collect_seldom()
    code = 1
    try:
        said.send(work())
        code = 0
    except RebalanceLabError as error:
        said.send(error)
        code = 0
    except BaseException:  # noqa: BLE001  # the process ends here
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)
