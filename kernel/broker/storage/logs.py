"""The two kinds of log, as used on the event loop; both are read by offset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from kernel.broker.storage.chain import Segment, extended, trimmed
from kernel.broker.storage.errors import Fenced, OffsetOutOfRange
from kernel.broker.storage.internal_errors import log_stopped
from kernel.broker.storage.jobs import Append, Trim, Upsert
from kernel.broker.storage.pair_batches import PairBatches
from kernel.records.transactions import AbortedTransaction, OpenTransactions, last_stable_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kernel.broker.storage.chain import Chain
    from kernel.broker.storage.jobs import Job
    from kernel.broker.storage.reading import Reader
    from kernel.broker.storage.terms import Term
    from kernel.records.batches import AppendBatch, AppendResult
    from kernel.values import TopicPartition

Result = TypeVar("Result")
#: Submits a job to the writer and waits for its result; waits first while the queue is full.
Perform = Callable[["Job"], Awaitable[object]]


class Log:
    """One term of one partition, until it is closed. Base of both kinds."""

    def __init__(self, term: Term, reader: Reader, perform: Perform) -> None:
        self._term = term
        self._reader = reader
        self._perform = perform
        self._closed: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return self._term.topic_partition

    @property
    def leader_epoch(self) -> int:
        return self._term.epoch.leader_epoch

    @property
    def fenced(self) -> str | None:
        """Why the log refuses appends; None while it accepts them, as far as is known."""
        return self._closed or self._term.closed

    def close(self, reason: str) -> None:
        """Accept no more writes. Queued ones are refused or, if stored already, acknowledged."""
        if self._closed is None:
            self._closed = reason
            self._term.closed = self._term.closed or reason

    def belongs_to(self, term: Term) -> bool:
        return self._term is term

    def _check_open(self) -> None:
        if (reason := self.fenced) is not None:
            raise Fenced(reason)

    async def _read(self, read: Callable[[], Result]) -> Result:
        if self._closed is not None:
            raise Fenced(self._closed)
        return await self._reader.run(read)


class ReadableLog(Log):
    """A log that Fetch and ListOffsets can read."""

    def __init__(self, term: Term, reader: Reader, perform: Perform) -> None:
        super().__init__(term, reader, perform)
        self._end_offset = term.end_offset
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def start_offset(self) -> int:
        return self._term.log_start_offset

    @property
    def end_offset(self) -> int:
        """The next offset. Everything below is acknowledged: high watermark and log end are the same."""
        return self._end_offset

    @property
    def last_stable_offset(self) -> int:
        """Everything below is decided: the first offset of the oldest open transaction, or the end."""
        return self._end_offset

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """(leader epoch, first offset written at it), ascending; for OffsetForLeaderEpoch."""
        return tuple((segment.leader_epoch, segment.start) for segment in self._segments())

    async def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> bytes:
        """Whole batches from the one that contains `offset`, so the first may begin before it; b"" at the end.

        One batch is returned however large it is, unless `at_least_one` is false (Fetch: not the first partition
        of the response). Raises OffsetOutOfRange, StorageFailed, Fenced (after `close`).
        """
        raise NotImplementedError

    async def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[bytes, Sequence[AbortedTransaction]]:
        """As `read`, up to the last stable offset; with the aborted transactions whose batches the reader has to skip.

        These are in the order of their markers, and cover what was read.
        """
        return await self.read(offset, max_bytes, at_least_one=at_least_one), ()

    async def size_from(self, offset: int, max_bytes: int, *, committed: bool = False) -> int:
        """The bytes that `read` would return from `offset` on, counted up to `max_bytes` without reading them.

        With `committed`, those of `read_committed`. Raises as `read`.
        """
        raise NotImplementedError

    async def batch_for_timestamp(self, timestamp_ms: int, from_offset: int = 0) -> bytes | None:
        """The first batch whose largest timestamp is at least `timestamp_ms`; the record is somewhere inside.

        Considers batches that end at or after `from_offset`.
        """
        raise NotImplementedError

    async def largest_timestamp(self) -> int:
        """The largest timestamp in the batches' headers, epoch ms; -1 for an empty log."""
        raise NotImplementedError

    def on_advance(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the event loop when `end_offset` grows or the log closes. Returns the cancel."""
        key = object()
        self._callbacks[key] = callback

        def cancel() -> None:
            self._callbacks.pop(key, None)

        return cancel

    def close(self, reason: str) -> None:
        super().close(reason)
        self._call_back()

    def _call_back(self) -> None:
        for callback in list(self._callbacks.values()):
            try:
                callback()
            except Exception as bug:  # noqa: BLE001 - a bug of the waiter: the log is not affected
                log_stopped(f"a waiter for records of {self.topic_partition}", bug)

    def _check_range(self, offset: int) -> None:
        if not self.start_offset <= offset <= self._end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition} has offsets {self.start_offset} to {self._end_offset}, not {offset}"
            )

    def _segments(self) -> Chain:
        term = self._term
        own = Segment(term.file, term.term, self.leader_epoch, term.start_offset, self._end_offset)
        return extended(term.chain, own)


class PartitionLog(ReadableLog):
    """One partition's records at one leader epoch, while this broker leads it."""

    def __init__(self, term: Term, reader: Reader, perform: Perform) -> None:
        super().__init__(term, reader, perform)
        self._transactions = term.transactions
        self._trimming = asyncio.Lock()

    @property
    def last_stable_offset(self) -> int:
        return max(last_stable_offset(self._transactions, self._end_offset), self.start_offset)

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer, at this epoch, has an open transaction here."""
        found = self._transactions.get(producer_id)
        return found is not None and found.producer_epoch == producer_epoch

    @property
    def transactions(self) -> OpenTransactions:
        """Open transactions, oldest first."""
        return self._transactions

    async def append(self, batches: Sequence[AppendBatch]) -> AppendResult:
        """Store all of `batches` in order, or none; returns once they are acknowledged.

        Raises Fenced (another broker leads), StorageFailed (disk), and what `plan_append` raises.
        """
        self._check_open()
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        return cast("AppendResult", await self._perform(Append(self._term, batches, self._advance, future)))

    async def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> bytes:
        self._check_range(offset)
        if offset == self._end_offset:
            return b""
        segments = self._segments()
        return (await self._read(lambda: self._reader.batches(segments, offset, max_bytes, at_least_one)))[0]

    async def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[bytes, Sequence[AbortedTransaction]]:
        self._check_range(offset)
        stable = self.last_stable_offset
        if offset >= stable:
            return b"", ()
        segments = self._segments()
        decided = _up_to(segments, stable)

        def read() -> tuple[bytes, Sequence[AbortedTransaction]]:
            data, next_offset = self._reader.batches(decided, offset, max_bytes, at_least_one)
            return data, self._reader.aborted(segments, offset, next_offset) if data else ()

        return await self._read(read)

    async def size_from(self, offset: int, max_bytes: int, *, committed: bool = False) -> int:
        self._check_range(offset)
        end = self.last_stable_offset if committed else self._end_offset
        if offset >= end:
            return 0
        segments = _up_to(self._segments(), end)
        return await self._read(lambda: self._reader.size(segments, offset, max_bytes))

    async def batch_for_timestamp(self, timestamp_ms: int, from_offset: int = 0) -> bytes | None:
        segments = self._segments()
        return await self._read(lambda: self._reader.first_at_or_after(segments, timestamp_ms, from_offset))

    async def expired_before(self, oldest_ms: int, bytes_max: int) -> int:
        """The start offset that keeps batches not older than `oldest_ms` and the last `bytes_max` (below 0: no limit).

        Drops whole batches, and nothing from the first open transaction on.
        """
        segments, stable = self._segments(), self.last_stable_offset  # keep batches appended during these reads
        kept_from = self.start_offset
        if oldest_ms >= 0:
            first = await self._read(lambda: self._reader.first_to_keep(segments, oldest_ms))
            kept_from = stable if first is None else max(kept_from, first)
        if bytes_max >= 0:
            kept_from = max(kept_from, await self._read(lambda: self._reader.start_of_last(segments, bytes_max)))
        return min(kept_from, stable)

    async def trim(self, before: int) -> int:
        """Durably delete every record below `before`; returns the new start offset.

        Raises OffsetOutOfRange (above the end), Fenced, StorageFailed; nothing has changed then.
        """
        if before > self._end_offset:
            raise OffsetOutOfRange(f"{self.topic_partition} ends at {self._end_offset}, before {before}")
        async with self._trimming:
            self._check_open()
            if before > self.start_offset:
                chain, start = trimmed(self._term.chain, self._term.start_offset, before)
                future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
                await self._perform(Trim(self._term, chain, start, future))
            return self.start_offset

    async def largest_timestamp(self) -> int:
        segments = self._segments()
        return await self._read(lambda: self._reader.largest_timestamp(segments))

    def _advance(self, end_offset: int, transactions: OpenTransactions) -> None:
        if end_offset > self._end_offset:
            self._end_offset, self._transactions = end_offset, transactions
            self._call_back()


def _up_to(segments: Chain, end: int) -> Chain:
    return tuple(replace(segment, end=min(segment.end, end)) for segment in segments if segment.start < end)


class KeyValueLog(ReadableLog):
    """One partition of key-value pairs that keeps only the newest value of each key, as a compacted topic does.

    Each write of a pair gets the next offset and frees the key's previous one. So a reader sees each key's newest value
    or tombstone at growing offsets, and skips values that have been overwritten.
    """

    def __init__(self, term: Term, reader: Reader, perform: Perform, index: Callable[[], Awaitable[None]]) -> None:
        """`index` is awaited before the first read by offset."""
        super().__init__(term, reader, perform)
        self._index = index

    async def upsert(self, pairs: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int = -1) -> None:
        """Store all of the pairs, in this order, or none; None deletes. Returns once acknowledged: it survives kill -9.

        `timestamp_ms` is epoch milliseconds. Raises Fenced (another broker leads), StorageFailed (disk).
        """
        self._check_open()
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        await self._perform(Upsert(self._term, pairs, timestamp_ms, self._advance, future))

    async def pages(self) -> Sequence[Iterable[tuple[bytes, bytes]]]:
        """Every pair, in pages of some hundreds that are unpacked on iteration; no tombstones.

        Raises Fenced (after `close`), StorageFailed.
        """
        term = self._term
        return await self._read(lambda: self._reader.pairs(term.file, term.term))

    async def items(self) -> list[tuple[bytes, bytes]]:
        """All of `pages`, ordered by key."""
        return sorted(pair for page in await self.pages() for pair in page)

    async def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> bytes:
        self._check_range(offset)
        if offset == self._end_offset:
            return b""
        await self._index()
        term, end = self._term, self._end_offset
        batches = PairBatches(self.epochs, max_bytes, at_least_one)
        return await self._read(lambda: self._reader.pairs_from(term.file, term.term, offset, end, batches))

    async def size_from(self, offset: int, max_bytes: int, *, committed: bool = False) -> int:
        self._check_range(offset)
        if offset == self._end_offset:
            return 0
        await self._index()
        term, end = self._term, self._end_offset
        return await self._read(lambda: self._reader.size_of_pairs(term.file, term.term, offset, end, max_bytes))

    async def batch_for_timestamp(self, timestamp_ms: int, from_offset: int = 0) -> bytes | None:
        term, end = self._term, self._end_offset
        batches = PairBatches(self.epochs, 0, at_least_one=True)

        def found() -> bytes | None:
            pair = self._reader.first_pair_at_or_after(term.file, term.term, (from_offset, end), timestamp_ms)
            return None if pair is None else batches.of([pair])

        return await self._read(found)

    async def largest_timestamp(self) -> int:
        term, end = self._term, self._end_offset
        return await self._read(lambda: self._reader.largest_timestamp_of_pairs(term.file, term.term, end))

    def _advance(self, end_offset: int) -> None:
        if end_offset > self._end_offset:
            self._end_offset = end_offset
            if self._callbacks:
                self._call_back()
