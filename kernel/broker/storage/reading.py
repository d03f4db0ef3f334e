"""Reads record batches and pairs across the files of a log's segments, on separate threads."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

from kernel.broker.storage.chain import Segment, from_offset
from kernel.broker.storage.files import FOLDER, ReaderPool, faults_named, has_transactions
from kernel.broker.storage.pair_batches import BATCH_BYTES, StoredPair
from kernel.records.transactions import AbortedTransaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from kernel.broker.storage.pair_batches import PairBatches
    from kernel.platform.threads import Threads

_THREADS = 2
#: Pairs per page. SQLite makes a page in one step, in hexadecimal and separated by blanks, without the interpreter
#: lock; a thread that reads row by row would need the lock for each row, and a busy event loop hands it over slowly.
_PAGE_PAIRS = 500
#: Larger values are read one by one, or a page could exceed SQLite's limit for a text.
_PACKED_BYTES_MAX = 64 * 1024
_PAGE = (
    "SELECT group_concat(hex(key) || ' ' || hex(value), ' '), max(key) FROM"
    f" (SELECT key, value FROM pair WHERE term = ?{{behind}} AND length(value) <= {_PACKED_BYTES_MAX}"
    f" ORDER BY key LIMIT {_PAGE_PAIRS})"
)
_LARGEST = "SELECT max(max_timestamp_ms) FROM batch WHERE term = ? AND base_offset < ? AND last_offset >= ?"
_LARGE = f"SELECT key, value FROM pair WHERE term = ? AND length(value) > {_PACKED_BYTES_MAX}"

#: Markers at or after the segment's end are ignored, like batches (see `_rows_of` below).
_ABORTED = (
    "SELECT producer_id, first_offset, last_offset, last_stable_offset FROM aborted"
    " WHERE term = ? AND last_offset >= ? AND last_offset < ? ORDER BY last_offset"
)


#: Pairs per read by offset: putting them into a batch takes the interpreter lock.
PAIRS_READ_MAX = 1_000
_ROWS = "SELECT at_offset, timestamp_ms, key, value FROM pair WHERE term = ?"
_BY_OFFSET = f"{_ROWS} AND at_offset >= ? AND at_offset < ? ORDER BY at_offset LIMIT {PAIRS_READ_MAX}"
_AT_OR_AFTER = f"{_ROWS} AND at_offset >= ? AND at_offset < ? AND timestamp_ms >= ? ORDER BY at_offset LIMIT 1"


class Pairs:
    """A page of pairs, unpacked on iteration."""

    __slots__ = ("_packed",)

    def __init__(self, packed: str) -> None:
        self._packed = packed

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        fields = map(bytes.fromhex, self._packed.split(" "))
        return zip(fields, fields, strict=True)


class Reader:
    """Runs reads on its threads, each with its own read connections."""

    def __init__(self, data_dir: Path, name: str, threads: Threads) -> None:
        self._folder = data_dir / FOLDER
        self._local = threading.local()
        self._pools: list[ReaderPool] = []
        self._threads = threads.pool(_THREADS, f"storage-read-{name}")
        self.run = self._threads.run

    def batches(
        self, segments: Sequence[Segment], offset: int, max_bytes: int, at_least_one: bool
    ) -> tuple[bytes, int]:
        """Whole batches from the one that contains `offset`, across `segments`, at most `max_bytes`.

        Also returns the offset after them; `offset` if there are none.
        """
        found: list[bytes] = []
        size = 0
        next_offset = offset
        with faults_named("read records"):
            for segment in from_offset(segments, offset):
                # Closed immediately: a half-read cursor would keep its snapshot open.
                with closing(_segment_batches(self._pool().get(segment.file), segment, offset)) as rows:
                    for payload, last_offset in rows:
                        if size + len(payload) > max_bytes and (found or not at_least_one):
                            return b"".join(found), next_offset
                        found.append(payload)
                        size += len(payload)
                        next_offset = last_offset + 1
        return b"".join(found), next_offset

    def aborted(self, segments: Sequence[Segment], offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Transactions aborted at or after `offset` that began before `end_offset`, in the order of their markers.

        Markers may lie after `end_offset`, so this searches on until no later one can have begun before it.
        """
        found: list[AbortedTransaction] = []
        with faults_named("look for aborted transactions"):
            for segment in from_offset(segments, offset):
                connection = self._pool().get(segment.file)
                if not has_transactions(connection):
                    continue
                with closing(connection.execute(_ABORTED, (segment.term, offset, segment.end))) as rows:
                    for aborted in (AbortedTransaction(*row) for row in rows):
                        if aborted.first_offset < end_offset:
                            found.append(aborted)
                        if aborted.last_stable_offset >= end_offset:
                            return found
        return found

    def size(self, segments: Sequence[Segment], offset: int, max_bytes: int) -> int:
        """Bytes of the batches from the one that contains `offset`, counted up to `max_bytes`.

        SQLite knows the length of a value without reading it.
        """
        size = 0
        with faults_named("count records"):
            for segment in from_offset(segments, offset):
                lengths = _segment_batches(self._pool().get(segment.file), segment, offset, "length(payload)")
                with closing(lengths):
                    for (length,) in lengths:
                        size += length
                        if size >= max_bytes:
                            return max_bytes
        return size

    def first_at_or_after(self, segments: Sequence[Segment], timestamp_ms: int, from_offset: int = 0) -> bytes | None:
        """The first batch that ends at or after `from_offset` and has a timestamp of at least `timestamp_ms`."""
        with faults_named("look for a timestamp"):
            for segment in segments:
                row = (
                    self._pool()
                    .get(segment.file)
                    .execute(
                        "SELECT payload FROM batch WHERE term = ? AND base_offset < ? AND max_timestamp_ms >= ?"
                        " AND last_offset >= ? ORDER BY base_offset LIMIT 1",
                        (segment.term, segment.end, timestamp_ms, max(segment.start, from_offset)),
                    )
                    .fetchone()
                )
                if row is not None:
                    payload: bytes = row[0]
                    return payload
        return None

    def first_to_keep(self, segments: Sequence[Segment], oldest_ms: int) -> int | None:
        """Offset of the first batch that is not older than `oldest_ms` or has no timestamp; None if all are older."""
        query = (
            "SELECT base_offset FROM batch WHERE term = ? AND base_offset < ? AND last_offset >= ?"
            " AND (max_timestamp_ms >= ? OR max_timestamp_ms < 0) ORDER BY base_offset LIMIT 1"
        )
        with faults_named("look for records that are too old"):
            for segment in segments:
                parameters = (segment.term, segment.end, segment.start, oldest_ms)
                row = self._pool().get(segment.file).execute(query, parameters).fetchone()
                if row is not None:
                    return int(row[0])
        return None

    def start_of_last(self, segments: Sequence[Segment], bytes_max: int) -> int:
        """The latest start offset that still keeps at least `bytes_max` bytes of whole batches.

        As Kafka drops segments: the oldest goes as long as the rest has that many bytes (UnifiedLog).
        """
        size = 0
        start = segments[-1].end if segments else 0
        query = (
            "SELECT base_offset, length(payload) FROM batch WHERE term = ? AND base_offset < ? AND last_offset >= ?"
            " ORDER BY base_offset DESC"
        )
        with faults_named("measure records"):
            for segment in reversed(segments):
                parameters = (segment.term, segment.end, segment.start)
                with closing(self._pool().get(segment.file).execute(query, parameters)) as rows:
                    for base_offset, length in rows:
                        if size >= bytes_max:
                            return start
                        size += length
                        start = base_offset
        return start

    def largest_timestamp(self, segments: Sequence[Segment]) -> int:
        """The largest timestamp of all batches; -1 if there are none. Scans each segment once, without the payloads."""
        newest = -1
        with faults_named("look for the largest timestamp"):
            for segment in segments:
                ((found,),) = (
                    self._pool().get(segment.file).execute(_LARGEST, (segment.term, segment.end, segment.start))
                )
                newest = newest if found is None else max(newest, found)
        return newest

    def pairs(self, file: str, term: int) -> list[Iterable[tuple[bytes, bytes]]]:
        """All pairs of a term, from one snapshot: pages of small ones in the order of keys, then the large ones."""
        pages: list[Iterable[tuple[bytes, bytes]]] = []
        with faults_named("read pairs"):
            connection = self._pool().get(file)
            connection.execute("BEGIN")
            try:
                last: bytes | None = None
                while True:
                    behind, parameters = ("", (term,)) if last is None else (" AND key > ?", (term, last))
                    packed, last = connection.execute(_PAGE.format(behind=behind), parameters).fetchone()
                    if packed is None:
                        break
                    pages.append(Pairs(packed))
                pages.append(connection.execute(_LARGE, (term,)).fetchall())
                return pages
            finally:
                connection.execute("COMMIT")

    def pairs_from(self, file: str, term: int, offset: int, end: int, batches: PairBatches) -> bytes:
        """Pairs and tombstones with offsets from `offset` to before `end`, at most `PAIRS_READ_MAX`."""
        with faults_named("read pairs by offset"):
            rows = self._pool().get(file).execute(_BY_OFFSET, (term, offset, end))
            with closing(rows):  # a half-read cursor would keep its snapshot open
                return batches.of(StoredPair(*row) for row in rows)

    def size_of_pairs(self, file: str, term: int, offset: int, end: int, bytes_max: int) -> int:
        """The size of what `pairs_from` returns, at most, counted up to `bytes_max`."""
        size = BATCH_BYTES
        with faults_named("measure pairs"):
            rows = self._pool().get(file).execute(_BY_OFFSET, (term, offset, end))
            with closing(rows):
                for row in rows:
                    size += StoredPair(*row).size_max
                    if size >= bytes_max:
                        break
        return size

    def first_pair_at_or_after(
        self, file: str, term: int, offsets: tuple[int, int], timestamp_ms: int
    ) -> StoredPair | None:
        """The first pair, by offset, in the given range that was written at that time or later."""
        with faults_named("look for a timestamp"):
            row = self._pool().get(file).execute(_AT_OR_AFTER, (term, *offsets, timestamp_ms)).fetchone()
        return None if row is None else StoredPair(*row)

    def largest_timestamp_of_pairs(self, file: str, term: int, end: int) -> int:
        """The largest timestamp of pairs before `end`; -1 if there are none."""
        newest = "SELECT coalesce(max(timestamp_ms), -1) FROM pair WHERE term = ? AND at_offset < ?"
        with faults_named("look for the largest timestamp"):
            return int(self._pool().get(file).execute(newest, (term, end)).fetchone()[0])

    def close(self) -> None:
        """Wait for running reads."""
        self._threads.close()
        for pool in self._pools:
            pool.close()

    def _pool(self) -> ReaderPool:
        pool: ReaderPool | None = getattr(self._local, "pool", None)
        if pool is None:
            pool = self._local.pool = ReaderPool(self._folder)
            self._pools.append(pool)
        return pool


def _segment_batches(
    connection: sqlite3.Connection, segment: Segment, offset: int, columns: str = "payload, last_offset"
) -> sqlite3.Cursor:
    """`columns` in order, from the batch that contains `offset`, or from the segment's start if that is later.

    Ignores everything at or after `segment.end`, whatever its writer has committed there since.
    """
    return connection.execute(
        f"SELECT {columns} FROM batch WHERE term = ?1 AND base_offset < ?3 AND base_offset >= coalesce("
        " (SELECT max(base_offset) FROM batch WHERE term = ?1 AND base_offset <= ?2), ?2) ORDER BY base_offset",
        (segment.term, offset, segment.end),
    )
