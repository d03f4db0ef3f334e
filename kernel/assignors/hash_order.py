"""The iteration order of java.util.HashMap and HashSet, on which assignments of Kafka's assignors depend.

A table has a power of two of buckets, at least 16, and doubles when it is more than three quarters full. Iteration
goes bucket by bucket, and within a bucket in the order of insertion. Growing keeps that order, and a table never
shrinks. So the order follows from the hashes, the order of insertion and the largest size so far. A bucket with nine
entries changes this: see `tree_bins`, for strings. For partitions it is ignored: it would take nine partitions in one
bucket that moved from one member to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.tree_bins import SMALLEST_TABLE, TREEIFY_THRESHOLD, has_full_bucket, iteration_order, spreads
from kernel.java_hash import java_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.values import TopicPartition


def partition_hash(partition: TopicPartition) -> int:
    """TopicPartition.hashCode of kafka-clients, modulo 2**32."""
    return (31 * (31 + partition.partition) + java_hash(partition.topic)) & 0xFFFFFFFF


def table_size(entries: int) -> int:
    """The number of buckets of a table after this many insertions."""
    size = SMALLEST_TABLE
    while entries * 4 > size * 3:
        size *= 2
    return size


def bucket(hashed: int, size: int) -> int:
    """The bucket of an entry in a table of `size` buckets: the high bits of the hash are folded into the low ones."""
    hashed &= 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & (size - 1)


def texts_in_hash_order(texts: Iterable[str]) -> list[str]:
    """Distinct strings in the iteration order of a table that was filled in the given order."""
    given = list(texts)
    if len(given) <= TREEIFY_THRESHOLD:  # arrays would cost more
        return iteration_order(given)
    hashes = spreads(given)
    if has_full_bucket(hashes):
        return iteration_order(given)
    buckets = hashes & (table_size(len(given)) - 1)
    return [given[at] for at in np.argsort(buckets, kind="stable").tolist()]


class PartitionTable:
    """A HashSet of partitions that provides only its first entry."""

    def __init__(self) -> None:
        self._buckets: dict[TopicPartition, int] = {}
        self._size = SMALLEST_TABLE

    def __len__(self) -> int:
        return len(self._buckets)

    def add(self, partition: TopicPartition) -> None:
        self._buckets.setdefault(partition, partition_hash(partition))
        self._size = max(self._size, table_size(len(self._buckets)))

    def remove(self, partition: TopicPartition) -> None:
        del self._buckets[partition]

    def first(self) -> TopicPartition:
        return min(self._buckets, key=lambda partition: bucket(self._buckets[partition], self._size))
