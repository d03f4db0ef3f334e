"""The life of an offset in the 0.8 consumer, lived by the code that runs: `life()` gives each moment's values.

A partition's `PartitionInfo` and the `Stream` whose queue it fills are the consumer's own; what its fetcher, its
application and its commits do to them is done here, one after the other, so that the moments are always the same.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kernel.values import Record
from zkconsumer.rebalance.effects import Claim
from zkconsumer.records.streams import Chunk, PartitionInfo, Stream

#: The committed offset, the records of a fetch, and queued.max.message.chunks.
COMMITTED, FETCH, CHUNKS_MAX = 40, 3, 2
THREAD = "g_c1-0"


class Moment(NamedTuple):
    """What has happened, who did it in the code, and the values after it.

    `chunks` are the queued ones as (first, last) offset, `current` the rest of the one that is being handed out, and
    `waiting` one that has been fetched and finds no room.
    """

    happened: str
    by: str
    fetched: int
    consumed: int
    checkpointed: int
    chunks: tuple[tuple[int, int], ...] = ()
    current: tuple[int, int] | None = None
    waiting: tuple[int, int] | None = None


class _Member:
    """One partition of one stream."""

    def __init__(self, committed: int) -> None:
        self.stream = Stream(THREAD, CHUNKS_MAX, asyncio.Event())
        self.info = PartitionInfo.of(Claim("t", 0, THREAD, committed), self.stream)
        self.fetching: asyncio.Task[None] | None = None
        self._queued: list[tuple[int, int]] = []
        self._current: tuple[int, int] | None = None

    def fetch(self) -> None:
        """As a fetcher does: from `fetched`, which moves on when the chunk is in the queue."""
        self.fetching = asyncio.get_running_loop().create_task(self._fetch(self.info.fetched))

    async def _fetch(self, first: int) -> None:
        records = tuple(_record(offset) for offset in range(first, first + FETCH))
        await self.stream.put(Chunk(self.info, first, records))
        self._queued.append((first, first + FETCH - 1))
        self.info.fetched = first + FETCH

    def take(self, number: int) -> None:
        batch = self.stream.take(number)
        assert batch is not None
        assert len(batch.records) == number
        if self._current is None:
            self._current = self._queued.pop(0)
        last = self._current[1]
        self._current = (self.info.consumed, last) if self.info.consumed <= last else None

    def commit(self) -> None:
        """As `Offsets` does: `consumed` is written to ZooKeeper and remembered."""
        self.info.checkpointed = self.info.consumed

    def stop(self) -> None:
        """As R4 does: no more fetching, an empty queue, and a commit."""
        assert self.fetching is not None
        self.fetching.cancel()
        self.stream.clear()
        self._queued, self._current = [], None
        self.commit()

    def moment(self, happened: str, by: str) -> Moment:
        info = self.info
        waiting = None
        if self.fetching is not None and not self.fetching.done() and not self.fetching.cancelling():
            waiting = (info.fetched, info.fetched + FETCH - 1)
        values = (info.fetched, info.consumed, info.checkpointed)
        return Moment(happened, by, *values, tuple(self._queued), self._current, waiting)


def _record(offset: int) -> Record:
    return Record("t", 0, offset, 0, None, b"")


def life() -> tuple[Moment, ...]:
    return asyncio.run(_life())


async def _life() -> tuple[Moment, ...]:
    member = _Member(COMMITTED)
    found = [member.moment("The rebalance has read the committed offset and claimed the partition", "PartitionInfo.of")]
    member.fetch()
    await asyncio.sleep(0)
    found.append(member.moment("A fetch has returned three records: a chunk for the queue", "Fetcher, Stream.put"))
    member.fetch()
    await asyncio.sleep(0)
    found.append(member.moment("So has the next: fetching does not wait for the application", "Fetcher, Stream.put"))
    member.fetch()
    await asyncio.sleep(0)
    found.append(member.moment("The queue is full: the third chunk waits, and its fetcher with it", "Stream.put"))
    member.take(2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    found.append(member.moment("The application has two records, and the queue has room again", "Stream.take"))
    member.commit()
    found.append(member.moment("The timer commits what was handed out, not what was fetched", "Offsets.commit"))
    member.take(1)
    member.take(1)
    found.append(member.moment("The application has two more, the second of the next chunk", "Stream.take"))
    member.fetch()
    await asyncio.sleep(0)
    member.stop()
    found.append(
        member.moment(
            "After one more fetch, a rebalance stops fetching, clears the queue and commits (R4)", "Stream.clear"
        )
    )
    successor = _Member(member.info.checkpointed)
    found.append(successor.moment("The next owner starts there, and fetches the rest again", "PartitionInfo.of"))
    return tuple(found)
