"""What the application of a member's process remembers of the records that it was handed."""

from __future__ import annotations

import asyncio

from comparison.scenarios.processes.application import Memory
from kernel.values import Batch, Record, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def delivered(memory: Memory, *partitions: TopicPartition) -> None:
    """The record at offset 4 of each of these partitions is processed."""
    for tp in partitions:
        record = Record(topic=tp.topic, partition=tp.partition, offset=4, timestamp_ms=0, key=None, value=b"")
        memory.add([Batch(stream=0, topic_partition=tp, records=(record,))])


def test_partitions_revoked_in_order_are_forgotten_at_once() -> None:
    memory = Memory()
    delivered(memory, T0, T1)
    asyncio.run(memory.on_revoked(0, frozenset({T0})))
    assert memory.positions == {T1: 5}


def test_partitions_that_were_lost_are_remembered_until_the_next_assignment() -> None:
    memory = Memory()
    delivered(memory, T0, T1)
    asyncio.run(memory.on_lost(0, frozenset({T0})))
    assert memory.positions == {T0: 5, T1: 5}
    asyncio.run(memory.on_assigned(1, frozenset()))  # of another stream
    assert memory.positions == {T0: 5, T1: 5}
    asyncio.run(memory.on_assigned(0, frozenset({T1})))
    assert memory.positions == {T1: 5}


def test_a_partition_that_was_lost_and_comes_back_begins_anew() -> None:
    memory = Memory()
    delivered(memory, T0)
    asyncio.run(memory.on_lost(0, frozenset({T0})))
    asyncio.run(memory.on_assigned(0, frozenset({T0})))
    assert memory.positions == {}
