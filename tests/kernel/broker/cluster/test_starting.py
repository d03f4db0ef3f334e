"""A broker that joins its cluster while its connection to ZooKeeper breaks."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kernel.broker.cluster.leadership import Cluster
from kernel.errors import Retriable
from kernel.values import BrokerAddress
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import gone, opened

WAIT_MS = 30_000
BROKER = paths.broker(1)


def cluster_at(zookeeper: str) -> Cluster:
    return Cluster(
        zookeeper,
        BrokerAddress(1, "127.0.0.1", 9001),
        session_timeout_ms=15_000,
        connection_timeout_ms=8_000,
        tracer=ListTracer(),
    )


@pytest.mark.parametrize("at", [paths.CLUSTER_ID, BROKER])
async def test_connection_that_breaks_during_startup_is_reopened(chroot: str, at: str, link: ZooKeeperProxy) -> None:
    cluster = cluster_at(link.connect_string)
    pause = link.pause_at(lambda op: op.path == at)
    async with opened(chroot) as session:
        starting = asyncio.create_task(cluster.start())
        await pause.reached()
        link.cut()
        pause.release()
        await starting
        try:
            assert await cluster.until(lambda snapshot: 1 in snapshot.brokers, WAIT_MS)
            assert await session.exists(BROKER) is not None
        finally:
            await cluster.stop()
        await gone(session, BROKER)


async def test_startup_that_never_connects_is_given_up(link: ZooKeeperProxy) -> None:
    starting = asyncio.create_task(cluster_at(link.connect_string).start())
    for _ in range(3):
        pause = link.pause_at(lambda op: op.path == paths.CLUSTER_ID)
        await pause.reached()
        link.cut()
        pause.release()
    with pytest.raises(Retriable):
        await starting
    await until(lambda: not sessions_running(), 30, "the threads of the sessions that were given up to end")


def sessions_running() -> list[str]:
    """Nobody waits for the end of a session without a connection; its thread has this loop close its socket."""
    return [thread.name for thread in threading.enumerate() if thread.name.endswith("broker-1")]
