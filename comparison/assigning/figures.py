"""How even an assignment is, and what it moved, in the words of the metrics of runs (`comparison.results.metrics`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.assigning.minimum import fewest_moves
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.assigning.strategies import Owned


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One moment of a group with one strategy. The last four count partitions; `stopped` counts each time."""

    fewest: int  #: partitions of the member with the fewest; members without any count
    most: int
    moved: int  #: partitions with another owner than before; those that had none are not counted
    forced: int  #: of these, those whose former owner has left or unsubscribed
    minimum: int | None  #: the fewest that had to move to balance the group; None if that is not known
    stopped: int  #: taken from members that stayed

    @property
    def balance(self) -> int:
        """The most partitions of a member less the fewest."""
        return self.most - self.fewest

    @property
    def unnecessary(self) -> int | None:
        """How many more moved than had to."""
        return None if self.minimum is None else max(0, self.moved - self.minimum)


def owner_of(owned: Owned) -> dict[TopicPartition, str]:
    """{partition: its owner}."""
    return {tp: owner for owner, tps in owned.items() for tp in tps}


def unowned(owned: Owned, sizes: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    """The partitions that nobody owns, in order."""
    known = owner_of(owned)
    every = (TopicPartition(topic, number) for topic in sorted(sizes) for number in range(sizes[topic]))
    return tuple(tp for tp in every if tp not in known)


def figures_of(
    sizes: Mapping[str, int], topics_of: Mapping[str, Sequence[str]], before: Owned, after: Owned, stopped: int = 0
) -> Figures:
    """The figures of an assignment. `before` names owners as `after` does: a restarted one by its new name."""
    had, has = owner_of(before), owner_of(after)
    moved = [tp for tp, owner in has.items() if had.get(tp, owner) != owner]
    loads = [len(tps) for tps in after.values()]
    return Figures(
        fewest=min(loads, default=0),
        most=max(loads, default=0),
        moved=len(moved),
        forced=sum(tp.topic not in topics_of.get(had[tp], ()) for tp in moved),
        minimum=fewest_moves(sizes, topics_of, had) if had else 0,
        stopped=stopped,
    )
