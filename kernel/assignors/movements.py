"""What one run of the general sticky algorithm has moved so far, to keep it from moving things back and forth.

If a partition of a topic went from A to B and now another of that topic is to go from B to A, then the first one
goes back instead: the result is as even, and one partition less has moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.hash_order import PartitionTable

if TYPE_CHECKING:
    from kernel.values import TopicPartition


class Movements:
    """Per partition where it came from at first and where it is; per topic what went from whom to whom."""

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], PartitionTable]] = {}

    def instead_of(self, tp: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """What should move to `taker` when `tp` is about to leave `giver` for it."""
        pairs = self._by_topic.get(tp.topic, {})
        origin = self._moved[tp][0] if tp in self._moved else giver
        opposite = pairs.get((taker, origin))
        return tp if opposite is None else opposite.first()

    def record(self, tp: TopicPartition, giver: str, taker: str) -> None:
        """`tp` has gone from `giver` to `taker`."""
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
