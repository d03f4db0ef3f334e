"""The final reads of a run, after the drain: committed offsets and log ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.designs import DESIGNS
from kernel.values import NO_OFFSET
from kernel.zookeeper import paths
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from comparison.scenarios.testbed.testbed import Testbed
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition

_STEP = "final"
#: For a busy machine: with less, a run that is complete would fail in its last step.
_TIMEOUT_MS = 30_000


async def read_final_offsets(testbed: Testbed, tracer: Tracer) -> None:
    """Emit `final_offset` for every partition. Raises `WaitTimeout` or `Unavailable` when one cannot be read."""
    ends = await testbed.access.ends(testbed.partitions)
    if DESIGNS[testbed.request.design].coordinator:
        committed = await testbed.access.committed(testbed.group, testbed.partitions)
    else:
        committed = await _from_zookeeper(testbed, tracer)
    for tp in testbed.partitions:
        tracer.emit(
            "final_offset",
            group=testbed.group,
            topic=tp.topic,
            partition=tp.partition,
            committed=committed[tp],
            end=ends[tp],
        )


async def _from_zookeeper(testbed: Testbed, tracer: Tracer) -> dict[TopicPartition, int]:
    session = await ZooKeeperSession.open(
        testbed.zookeeper.connect_for_member(victim=False),
        session_timeout_ms=_TIMEOUT_MS,
        connection_timeout_ms=_TIMEOUT_MS,
        tracer=tracer,
        process="runner",
        name="final",
        bridge=testbed.runtime.edge(Bridge),
    )
    async with session:
        committed: dict[TopicPartition, int] = {}
        for tp in testbed.partitions:
            try:
                data, _ = await session.get(paths.offset(testbed.group, tp.topic, tp.partition), step=_STEP)
            except NoNode:
                committed[tp] = NO_OFFSET
            else:
                committed[tp] = int(data)
        return committed
