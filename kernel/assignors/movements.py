"""The moves of a run of the general sticky algorithm, kept to avoid moving partitions back and forth.

If a partition of a topic moved from A to B, and another one of that topic should now move from B to A, the first one
moves back instead: the result is as balanced, with one move less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.hash_order import PartitionTable

if TYPE_CHECKING:
    from kernel.values import TopicPartition


class Movements:
    """The original and current owner of each moved partition, and for each topic the partitions of each such pair."""

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], PartitionTable]] = {}

    def instead_of(self, tp: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """The partition to move to `taker` when `tp` would move there from `giver`."""
        pairs = self._by_topic.get(tp.topic, {})
        origin = self._moved[tp][0] if tp in self._moved else giver
        opposite = pairs.get((taker, origin))
        return tp if opposite is None else opposite.first()

    def record(self, tp: TopicPartition, giver: str, taker: str) -> None:
        """Record that `tp` moved from `giver` to `taker`."""
        origin = self._forget(tp) if tp in self._moved else giver
        if origin != taker:
            self._moved[tp] = (origin, taker)
            self._by_topic.setdefault(tp.topic, {}).setdefault((origin, taker), PartitionTable()).add(tp)

    def _forget(self, tp: TopicPartition) -> str:
        pair = self._moved.pop(tp)
        pairs = self._by_topic[tp.topic]
        pairs[pair].remove(tp)
        if not len(pairs[pair]):
            del pairs[pair]
        return pair[0]
