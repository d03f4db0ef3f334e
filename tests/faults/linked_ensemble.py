"""Three ZooKeeper servers with a proxy on each link between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from comparison.scenarios.testbed.quorum import SERVERS, QuorumProxies
from kernel.tasks import cancel_and_wait
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits


def serving(ensemble: EmbeddedZooKeeper) -> set[int]:
    """The numbers of the servers that serve."""
    return {server.number for server in ensemble.servers if server.mode() is not None}


@asynccontextmanager
async def linked_ensemble(
    folder: Path, limits: Limits | None = None
) -> AsyncIterator[tuple[EmbeddedZooKeeper, QuorumProxies]]:
    """Three servers that serve, and their links; a server that came late to the others' election is admitted."""
    links = QuorumProxies(SilentTracer())
    await links.start()
    ensemble = EmbeddedZooKeeper(folder, servers=3, limits=limits, quorum_links=links.ports)
    admitting = [asyncio.create_task(links.readmit(number, lambda: serving(ensemble))) for number in SERVERS]
    try:
        await asyncio.to_thread(ensemble.start)
        await cancel_and_wait(*admitting)
        yield ensemble, links
    finally:
        await cancel_and_wait(*admitting)
        links.heal()
        await asyncio.to_thread(ensemble.stop)
        await links.stop()
