"""One stream, read record by record: ConsumerIterator of Kafka 0.8.2, by its tests and its source."""

from __future__ import annotations

import asyncio
import logging
import struct

import pytest

from kernel.errors import ConsumerTimeout, MessageSizeTooLarge
from kernel.records.records import CorruptRecords, NewRecord, build_batch
from kernel.values import Batch, Record, TopicPartition
from zkconsumer.rebalance.effects import Claim
from zkconsumer.records.chunks import chunk_of
from zkconsumer.records.iterators import StreamIterator
from zkconsumer.records.streams import Chunk, PartitionInfo, Stream

TP = TopicPartition("t", 0)


class Reading:
    """A stream, its iterator, and the records reported to the consumer."""

    def __init__(self, *, timeout_ms: int | None = 50, chunks_max: int = 10) -> None:
        self.stream = Stream("g_c-3", chunks_max, asyncio.Event())
        self.handed_out: list[Batch] = []
        self.crash: Exception | None = None
        self.iterator = StreamIterator(
            self.stream, timeout_ms=timeout_ms, handed_out=self.handed_out.append, check=self.check
        )

    def check(self) -> None:
        if self.crash is not None:
            raise self.crash

    def info(self, offset: int, partition: int = 0) -> PartitionInfo:
        return PartitionInfo.of(Claim("t", partition, "g_c-3", offset), self.stream)

    async def offsets(self, number: int) -> list[int]:
        return [(await anext(self.iterator)).offset for _ in range(number)]


def records(first: int, last: int) -> tuple[Record, ...]:
    return tuple(Record("t", 0, offset, 0, None, b"v%d" % offset) for offset in range(first, last + 1))


def stored(offset: int, *values: bytes, codec: str = "none") -> bytes:
    return struct.pack(">q", offset) + build_batch([NewRecord(value, None, 0) for value in values], codec=codec)[8:]


async def test_consumer_iterator_deduplication_deep_iterator():
    """ConsumerIteratorTest: of a compressed set of 0 to 9, read from 5 on, five records are delivered."""
    reading = Reading()
    info = reading.info(5)
    data = stored(0, *[b"%d" % n for n in range(10)], codec="gzip")
    chunk, next_offset = chunk_of(info, 5, data, bytes_max=10_000)
    assert next_offset == 10
    await reading.stream.put(chunk)
    assert await reading.offsets(5) == [5, 6, 7, 8, 9]
    assert info.consumed == 10
    with pytest.raises(ConsumerTimeout):
        await anext(reading.iterator)


async def test_records_below_the_position_are_skipped_wherever_the_chunk_begins():
    reading = Reading()
    info = reading.info(7)
    await reading.stream.put(Chunk(info, 7, records(3, 5)))
    await reading.stream.put(Chunk(info, 7, records(5, 8)))
    assert await reading.offsets(2) == [7, 8]


async def test_consumer_iterator_decoding_failure():
    """ConsumerIteratorTest: the application decodes values, so a decoding error does not stop the iterator."""
    reading = Reading()
    await reading.stream.put(Chunk(reading.info(0), 0, records(0, 4)))
    failures = 0
    for expected in range(5):
        assert await reading.iterator.has_next()
        record = await anext(reading.iterator)
        assert record.offset == expected
        try:
            int(record.value or b"")
        except ValueError:
            failures += 1
    assert failures == 5


async def test_position_moves_when_a_record_is_delivered_not_when_found():
    reading = Reading()
    info = reading.info(4)
    await reading.stream.put(Chunk(info, 4, records(4, 5)))
    assert await reading.iterator.has_next()
    assert await reading.iterator.has_next(), "the next call finds no other"
    assert (info.consumed, reading.handed_out) == (4, [])
    record = await anext(reading.iterator)
    assert (record.offset, info.consumed) == (4, 5)
    assert reading.handed_out == [Batch(3, TP, (record,))]
    assert (reading.iterator.number, reading.iterator.thread) == (3, "g_c-3")


async def test_timeout_raises_and_the_iterator_can_be_used_again():
    """ZookeeperConsumerConnectorTest.testBasic times out twice before it goes on."""
    reading = Reading(timeout_ms=20)
    loop = asyncio.get_running_loop()
    for _ in range(2):
        begun = loop.time()
        with pytest.raises(ConsumerTimeout, match=r"consumer\.timeout\.ms=20"):
            await reading.iterator.has_next()
        assert loop.time() - begun >= 0.02
    await reading.stream.put(Chunk(reading.info(0), 0, records(0, 0)))
    assert await reading.offsets(1) == [0]
    with pytest.raises(ConsumerTimeout):
        await anext(reading.iterator)


async def test_timeout_of_zero_looks_once_and_none_waits():
    now = Reading(timeout_ms=0)
    with pytest.raises(ConsumerTimeout):
        await now.iterator.has_next()
    await now.stream.put(Chunk(now.info(0), 0, records(0, 0)))
    assert await now.offsets(1) == [0]
    patient = Reading(timeout_ms=None)
    waiting = asyncio.create_task(patient.iterator.has_next())
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    await patient.stream.put(Chunk(patient.info(0), 0, records(0, 0)))
    assert await asyncio.wait_for(waiting, 60)


async def test_two_iterators_wait_for_one_event_and_neither_misses_its_record():
    filled, all_there = asyncio.Event(), asyncio.Event()
    got: list[tuple[str, int]] = []

    async def read(name: str, stream: Stream) -> None:
        iterator = StreamIterator(stream, timeout_ms=None, handed_out=lambda _: None, check=lambda: None)
        async for record in iterator:
            got.append((name, record.offset))
            if len(got) == 100:
                all_there.set()

    streams = {name: Stream(f"g_c-{number}", 2, filled) for number, name in enumerate("ab")}
    tasks = [asyncio.create_task(read(name, stream)) for name, stream in streams.items()]
    infos = {name: PartitionInfo.of(Claim("t", 0, stream.thread, 0), stream) for name, stream in streams.items()}
    for offset in range(50):
        for name, stream in streams.items():
            await stream.put(Chunk(infos[name], offset, records(offset, offset)))
    await asyncio.wait_for(all_there.wait(), 60)
    for stream in streams.values():
        stream.end()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert sorted(got) == [(name, offset) for name in "ab" for offset in range(50)]


async def test_close_ends_the_iterator_for_good():
    reading = Reading(timeout_ms=None)
    waiting = asyncio.create_task(reading.iterator.has_next())
    await asyncio.sleep(0)
    reading.stream.end()
    assert await asyncio.wait_for(waiting, 60) is False
    assert [record async for record in reading.iterator] == []
    assert not await reading.iterator.has_next()


async def test_prefetched_record_survives_the_clearing_and_is_delivered_twice():
    """The rebalance cleared queue and chunk, and the same stream got the partition again."""
    reading = Reading()
    before = reading.info(0)
    await reading.stream.put(Chunk(before, 0, records(0, 4)))
    assert await reading.offsets(2) == [0, 1]
    assert await reading.iterator.has_next()
    reading.stream.clear()
    after = reading.info(before.consumed)
    await reading.stream.put(Chunk(after, 2, records(2, 4)))
    assert await reading.offsets(4) == [2, 2, 3, 4]
    assert (before.consumed, after.consumed) == (3, 5)


async def test_chunk_ahead_of_the_position_makes_it_jump_with_a_warning(caplog):
    reading = Reading()
    info = reading.info(5)
    await reading.stream.put(Chunk(info, 8, records(8, 9)))
    with caplog.at_level(logging.WARNING):
        assert await reading.iterator.has_next()
    assert info.consumed == 8
    assert "position jumps from 5 to 8; records may be lost" in caplog.text


async def test_message_above_the_limit_stops_the_stream_for_good():
    """What is queued behind it is never delivered: the original's iterator is in its failed state then."""
    reading = Reading()
    info = reading.info(0)
    data = stored(0, b"x" * 500)
    chunk, next_offset = chunk_of(info, 0, data, bytes_max=400)
    assert next_offset == 0, "the message is fetched again"
    await reading.stream.put(chunk)
    await reading.stream.put(Chunk(info, 0, records(0, 3)))
    for _ in range(2):
        with pytest.raises(MessageSizeTooLarge, match=r"t-0 .* offset 0 .*fetch.message.max.bytes=400"):
            await anext(reading.iterator)
    reading.stream.clear()
    await reading.stream.put(Chunk(info, 0, records(0, 3)))
    with pytest.raises(MessageSizeTooLarge):
        await reading.iterator.has_next()
    assert info.consumed == 0


def test_limit_is_that_of_the_first_batch_as_a_whole():
    reading = Reading()
    data = stored(0, b"x" * 50, b"y" * 50)
    for limit, fits in ((len(data), True), (len(data) - 1, False)):
        chunk, _ = chunk_of(reading.info(0), 0, data + stored(2, b"z"), bytes_max=limit)
        assert chunk is not None
        assert (chunk.failure is None) is fits
    for cut in (1, 11, 12, len(data) - 1):  # as Fetch 0 to 2 return it
        chunk, next_offset = chunk_of(reading.info(0), 0, data[:cut], bytes_max=cut)
        assert chunk is not None
        assert isinstance(chunk.failure, MessageSizeTooLarge)
        assert next_offset == 0
    assert chunk_of(reading.info(0), 7, b"", bytes_max=10) == (None, 7)


async def test_corrupt_batch_comes_after_the_good_ones_before_it_and_stops_the_stream():
    reading = Reading()
    info = reading.info(0)
    broken = bytearray(stored(2, b"c", b"d"))
    broken[-1] ^= 0xFF
    data = stored(0, b"a", b"b") + bytes(broken) + stored(4, b"e")
    chunk, next_offset = chunk_of(info, 0, data, bytes_max=10_000)
    assert next_offset == 5, "the fetcher goes on after it"
    await reading.stream.put(chunk)
    assert await reading.offsets(2) == [0, 1]
    with pytest.raises(CorruptRecords):
        await anext(reading.iterator)
    assert info.consumed == 2


async def test_failure_of_the_consumer_interrupts_a_waiting_iterator():
    reading = Reading(timeout_ms=None)
    waiting = asyncio.create_task(anext(reading.iterator))
    await asyncio.sleep(0)
    reading.crash = AssertionError("a task has ended")
    reading.stream.filled.set()
    with pytest.raises(AssertionError, match="a task has ended"):
        await asyncio.wait_for(waiting, 60)
