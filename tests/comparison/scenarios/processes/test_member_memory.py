"""The positions that a member's application remembers, and so commits after a freeze."""

from __future__ import annotations

import asyncio

from comparison.scenarios.processes.member_process import Memory
from kernel.values import Batch, Record, TopicPartition

KEPT, GIVEN_BACK = TopicPartition("orders", 0), TopicPartition("orders", 3)


def batch(partition: TopicPartition, last: int) -> Batch:
    return Batch(0, partition, (Record(*partition, last, 0, None, b""),))


def test_memory_forgets_revoked_partitions_and_keeps_lost_ones() -> None:
    memory = Memory()
    memory.add([batch(KEPT, 27), batch(GIVEN_BACK, 19)])
    asyncio.run(memory.on_revoked(0, frozenset({GIVEN_BACK})))
    assert memory.positions == {KEPT: 28}
    asyncio.run(memory.on_lost(0, frozenset({KEPT})))
    assert memory.positions == {KEPT: 28}
