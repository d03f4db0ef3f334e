"""Turns pairs into record batches of format 2 for Fetch, as the coordinator of a Kafka broker writes them.

No compression, no producer, CreateTime (DefaultRecordBatch; CoordinatorRuntime of Kafka 4.1 writes such). Pairs
are a compacted log: the offset of an overwritten pair is gone, so offsets in a batch may have gaps.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from aiokafka.record._crecords import DefaultRecordBatchBuilder

from kernel.records.batches import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Overhead of a batch, and the largest overhead of a record, besides key and value.
BATCH_BYTES, RECORD_BYTES_MAX = 61, 36


class StoredPair(NamedTuple):
    """One row; `value` None is a tombstone."""

    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None

    @property
    def size_max(self) -> int:
        """The most bytes that the pair takes in a batch."""
        return RECORD_BYTES_MAX + len(self.key) + len(self.value or b"")


@dataclass(frozen=True, slots=True)
class PairBatches:
    """The pairs for one response: at most `bytes_max`, or one pair of any size with `at_least_one`.

    `epochs` are (leader epoch, its first offset), ascending; each gets a batch.
    """

    epochs: Sequence[tuple[int, int]]
    bytes_max: int
    at_least_one: bool

    def of(self, pairs: Iterable[StoredPair]) -> bytes:
        """`pairs` ascend by offset; consumes no more of them than fit."""
        return b"".join(_batch(list(run), epoch) for epoch, run in groupby(self._fitting(pairs), self._epoch_of))

    def _fitting(self, pairs: Iterable[StoredPair]) -> Iterator[StoredPair]:
        room, epoch, is_first = self.bytes_max, -1, True
        for pair in pairs:
            if (newer := self._epoch_of(pair)) != epoch:
                room, epoch = room - BATCH_BYTES, newer
            room -= pair.size_max
            if room < 0 and not (is_first and self.at_least_one):
                return
            is_first = False
            yield pair

    def _epoch_of(self, pair: StoredPair) -> int:
        position = bisect_right(self.epochs, pair.offset, key=lambda epoch: epoch[1])
        return self.epochs[max(position - 1, 0)][0]


def _batch(pairs: Sequence[StoredPair], leader_epoch: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**31 - 1,  # the caller decides how much goes into a batch
    )
    base = pairs[0].offset
    for pair in pairs:
        builder.append(pair.offset - base, pair.timestamp_ms, pair.key, pair.value, [])
    return placed(bytes(builder.build()), base, leader_epoch)
