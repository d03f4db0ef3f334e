"""A group as its coordinator hands it to an assignor: integer arrays, in the orders in which Kafka iterates.

A partition is an index: all existing topics that a member subscribes to, one after the other (`TopicGrid`). A member
is a row, in the hash order of the member ids. The target assignment, the present one and the next, is an array over
partitions that holds rows. No loop iterates over partitions.

A table that is filled as a copy of another has the size of one that grew: since Java 19. Before, copies of 12, 24, 48,
... entries were twice as large, so that Kafka 4.1.1 on Java 17 may give up other partitions of such a set.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kernel.assignors.hash_order import table_size, texts_in_hash_order
from kernel.assignors.subscription import java_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

#: The owner of a partition without an owner.
NOBODY = -1
#: Of the 16 bytes of a topic's id, as two longs.
_HALVES = struct.Struct(">qq")


@functools.cache
def id_spread(topic_id: bytes) -> int:
    """HashMap.hash of a Kafka Uuid."""
    first, second = _HALVES.unpack(topic_id)
    hashed = (first ^ second ^ (first ^ second) >> 32) & 0xFFFFFFFF
    return int(hashed ^ hashed >> 16)


def ids_in_hash_order(ids: Collection[bytes], entries: int = 0) -> list[bytes]:
    """As a table iterates that was filled in the given order, and once had so many entries."""
    mask = table_size(max(entries, len(ids))) - 1
    return sorted(ids, key=lambda topic_id: id_spread(topic_id) & mask)


def id_order(topic_id: bytes) -> tuple[int, int]:
    """The key of Uuid.compareTo, whose two halves are signed."""
    first, second = _HALVES.unpack(topic_id)
    return first, second


@dataclass(frozen=True, slots=True)
class TopicGrid:
    """The existing subscribed topics: partition p of the t-th topic has the index `starts[t] + p`."""

    ids: tuple[bytes, ...]  #: in the iteration order of a HashSet
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]  #: [T + 1]; the last entry is the number of partitions
    spreads: NDArray[np.int64]  #: hashes of the ids

    @classmethod
    def of_names(cls, names: Collection[str], known: Mapping[str, tuple[bytes, int]]) -> TopicGrid:
        """Of a member's names, which Kafka keeps in a HashSet that it fills from a sorted record; only some are known.

        The ids are put into a table in the order of that set, and as large as that set.
        """
        return cls.of([known[name] for name in texts_in_hash_order(sorted(names)) if name in known], len(names))

    @classmethod
    def of(cls, topics: Sequence[tuple[bytes, int]], names: int | None = None) -> TopicGrid:
        """Of (id, number of partitions) in the order of filling; `names` counts names of missing topics too."""
        mask = table_size(len(topics) if names is None else names) - 1
        ordered = sorted(topics, key=lambda topic: id_spread(topic[0]) & mask)
        sizes = np.array([size for _, size in ordered], np.int64)
        starts = np.zeros(len(ordered) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        ids = tuple(topic_id for topic_id, _ in ordered)
        spreads = [id_spread(topic_id) for topic_id in ids]
        return cls(ids, sizes, starts, np.array(spreads, np.int64))

    @property
    def partitions(self) -> int:
        return int(self.starts[-1])

    def topics_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The position of each partition's topic, for ascending indices."""
        return np.repeat(np.arange(len(self.ids)), np.diff(np.searchsorted(indices, self.starts)))


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """What an assignor decides from."""

    members: Sequence[str]  #: ids in hash order; a member's row is its place here
    instance_ids: Sequence[str | None]  #: by row
    grid: TopicGrid
    subscribed: NDArray[np.bool_] | None  #: [M, T]; None if all members subscribe to the same topics
    owner: NDArray[np.int32]  #: rows by partition: the present target assignment
    topics_of: Callable[[int], Iterable[bytes]]  #: those that a row has, in the order in which they came into its map
    others: Mapping[int, int] = field(default_factory=dict)  #: how many of these the grid lacks, by row, if any

    @property
    def by_name(self) -> NDArray[np.int64]:
        """Rows by instance id, then those without one by member id: RangeAssignor's order."""
        keys = list(map(name_key, self.members, self.instance_ids))
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def name_key(member: str, instance: str | None) -> tuple[int, Any]:
    return (1, java_order(member)) if instance is None else (0, java_order(instance))


def loads_of(owner: NDArray[np.int32], members: int) -> NDArray[np.int64]:
    """How many partitions each row has."""
    return np.bincount(owner + 1, minlength=members + 1)[1:]
