"""The two kinds of log that storage hands out, as the event loop sees them; both are read by offset."""

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
#: Hand a job to the writer and wait for its answer; it waits first while too much is queued.
Perform = Callable[["Job"], Awaitable[object]]


class Log:
    """One term of one partition, until it is closed; what both kinds have in common."""

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
        """Why nothing can be appended any more; None while it can (as far as is known before trying)."""
        return self._closed or self._term.closed

    def close(self, reason: str) -> None:
        """Nothing is accepted from now on; what is queued is refused or, if it was stored before, acknowledged."""
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
        return await asyncio.get_running_loop().run_in_executor(self._reader.executor, read)


class ReadableLog(Log):
    """A log that Fetch and ListOffsets read: offsets, what is acknowledged of them, and batches."""

    def __init__(self, term: Term, reader: Reader, perform: Perform) -> None:
        super().__init__(term, reader, perform)
        self._end_offset = term.end_offset
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def start_offset(self) -> int:
        return self._term.log_start_offset

    @property
    def end_offset(self) -> int:
        """The next offset to be given. Everything below is acknowledged: high watermark and log end are one."""
        return self._end_offset

    @property
    def last_stable_offset(self) -> int:
        """Everything below is decided: the first offset of the oldest open transaction, or the end."""
        return self._end_offset

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """(leader epoch, first offset written at it), ascending: what OffsetForLeaderEpoch answers from."""
        return tuple((segment.leader_epoch, segment.start) for segment in self._segments())

    async def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> bytes:
        """Whole batches from the one that holds `offset` on, so the first may begin before it; b"" at the end.

        One batch is returned however large it is, unless `at_least_one` is false (Fetch: not the first partition
        of the response). Raises OffsetOutOfRange, StorageFailed, Fenced (after `close`).
        """
        raise NotImplementedError

    async def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[bytes, Sequence[AbortedTransaction]]:
        """As `read`, up to the last stable offset; with the aborted transactions whose batches are to be left out.

        They are in the order of their markers, and reach from `offset` to the end of what was read.
        """
        return await self.read(offset, max_bytes, at_least_one=at_least_one), ()

    async def size_from(self, offset: int, max_bytes: int, *, committed: bool = False) -> int:
        """The bytes that `read` would find from `offset` on, counted up to `max_bytes` without reading them.

        Of what `read_committed` would find if `committed`. Raises as `read`.
        """
        raise NotImplementedError

    async def batch_for_timestamp(self, timestamp_ms: int, from_offset: int = 0) -> bytes | None:
        """The first batch whose largest timestamp is at least `timestamp_ms`; the record is somewhere inside.

        Of those that end at `from_offset` or behind it.
        """
        raise NotImplementedError

    async def largest_timestamp(self) -> int:
        """Of all records, by the headers of their batches, epoch ms; -1 for an empty log."""
        raise NotImplementedError

    def on_advance(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the event loop whenever `end_offset` grows, or the log closes; returns the cancel."""
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
            except Exception as bug:  # noqa: BLE001 - the waiter's own: nothing of the log's is at stake
                log_stopped(f"one who waits for records of {self.topic_partition}", bug)

    def _check_range(self, offset: int) -> None:
        if not self.start_offset <= offset <= self._end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition} has offsets {self.start_offset} to {self._end_offset}, {offset} was asked for"
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
        """Whether this incarnation of a producer has a transaction open here."""
        found = self._transactions.get(producer_id)
        return found is not None and found.producer_epoch == producer_epoch

    @property
    def transactions(self) -> OpenTransactions:
        """What is open, the oldest first."""
        return self._transactions

    async def append(self, batches: Sequence[AppendBatch]) -> AppendResult:
        """Store all of `batches` in order, or none; returns when they are acknowledged.

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
        """Where a log begins that keeps its batches from `oldest_ms` on (below 0: all) and `bytes_max` (below 0: all).

        Whole batches from the start on; those of an open transaction, and what is behind it, stay.
        """
        segments, stable = self._segments(), self.last_stable_offset  # what comes while these are read is kept
        kept_from = self.start_offset
        if oldest_ms >= 0:
            first = await self._read(lambda: self._reader.first_to_keep(segments, oldest_ms))
            kept_from = stable if first is None else max(kept_from, first)
        if bytes_max >= 0:
            kept_from = max(kept_from, await self._read(lambda: self._reader.start_of_last(segments, bytes_max)))
        return min(kept_from, stable)

    async def trim(self, before: int) -> int:
        """Give up every record below `before`, durably; the offset at which the log begins now.

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
    """One partition of pairs, of which only the newest of a key is kept: what a compacted topic comes to.

    Each write of a pair gets the next offset, and the key's former one goes. So whoever reads along sees every key's
    newest value or tombstone at a growing offset, and what was written again meanwhile only once.
    """

    def __init__(self, term: Term, reader: Reader, perform: Perform, index: Callable[[], Awaitable[None]]) -> None:
        """`index` is awaited before the first read by offset."""
        super().__init__(term, reader, perform)
        self._index = index

    async def upsert(self, pairs: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int = -1) -> None:
        """All or none, in this order; a value of None deletes. Returns when acknowledged: it survives kill -9 then.

        `timestamp_ms` is epoch milliseconds. Raises Fenced (another broker leads), StorageFailed (disk).
        """
        self._check_open()
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        await self._perform(Upsert(self._term, pairs, timestamp_ms, self._advance, future))

    async def pages(self) -> Sequence[Iterable[tuple[bytes, bytes]]]:
        """Every pair, some hundreds at once, which are unpacked when they are gone through; no tombstones.

        Raises Fenced (after `close`), StorageFailed.
        """
        term = self._term
        return await self._read(lambda: self._reader.pairs(term.file, term.term))

    async def items(self) -> list[tuple[bytes, bytes]]:
        """As `pages`, at once, ordered by key."""
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
