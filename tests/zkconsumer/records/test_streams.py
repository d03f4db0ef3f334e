"""The records that a stream delivers, and the position afterwards."""

from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.values import NO_OFFSET, Record, TopicPartition
from zkconsumer.rebalance.effects import Claim
from zkconsumer.records.leaders import fetcher_id
from zkconsumer.records.streams import Chunk, PartitionInfo, Registry, Stream

TP = TopicPartition("t", 0)


def stream(chunks_max: int = 2) -> Stream:
    return Stream("g_c-3", chunks_max, asyncio.Event())


def info(into: Stream, offset: int) -> PartitionInfo:
    return PartitionInfo.of(Claim("t", 0, "g_c-3", offset), into)


def records(first: int, last: int) -> tuple[Record, ...]:
    return tuple(Record("t", 0, offset, 0, None, b"") for offset in range(first, last + 1))


def offsets(batch) -> list[int]:
    return [record.offset for record in batch.records]


def test_records_are_delivered_in_chunks_and_the_position_follows():
    queue = stream()
    partition = info(queue, 5)
    asyncio.run(queue.put(Chunk(partition, 5, records(5, 9))))
    batch = queue.take(3)
    assert (batch.stream, batch.topic_partition, offsets(batch)) == (3, TP, [5, 6, 7])
    assert partition.consumed == 8
    assert offsets(queue.take(3)) == [8, 9]
    assert queue.take(3) is None
    assert (partition.consumed, partition.checkpointed) == (10, 5)


def test_records_below_the_position_are_not_delivered_again():
    """A fetch in the middle of a compressed set returns the whole set."""
    queue = stream()
    partition = info(queue, 7)
    asyncio.run(queue.put(Chunk(partition, 7, records(5, 9))))
    assert offsets(queue.take(10)) == [7, 8, 9]


def test_a_chunk_ahead_of_the_position_makes_it_jump_with_a_warning(caplog):
    queue = stream()
    partition = info(queue, 5)
    asyncio.run(queue.put(Chunk(partition, 8, records(8, 9))))
    with caplog.at_level(logging.WARNING):
        assert offsets(queue.take(10)) == [8, 9]
    assert "position jumps from 5 to 8" in caplog.text


def test_cleared_records_are_not_consumed_and_delivered_ones_are():
    queue = stream()
    partition = info(queue, 0)
    asyncio.run(queue.put(Chunk(partition, 0, records(0, 4))))
    asyncio.run(queue.put(Chunk(partition, 5, records(5, 9))))
    assert offsets(queue.take(2)) == [0, 1]
    queue.clear()
    assert queue.take(10) is None
    assert partition.consumed == 2
    queue.end()
    assert queue.take(10) is None


async def test_a_full_queue_makes_the_fetcher_wait():
    queue = stream(chunks_max=1)
    partition = info(queue, 0)
    await queue.put(Chunk(partition, 0, records(0, 0)))
    waiting = asyncio.create_task(queue.put(Chunk(partition, 1, records(1, 1))))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert offsets(queue.take(10)) == [0]
    await waiting
    assert offsets(queue.take(10)) == [1]


def test_the_registry_forgets_by_topic_and_knows_positions():
    registry = Registry()
    queue = stream()
    other = PartitionInfo.of(Claim("u", 1, "g_c-3", NO_OFFSET), queue)
    registry.adopt([other, info(queue, 4)])
    assert [each.topic_partition for each in registry.infos()] == [TP, TopicPartition("u", 1)]
    assert registry.position(TP) == 4
    assert registry.position(TopicPartition("u", 1)) is None  # not resolved yet
    registry.forget(("t",))
    assert [each.topic_partition.topic for each in registry.infos()] == ["u"]
    registry.forget(None)
    assert registry.infos() == []


@pytest.mark.parametrize(("topic", "partition", "expected"), [("t", 0, 3596 % 7), ("t", 5, 3601 % 7), ("", 3, 3)])
def test_a_partition_goes_to_the_fetcher_of_its_hash(topic, partition, expected):
    assert fetcher_id(TopicPartition(topic, partition), 7) == expected


@given(st.text(max_size=40), st.integers(0, 10_000), st.integers(1, 9))
def test_every_partition_has_a_fetcher(topic, partition, fetchers):
    assert 0 <= fetcher_id(TopicPartition(topic, partition), fetchers) < fetchers
