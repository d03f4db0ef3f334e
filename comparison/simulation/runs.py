"""Runs of scenarios in a simulated world, each in a process of its own, which is spent with it."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

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
    """One run in this process."""
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
    next(_LOADING, _nothing)()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(request, provenance, theirs, os.getpid()), daemon=True)
    child.start()
    theirs.close()
    stopping = asyncio.create_task(_terminated(child, interrupted))
    try:
        while isinstance(said := await asyncio.to_thread(_received, ours), str):
            on_stage(said)
    finally:
        stopping.cancel()
        child.kill()
        await asyncio.to_thread(child.join)
        ours.close()
    if isinstance(said, BaseException):
        raise said
    return said


def _load_processes() -> None:
    for module in (BROKER_MODULE, MEMBER_MODULE):
        importlib.import_module(module)


def _nothing() -> None:
    """All is loaded."""


#: What this process loads before its first run, since each needs it, and before its second one, so that no further
#: child has to.
_LOADING = iter((_load_processes, prepare))


async def _terminated(child: BaseProcess, interrupted: asyncio.Event) -> None:
    await interrupted.wait()
    child.terminate()


def _received(connection: Connection) -> str | BaseException | RunOutcome:
    try:
        received: str | BaseException | RunOutcome = connection.recv()
    except EOFError:
        return EnvironmentFault("the process of the simulation has ended without a result")
    return received


def _child(request: RunRequest, provenance: Mapping[str, object], said: Connection, parent: int) -> NoReturn:
    set_parent_death_signal(parent)
    collect_seldom()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    try:
        said.send(performed(request, provenance, said.send))
    except RebalanceLabError as error:
        said.send(error)
    os._exit(0)  # what the world has left undone stays so
