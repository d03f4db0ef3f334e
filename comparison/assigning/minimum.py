"""The fewest partitions that have to move so that a group is as even as its subscriptions allow.

As even as possible: the sum of the squared loads is the smallest. If all members subscribe to the same topics, the
larger shares go to the members that had most, and each keeps up to its share. Otherwise this is a problem of cheapest
flows: partitions go round in circles from member to member, and to the place of one that has too few, as long as a
circle makes the group more even, or as even with fewer moves. When there is none, the moves are the fewest.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kernel.values import TopicPartition

#: Additions until the search for circles is given up: less than half a second.
_WORK_MAX = 20_000_000
_NEVER = np.int64(2**60)


def fewest_moves(
    sizes: Mapping[str, int], topics_of: Mapping[str, Sequence[str]], had: Mapping[TopicPartition, str]
) -> int | None:
    """Of the partitions that had an owner, how many need another one; None if the group is too large to know.

    A former owner need not be in `topics_of`, the {owner: its topics} of now. A partition whose topic has no
    subscriber any more does not move.
    """
    may_own = {owner: frozenset(topics) for owner, topics in topics_of.items()}
    subscribed = frozenset[str]().union(*may_own.values())
    wanted = {tp: owner for tp, owner in had.items() if tp.topic in subscribed}
    keepable = Counter((tp.topic, owner) for tp, owner in wanted.items() if tp.topic in may_own.get(owner, ()))
    if all(topics == subscribed for topics in may_own.values()):
        loads = Counter[str]()
        for (_, owner), count in keepable.items():
            loads[owner] += count
        total = sum(sizes.get(topic, 0) for topic in subscribed)
        share, larger = divmod(total, max(1, len(topics_of)))
        kept = sum(min(count, share + (place < larger)) for place, (_, count) in enumerate(loads.most_common()))
        return len(wanted) - kept
    topics = sorted(topic for topic in subscribed if sizes.get(topic, 0))
    members = sorted(may_own)
    if len(topics) * len(members) ** 2 > _WORK_MAX:
        return None
    may = np.array([[topic in may_own[member] for member in members] for topic in topics], np.bool_)
    held = np.array([[keepable[topic, member] for member in members] for topic in topics], np.int64)
    kept_most = _Flow(np.array([sizes[topic] for topic in topics]), may, held).settle() if topics else 0
    return None if kept_most is None else len(wanted) - kept_most


class _Flow:
    """Numbers of partitions by topic and member: `held` before, `now` while they are evened out."""

    def __init__(self, sizes: NDArray[np.int64], may: NDArray[np.bool_], held: NDArray[np.int64]) -> None:
        self._may, self._held = may, held
        self._now = held.copy()
        self._loads = held.sum(axis=0)
        #: A step towards evenness outweighs all moves.
        self._weight = 2 * int(sizes.sum()) + 1
        for topic, free in enumerate(sizes - held.sum(axis=1)):
            takers = np.flatnonzero(may[topic])
            for _ in range(int(free)):
                taker = takers[np.argmin(self._loads[takers])]
                self._now[topic, taker] += 1
                self._loads[taker] += 1

    def settle(self) -> int | None:
        """The partitions that stay; None if that takes too long to find out."""
        topics, members = self._may.shape
        work = 0
        while work < _WORK_MAX:
            costs, through = self._costs()
            circle, passes = _negative_circle(costs)
            if not circle:
                return int(np.minimum(self._now, self._held).sum())
            for giver, taker in zip(circle, [*circle[1:], circle[0]], strict=True):
                if giver < members and taker < members:
                    self._now[through[giver, taker], [giver, taker]] += (-1, 1)
            self._loads = self._now.sum(axis=0)
            work += topics * members**2 + passes * (members + 1) ** 2
        return None

    def _costs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What it costs that one partition goes from a member to another, and of which topic it is.

        One place more stands for the group: who gives to it has one less at the end, and who takes from it one more.
        """
        _, members = self._may.shape
        costs = np.full((members + 1, members + 1), _NEVER)
        through = np.zeros((members, members), np.int64)
        for topic, may in enumerate(self._may):
            now, held = self._now[topic], self._held[topic]
            leaving = np.where(now > 0, (now <= held).astype(np.int64), _NEVER)
            coming = np.where(may, -(now < held).astype(np.int64), _NEVER)
            step = np.minimum(leaving[:, np.newaxis] + coming, _NEVER)
            better = step < costs[:-1, :-1]
            through[better] = topic
            np.minimum(costs[:-1, :-1], step, out=costs[:-1, :-1])
        np.fill_diagonal(costs, _NEVER)
        costs[members, :members] = self._weight * (1 - 2 * self._loads)  # from the group's place: one less
        costs[:members, members] = self._weight * (2 * self._loads + 1)
        return costs, through


def _negative_circle(costs: NDArray[np.int64]) -> tuple[list[int], int]:
    """The places of a circle whose costs are negative, in order, and the passes it took; empty if there is none.

    Bellman and Ford's: distances that still shrink after as many passes as there are places lead into a circle.
    """
    places = len(costs)
    reach, before = np.zeros(places, np.int64), np.zeros(places, np.int64)
    for done in range(1, places + 1):
        ways = reach[:, np.newaxis] + costs
        nearest = ways.argmin(axis=0)
        shorter = ways[nearest, np.arange(places)] < reach
        if not shorter.any():
            return [], done
        before[shorter] = nearest[shorter]
        reach = np.where(shorter, ways[nearest, np.arange(places)], reach)
    at = int(np.flatnonzero(shorter)[0])
    for _ in range(places):
        at = int(before[at])
    circle = [at]
    while (at := int(before[at])) != circle[0]:
        circle.append(at)
    return circle[::-1], places
