"""A simulated world: its loop, its network and its nodes, all of whose chances come from one seed."""

from __future__ import annotations

import asyncio
import socket
from contextvars import Context, copy_context
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from comparison.scenarios.plan.links import LOOPBACK, Kind, Links
from comparison.simulation.broker_sockets import SimulatedListener, SimulatedReadiness
from comparison.simulation.inline_threads import InlineThreads
from comparison.simulation.node import CURRENT, Node
from comparison.simulation.scheduling import Chance, Priorities
from comparison.simulation.virtual_loop import VirtualLoop
from comparison.simulation.zookeeper_client import SimulatedBridge
from kernel.broker.cluster.identity import claim
from kernel.broker.loop.readiness import Readiness
from kernel.broker.server.accepting import Listener
from kernel.clock import NS_PER_MS, NS_PER_S
from kernel.runtime import Runtime
from kernel.zookeeper.bridge import Bridge

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kernel.broker.cluster.identity import Identity

T = TypeVar("T")

#: The monotonic clock at the start, as on a machine that has been up for a while, and the wall clock.
_UPTIME_NS = 1_000 * NS_PER_S
_BEGINNING_MS = 1_700_000_000_000
#: The machine that all nodes are on: the ids of consumers name it.
_HOST = "simulated"


class WorldClock:
    """A node's clock: virtual time, and a wall clock that can be stepped for this node alone.

    No two readings of a world's clocks are equal, and they tell what came first, as on a real machine.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._stepped_ms = 0
        self.monotonic_ns = loop.reading_ns

    def step(self, by_ms: int) -> None:
        self._stepped_ms += by_ms

    def wall_ms(self) -> int:
        return _BEGINNING_MS + (self._loop.now_ns - _UPTIME_NS) // NS_PER_MS + self._stepped_ms


class _HeldIdentity:
    """A broker's lock on its id, a `Socket` of its node: its machine gives it up when the process ends."""

    port = 0

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def close(self) -> None:
        self._identity.release()


def _claimed(node: Node, *arguments: Any, **named: Any) -> Identity | None:
    identity = claim(*arguments, **named)
    if identity is not None:
        node.sockets[_HeldIdentity(identity)] = None
    return identity


class World:
    """Create nodes, and run coroutines on them, in `run`."""

    def __init__(self, seed: int, links: Links = LOOPBACK) -> None:
        self._seed = seed
        chance = self.random("order")
        self.loop = VirtualLoop(  # type: ignore[abstract]  # it lacks what waits for the real world
            Priorities(chance, links.priorities) if links.priorities else Chance(chance),
            links.delays(self.random("delays")),
            start_ns=_UPTIME_NS,
            cost_ns=links.costs(self.random("costs")),
        )
        self._starting_ns = links.starts(self.random("starts"))
        self._disk_ns = links.disks(self.random("disks"))
        self._between_servers = partial(links.delays(self.random("ensemble")), Kind.ZOOKEEPER, Kind.ZOOKEEPER)
        self.nodes: list[Node] = []
        self.runner = self.node("runner", Kind.RUNNER)

    def random(self, purpose: str) -> Random:
        """A source of its own for each purpose, so that more draws for one change nothing for another."""
        return Random(f"{self._seed} {purpose}")

    def node(self, name: str, kind: Kind) -> Node:
        node = Node(name, kind, len(self.nodes) + 1)
        self.nodes.append(node)
        return node

    def clock(self) -> WorldClock:
        """A clock that nobody else steps."""
        return WorldClock(self.loop)

    def peer_delay_s(self, _sender: int, _receiver: int) -> float:
        """The next delay of a message between two ZooKeeper servers."""
        return self._between_servers() / NS_PER_S

    async def started(self) -> None:
        """Wait until a new process runs, in its node."""
        if self._starting_ns is not None:
            await asyncio.sleep(self._starting_ns() / NS_PER_S)

    def runtime(self, node: Node) -> Runtime:
        """What brokers and consumers on a node take from the machine."""
        return Runtime(
            clock=self.clock(),
            stopwatch=self.loop.time,
            random=self.random(node.name),
            threads=InlineThreads(self._disk_ns),
            instead={
                Listener: SimulatedListener,
                Readiness: SimulatedReadiness,
                claim: partial(_claimed, node),
                socket.gethostname: lambda: _HOST,
                Bridge: partial(SimulatedBridge, random=self.random(f"zookeeper of {node.name}")),
            },
        )

    def spawn(self, node: Node, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> asyncio.Task[T]:
        """Start a coroutine on a node."""
        return self.loop.create_task(work(*arguments), context=_on(node))

    def call_soon(self, node: Node, callback: Callable[[], object]) -> None:
        """Have a node do something in its next turn."""
        self.loop.call_soon(callback, context=_on(node))

    def interrupt(self, callback: Callable[[], object]) -> None:
        """From a signal handler: have the runner do something before time goes on."""
        self.loop.interrupt(callback, _on(self.runner))

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run on the runner's node until `main` returns, once. What others are doing then is left undone."""
        try:
            result: T = _on(self.runner).run(lambda: self.loop.run_until_complete(main()))
        finally:
            self.loop.kill(*self.nodes)
            self.loop.close()
        return result


def _on(node: Node) -> Context:
    context = copy_context()
    context.run(CURRENT.set, node)
    return context
