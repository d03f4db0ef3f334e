"""One group in a simulated world, in a process of its own: DESIGN MEMBERS PARTITIONS. Prints its costs as JSON.

Two brokers, no records. The members form the group, one more joins, and one crashes; a change is over when every
partition has exactly one live owner, as the members believe.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.platform.lean_imports import collect_seldom, import_lean

collect_seldom()
import_lean()  # before what loads kio

from comparison.consumers import CONSUMERS, ConsumerRequest  # noqa: E402
from comparison.scenarios.plan.links import Kind  # noqa: E402
from comparison.scenarios.plan.presets import PRESETS, ZOOKEEPER_SESSION_MS, ZOOKEEPER_TICK_MS  # noqa: E402
from comparison.scenarios.processes.broker_composition import broker_of  # noqa: E402
from comparison.scenarios.testbed.cluster_access import ClusterAccess  # noqa: E402
from comparison.simulation.world import World  # noqa: E402
from comparison.simulation.zookeeper_servers import WorldZooKeeper  # noqa: E402
from kernel.consumer import SilentListener  # noqa: E402
from kernel.errors import RebalanceLabError  # noqa: E402
from kernel.platform.ports import LOOPBACK  # noqa: E402
from kernel.platform.syncing import forgo_syncing  # noqa: E402
from kernel.trace.writer import SilentTracer  # noqa: E402
from kernel.waiting import until  # noqa: E402
from kernel.zookeeper.servers import Limits  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.node import Node
    from kernel.consumer import GroupConsumer

_GROUP, _TOPIC, _BROKERS = "lab", "orders", 2
_SETTLE_S = 600.0
_PRESET = PRESETS["equal-timers"]
#: The fewest of kazoo's and Kafka's; more members than 4 attempts of 2 s settle need more of them.
_PATIENT = {"rebalance.max.retries": "100"}


class SimulatedGroup:
    """A group whose members are nodes of a world."""

    def __init__(self, world: World, design: str, partitions: int, folder: Path) -> None:
        self._world = world
        self._design = design
        self._partitions = partitions
        self._folder = folder
        self._zookeeper = ""
        self._bootstrap = ""
        self._members: dict[str, tuple[Node, GroupConsumer]] = {}

    async def start(self) -> None:
        """ZooKeeper, brokers and the topic."""
        limits = Limits(
            tick_ms=ZOOKEEPER_TICK_MS, min_session_ms=ZOOKEEPER_SESSION_MS[0], max_session_ms=ZOOKEEPER_SESSION_MS[1]
        )
        servers = WorldZooKeeper(self._world).make_servers(None, self._folder, limits=limits)
        await servers.start()
        self._zookeeper = servers.servers[0].address
        ports = [await self._start_broker(number) for number in range(1, _BROKERS + 1)]
        self._bootstrap = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        access = await ClusterAccess.open(self._bootstrap, self._world.clock())
        await access.create_topic(_TOPIC, [[1 + number % _BROKERS] for number in range(self._partitions)])

    async def _start_broker(self, number: int) -> int:
        node = self._world.node(f"broker-{number}", Kind.BROKER)
        settings = {**_PRESET.brokers, "broker.id": str(number), "port": "0"}
        runtime = self._world.runtime(node)

        async def serve() -> int:
            broker, _ = broker_of(settings, self._zookeeper, self._folder, SilentTracer(), runtime=runtime)
            await broker.start()
            return broker.address.port

        return await self._world.spawn(node, serve)

    def join(self, name: str) -> None:
        node = self._world.node(name, Kind.MEMBER)
        request = ConsumerRequest(
            process=name,
            group=_GROUP,
            zookeeper=self._zookeeper,
            bootstrap=self._bootstrap,
            settings={**_PRESET.members[self._design], **(_PATIENT if self._design == "zookeeper" else {})},
            client_id=name,
            instance=name,
            runtime=self._world.runtime(node),
        )
        consumer = CONSUMERS[self._design].consumer(request, SilentTracer())
        self._members[name] = node, consumer
        self._world.spawn(node, self._live, consumer)

    async def _live(self, consumer: GroupConsumer) -> None:
        await consumer.start()
        await consumer.subscribe({_TOPIC: 1}, SilentListener())
        while True:
            try:
                await consumer.getmany(timeout_ms=100)
            except RebalanceLabError:
                await asyncio.sleep(0.1)

    def crash(self, name: str) -> None:
        node, _ = self._members.pop(name)
        self._world.loop.kill(node)

    async def settled(self) -> None:
        """Wait until each partition has one owner, and each member has some if there are enough."""
        await until(self._is_settled, _SETTLE_S, "the group to settle", every_s=0.25)

    def _is_settled(self) -> bool:
        owned = [sum(map(len, consumer.assignment().values())) for _, consumer in self._members.values()]
        owners = {
            tp for _, consumer in self._members.values() for some in consumer.assignment().values() for tp in some
        }
        least = self._partitions // len(self._members)
        return sum(owned) == len(owners) == self._partitions and min(owned) >= least


async def measured(world: World, design: str, members: int, partitions: int, folder: Path) -> dict[str, float]:
    """CPU seconds of each change, seconds of virtual time, and memory that the group took, in MB a member."""
    group = SimulatedGroup(world, design, partitions, folder)
    await group.start()
    figures: dict[str, float] = {}
    begun_mb = _resident_mb()

    async def change(name: str, do: Callable[[], object]) -> None:
        began, virtual = time.process_time(), world.loop.time()
        do()
        await group.settled()
        figures[f"{name} cpu_s"] = time.process_time() - began
        figures[f"{name} s"] = world.loop.time() - virtual

    await change("form", lambda: [group.join(f"m{number:04d}") for number in range(members)])
    figures["mb a member"] = (_resident_mb() - begun_mb) / members
    await change("join", lambda: group.join(f"m{members:04d}"))
    await change("crash", lambda: group.crash("m0000"))
    return figures


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def main(design: str, members: int, partitions: int) -> None:
    logging.disable()
    CONSUMERS[design].load()
    forgo_syncing()
    world = World(1)
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-bench-") as folder:
        figures = world.run(lambda: measured(world, design, members, partitions, Path(folder)))
    figures["start cpu_s"] = time.process_time() - sum(
        value for name, value in figures.items() if name.endswith("cpu_s")
    )
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what the world has left undone stays so


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
