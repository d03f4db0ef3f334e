"""Time to create one more topic beside many: `python -m bench.creation [--topics 4200]`.

Writes topics to a real ZooKeeper first; then a broker's cluster creates thirty more, each until it has a leader. Prints
the median, in ms of wall time and of this process's CPU.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel.broker.cluster import znodes
from kernel.broker.cluster.leadership import Cluster
from kernel.random_ids import fresh_uuid
from kernel.runtime import REAL
from kernel.trace.writer import SilentTracer
from kernel.values import BrokerAddress, TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from kernel.broker.cluster.cluster_view import Leadership

PATIENCE_S = 60
MEASURED, WARM_UP = 30, 5


class Nobody:
    """A listener that accepts every partition at once."""

    async def on_lead(self, leadership: Leadership) -> None: ...

    async def on_resign(self, topic_partition: TopicPartition) -> None: ...


async def write_topics(zookeeper: str, count: int) -> None:
    """Write topics as a controller would, all led by broker 1."""
    state = znodes.state_node(znodes.PartitionState(1, 0, (1,), 1))

    async def write(name: str) -> None:
        await session.create(paths.topic(name), znodes.topic_node(znodes.TopicNode(((1,),), fresh_uuid(REAL.random))))
        for path, data in (
            (paths.partitions(name), None),
            (paths.partition(name, 0), None),
            (paths.partition_state(name, 0), state),
        ):
            await session.create(path, data)

    session = await ZooKeeperSession.open(
        zookeeper,
        session_timeout_ms=30_000,
        tracer=SilentTracer(),
        name="write",
        connection_timeout_ms=PATIENCE_S * 1000,
    )
    async with session:
        await session.ensure_path(paths.BROKER_TOPICS)
        for start in range(0, count, 200):
            await asyncio.gather(*(write(f"there-{n}") for n in range(start, min(start + 200, count))))


async def measured(zookeeper: str) -> list[tuple[float, float]]:
    """Create topics; return (wall ms, CPU ms) of each."""
    cluster = Cluster(
        zookeeper,
        BrokerAddress(1, "127.0.0.1", 9092),
        session_timeout_ms=30_000,
        connection_timeout_ms=PATIENCE_S * 1000,
        tracer=SilentTracer(),
    )
    cluster.subscribe(Nobody(), topics=lambda _: True)
    took = []
    async with cluster:
        for number in range(WARM_UP + MEASURED):
            tp = TopicPartition(f"new-{number}", 0)
            wall, cpu = time.monotonic(), time.process_time()
            await cluster.create_topic(tp.topic, partitions=1, replication_factor=1)
            await until(lambda tp=tp: cluster.leads(tp), PATIENCE_S, f"{tp} to be led", every_s=0.001)  # type: ignore[misc]
            took.append(((time.monotonic() - wall) * 1000, (time.process_time() - cpu) * 1000))
    return took[WARM_UP:]


@click.command(help=__doc__)
@click.option("--topics", type=click.IntRange(0), multiple=True, default=(0, 4200), show_default=True)
def main(topics: tuple[int, ...]) -> None:
    for count in topics:
        with tempfile.TemporaryDirectory() as folder, EmbeddedZooKeeper(Path(folder)) as server:
            asyncio.run(write_topics(server.connect_string, count))
            walls, cpus = zip(*asyncio.run(measured(server.connect_string)), strict=True)
        wall, cpu = statistics.median(walls), statistics.median(cpus)
        click.echo(f"{count} topics: one more takes {wall:.1f} ms, {cpu:.1f} ms of CPU (median of {MEASURED})")


if __name__ == "__main__":
    main()
