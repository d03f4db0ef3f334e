"""A group as its coordinator hands it to an assignor: integer arrays, in the orders in which Kafka iterates.

A partition is an index: all existing topics that a member subscribes to, one after the other (`TopicGrid`). A member
is a row, in the hash order of the member ids. The target assignment, the present one and the next, is an array over
partitions that holds rows. No loop iterates over partitions.

A table that is filled as a copy of another has the size of one that grew: since Java 19. Before, copies of 12, 24, 48,
... entries were twice as large, so that Kafka 4.1.1 on Java 17 may give up other partitions of such a set.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.hash_order import table_size
from kernel.assignors.subscription import java_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from numpy.typing import NDArray

#: The owner of a partition without an owner.
NOBODY = -1


@functools.cache
def uuid_spread(topic_id: UUID) -> int:
    """HashMap.hash of a Kafka Uuid."""
    both = topic_id.int >> 64 ^ topic_id.int & 0xFFFFFFFFFFFFFFFF
    hashed = (both >> 32 ^ both) & 0xFFFFFFFF
    return hashed ^ hashed >> 16


def uuid_order(topic_id: UUID) -> tuple[int, int]:
    """The key of Uuid.compareTo, whose two halves are signed."""
    return _signed(topic_id.int >> 64), _signed(topic_id.int & 0xFFFFFFFFFFFFFFFF)


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


@dataclass(frozen=True, slots=True)
class TopicGrid:
    """The existing subscribed topics: partition p of the t-th topic has the index `starts[t] + p`."""

    ids: tuple[UUID, ...]  #: in the iteration order of a HashSet
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]  #: [T + 1]; the last entry is the number of partitions
    spreads: NDArray[np.int64]  #: hashes of the ids
    ranks: NDArray[np.int64]  #: in which order topics were put into a member's map, for those in one bucket

    @classmethod
    def of(
        cls, topics: Sequence[tuple[UUID, int]], names: int | None = None, ranks: Mapping[UUID, int] | None = None
    ) -> TopicGrid:
        """Of (id, number of partitions) in the order of filling; `names` counts names of missing topics too."""
        buckets = table_size(len(topics) if names is None else names)
        ordered = sorted(topics, key=lambda topic: uuid_spread(topic[0]) & (buckets - 1))
        sizes = np.array([size for _, size in ordered], np.int64)
        starts = np.zeros(len(ordered) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        ids = tuple(topic_id for topic_id, _ in ordered)
        places = range(len(ids)) if ranks is None else [ranks[topic_id] for topic_id in ids]
        spreads = [uuid_spread(topic_id) for topic_id in ids]
        return cls(ids, sizes, starts, np.array(spreads, np.int64), np.array(places, np.int64))

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

    @property
    def by_name(self) -> NDArray[np.int64]:
        """Rows by instance id, then those without one by member id: RangeAssignor's order."""
        keys = [
            (1, java_order(member)) if instance is None else (0, java_order(instance))
            for member, instance in zip(self.members, self.instance_ids, strict=True)
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def loads_of(owner: NDArray[np.int32], members: int) -> NDArray[np.int64]:
    """How many partitions each row has."""
    return np.bincount(owner + 1, minlength=members + 1)[1:]
