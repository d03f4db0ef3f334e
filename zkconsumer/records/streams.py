"""Between the fetchers and the application: the state of a partition, chunks of records, and the streams.

A stream belongs to one (topic, thread), or with a pattern to one thread and all matching topics; all partitions of
these that the thread owns share its queue. The queue is bounded (`queued.max.message.chunks`) and a fetcher waits while
it is full, so a slow stream blocks everything that its fetcher fetches. `getmany` takes from all streams, an iterator
(`iterators.py`) from one.

At a batch that cannot be handed out (above the size limit, or corrupt) a stream stops for good, as a ConsumerIterator
does; its queue fills, and then its fetcher waits too.

A partition has three separate offsets (PartitionTopicInfo in the original): `fetched` runs ahead with the fetcher,
`consumed` is the next one to be handed out, `checkpointed` is the one last written to ZooKeeper. Fetching never uses
`consumed`, except through ZooKeeper at the start of an assignment.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kernel.values import NO_OFFSET, Batch, TopicPartition
from zkconsumer.znodes.payloads import stream_of

if TYPE_CHECKING:
    from kernel.errors import RebalanceLabError
    from kernel.values import Record
    from zkconsumer.rebalance.effects import Claim

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class PartitionInfo:
    """A partition of ours; every rebalance creates a new one."""

    topic_partition: TopicPartition
    stream: Stream
    fetched: int
    consumed: int
    checkpointed: int
    started: bool = False  #: whether `position_started` was emitted
    session: int = 0  #: the ZooKeeper session in which it was claimed (fix.commit.fence=session)
    epoch: int | None = None  #: version of the partition's epoch node at the claim (fix.commit.fence=epoch)

    @classmethod
    def of(cls, claim: Claim, stream: Stream) -> PartitionInfo:
        """All three offsets are the committed one, or `NO_OFFSET`."""
        offset = claim.offset
        return cls(claim.topic_partition, stream, offset, offset, offset, session=claim.session, epoch=claim.epoch)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one fetch returned for one partition: `records` from `offset` on, and the `failure` after them, if any.

    A chunk without records always has a `failure`.
    """

    info: PartitionInfo
    offset: int
    records: tuple[Record, ...]
    failure: RebalanceLabError | None = None


class Found(NamedTuple):
    """A record that counts as consumed once the caller has set `info.consumed`."""

    info: PartitionInfo
    record: Record


@dataclass(slots=True, eq=False)
class Stream:
    """A thread's queue for one topic or for a pattern, and the chunk that is being handed out."""

    thread: str
    chunks_max: int
    filled: asyncio.Event  #: shared by all streams of a consumer: some queue got a chunk
    number: int = field(init=False)
    failure: RebalanceLabError | None = field(init=False, default=None)  #: why it stopped for good
    ended: bool = field(init=False, default=False)  #: the shutdown marker was found
    _failure_raised: bool = field(init=False, default=False)  #: whether `raise_failure` has raised
    _chunks: asyncio.Queue[Chunk | None] = field(init=False)
    _current: Chunk | None = field(init=False, default=None)
    _handed_out: int = field(init=False, default=0)  #: how many records of the current chunk were handed out

    def __post_init__(self) -> None:
        self.number = stream_of(self.thread)
        self._chunks = asyncio.Queue(self.chunks_max)

    async def put(self, chunk: Chunk) -> None:
        """Wait for room, then queue the chunk."""
        await self._chunks.put(chunk)
        self.filled.set()

    def clear(self) -> None:
        """Drop queue and current chunk. What was handed out stays consumed; the rest is fetched again."""
        while not self._chunks.empty():
            self._chunks.get_nowait()
        self.clear_current()

    def clear_current(self) -> None:
        """Drop only the current chunk; queued chunks will be handed out."""
        self._current = None

    def end(self) -> None:
        """Put the shutdown marker into the emptied queue."""
        self._chunks.put_nowait(None)
        self.filled.set()

    def take(self, records_max: int) -> Batch | None:
        """Take up to `records_max` records of one partition, which then count as consumed; None if there are none."""
        while True:
            chunk = self._current or self._next_chunk()
            if chunk is None:
                return None
            records = chunk.records[self._handed_out : self._handed_out + records_max]
            self._hand_out(chunk, len(records))
            # Records below the position come from a compressed set that begins before it: they are consumed already.
            fresh = tuple(record for record in records if record.offset >= chunk.info.consumed)
            if fresh:
                chunk.info.consumed = fresh[-1].offset + 1
                return Batch(self.number, chunk.info.topic_partition, fresh)

    def find(self) -> Found | None:
        """Take the next record out of the stream, not consumed yet; None if there is none."""
        while True:
            chunk = self._current or self._next_chunk()
            if chunk is None:
                return None
            record = next(iter(chunk.records[self._handed_out : self._handed_out + 1]), None)
            self._hand_out(chunk, 1)
            if record is not None and record.offset >= chunk.info.consumed:
                return Found(chunk.info, record)

    def raise_failure(self) -> None:
        """Raise the stream's failure, once; the stream hands out nothing more."""
        if self.failure is not None and not self._failure_raised:
            self._failure_raised = True
            raise self.failure

    def _hand_out(self, chunk: Chunk, number: int) -> None:
        self._handed_out += number
        if self._handed_out >= len(chunk.records):
            self._current = None
            self.failure = chunk.failure

    def _next_chunk(self) -> Chunk | None:
        if self.failure is not None or self._chunks.empty():
            return None
        chunk = self._chunks.get_nowait()
        if chunk is None:
            self.ended = True
            return None
        if chunk.info.consumed < chunk.offset:
            log.warning(
                "%s: position jumps from %d to %d; records may be lost",
                chunk.info.topic_partition,
                chunk.info.consumed,
                chunk.offset,
            )
            chunk.info.consumed = chunk.offset
        self._current, self._handed_out = chunk, 0
        return chunk


class Registry:
    """The partitions that this member believes it owns: the original's topic registry."""

    def __init__(self) -> None:
        self._infos: dict[TopicPartition, PartitionInfo] = {}

    def adopt(self, infos: list[PartitionInfo]) -> None:
        self._infos = {info.topic_partition: info for info in infos}

    def forget(self, topics: tuple[str, ...] | None) -> None:
        """Drop these topics' partitions (None: all)."""
        self._infos = {tp: info for tp, info in self._infos.items() if topics is not None and tp.topic not in topics}

    def infos(self) -> list[PartitionInfo]:
        """By topic and partition number."""
        return [self._infos[tp] for tp in sorted(self._infos)]

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to hand out; None if the partition is not ours or its offset is not resolved yet."""
        info = self._infos.get(partition)
        return None if info is None or info.consumed == NO_OFFSET else info.consumed
