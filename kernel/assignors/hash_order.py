"""The order of java.util.HashMap and HashSet, where Kafka's assignors let it decide who keeps what.

A table has a power of two of buckets, at least 16, and doubles when it is more than three quarters full; a walk
over it goes bucket by bucket, and inside one in the order of insertion. Growing keeps that order, and nothing ever
makes a table smaller. So the order follows from the hashes, the order of insertion and the largest size so far.
From nine entries in one bucket on that is not all; `crowded_table` has the rest, for texts. Nine of the partitions
that went from one member to another would have to fall into one bucket for it to matter to them: not followed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.crowded_table import SMALLEST_TABLE, crowded_order, is_crowded, spreads
from kernel.java_hash import java_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.values import TopicPartition


def partition_hash(partition: TopicPartition) -> int:
    """TopicPartition.hashCode of kafka-clients, modulo 2**32."""
    return (31 * (31 + partition.partition) + java_hash(partition.topic)) & 0xFFFFFFFF


def table_size(entries: int) -> int:
    """Buckets of a table that was filled one by one."""
    size = SMALLEST_TABLE
    while entries * 4 > size * 3:
        size *= 2
    return size


def bucket(hashed: int, size: int) -> int:
    """Where an entry lies in a table of `size` buckets: high bits of the hash are folded into the low ones."""
    hashed &= 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & (size - 1)


def texts_in_hash_order(texts: Iterable[str]) -> list[str]:
    """Distinct strings in the order of a table that was filled in the order given."""
    given = list(texts)
    hashes = spreads(given)
    if is_crowded(hashes):
        return crowded_order(given)
    buckets = hashes & (table_size(len(given)) - 1)
    return [given[at] for at in np.argsort(buckets, kind="stable").tolist()]


class PartitionTable:
    """A HashSet of partitions of which only its first entry is ever asked for."""

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
