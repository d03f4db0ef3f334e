"""`uniform` where members subscribe differently: topic by topic, the least loaded subscriber first.

Everybody keeps what it still subscribes to. Then each topic's free partitions go to its least loaded subscribers,
topics with most partitions for each subscriber first. Last, partitions of each topic move from its most to its least
loaded subscribers while their loads differ by two or more, again and again over all topics, until nothing moves or 16
rounds are over (org.apache.kafka.coordinator.group.assignor.UniformHeterogeneousAssignmentBuilder, 4.1.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.target.group import NOBODY, id_order, loads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernel.assignors.target.group import TargetGroup, TopicGrid

ROUNDS_MAX = 16  #: Kafka's MAX_ITERATION_COUNT


def assign_mixed(group: TargetGroup) -> NDArray[np.int32]:
    """The next target: rows by partition."""
    assert group.subscribed is not None, "members that subscribe alike are assigned by `uniform`"
    grid, owner = group.grid, group.owner.copy()
    topic = np.repeat(np.arange(len(grid.ids)), grid.sizes)
    had = np.flatnonzero(owner != NOBODY)
    owner[had[~group.subscribed[owner[had], topic[had]]]] = NOBODY
    loads = loads_of(owner, len(group.members))
    subscribers = [np.flatnonzero(column) for column in np.ascontiguousarray(group.subscribed.T)]
    walk = _topic_order(grid, np.array([len(rows) for rows in subscribers]))
    for at in walk:
        part = owner[grid.starts[at] : grid.starts[at + 1]]
        free = np.flatnonzero(part == NOBODY)
        if len(free):
            rows = subscribers[at][np.argsort(loads[subscribers[at]], kind="stable")]
            takers = rows[_filled(loads[rows], len(free))]
            part[free] = takers
            loads += np.bincount(takers, minlength=len(loads))
    _balance([(owner[grid.starts[at] : grid.starts[at + 1]], subscribers[at]) for at in walk], loads)
    return owner


def _topic_order(grid: TopicGrid, subscribers: NDArray[np.int64]) -> list[int]:
    """Most partitions for each subscriber, then fewest subscribers, then the id."""
    ranks = np.empty(len(grid.ids), np.int64)
    ranks[sorted(range(len(grid.ids)), key=lambda at: id_order(grid.ids[at]))] = np.arange(len(grid.ids))
    order: list[int] = np.lexsort((ranks, subscribers, -(grid.sizes / subscribers))).tolist()
    return order


def _filled(loads: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Places in ascending `loads` of those who get `count` partitions: the lowest level first, then the next."""
    levels, places = np.unique(loads, return_counts=True)
    pieces, left = [], count
    steps = [*np.diff(levels).tolist(), count]
    for end, step in zip(np.cumsum(places).tolist(), steps, strict=True):
        piece = min(left, end * step)
        pieces.append(np.arange(piece) % end)
        left -= piece
        if not left:
            break
    return np.concatenate(pieces)


def _balance(topics: list[tuple[NDArray[np.int32], NDArray[np.int64]]], loads: NDArray[np.int64]) -> None:
    """Balance each topic (its owners, its subscribers), until a whole walk over the topics moves nothing."""
    topics = [(part, rows) for part, rows in topics if len(rows) > 1]
    last_moved = -1
    for _ in range(ROUNDS_MAX):
        for at, (part, rows) in enumerate(topics):
            if at == last_moved:
                return
            theirs = loads[rows]
            moved = theirs.max() - theirs.min() > 1 and _balance_topic(part, rows, loads)
            if moved or last_moved == -1:
                last_moved = at


def _balance_topic(part: NDArray[np.int32], rows: NDArray[np.int64], loads: NDArray[np.int64]) -> bool:
    """Move partitions between the subscribers of one topic; says whether any moved."""
    by_owner = np.argsort(part, kind="stable")
    owners, firsts = np.unique(part[by_owner], return_index=True)
    stocks = dict(zip(owners.tolist(), np.split(by_owner, firsts[1:]), strict=True))
    walk = rows[np.argsort(loads[rows], kind="stable")].tolist()
    ends = Ends(walk, loads.tolist())
    given = dict.fromkeys(stocks, 0)
    moved_at, moved_to = [], []
    while True:
        giver = ends.next_giver()
        while giver is not None and given.get(giver, 0) >= len(stocks.get(giver, ())):
            ends.exclude_giver()
            giver = ends.next_giver()
        if giver is None:
            break
        taker = ends.next_taker()
        if ends.high - ends.low <= 1:
            break
        given[giver] += 1
        moved_at.append(stocks[giver][-given[giver]])
        moved_to.append(taker)
        ends.loads[giver] -= 1
        ends.loads[taker] += 1
    part[moved_at] = moved_to
    loads[walk] = [ends.loads[row] for row in walk]
    return bool(moved_at)


@dataclass(slots=True)
class Ends:
    """The two ends of a topic's subscribers in the order of their loads.

    Takers are [0, takers_end), which all have `low` partitions or one more, handed out from the left. Givers are
    [givers_start, givers_end), which have `high` or one less, from the right; beyond them are the members that have
    nothing to give.
    """

    rows: list[int]
    loads: list[int]
    low: int = field(init=False)
    high: int = field(init=False)
    takers_end: int = 0
    taker: int = 0
    givers_start: int = field(init=False)
    givers_end: int = field(init=False)
    giver: int = field(init=False)

    def __post_init__(self) -> None:
        self.low = self.loads[self.rows[0]] - 1
        self.high = self.loads[self.rows[-1]] + 1
        self.givers_start = self.givers_end = len(self.rows)
        self.giver = len(self.rows) - 1

    def next_taker(self) -> int:
        if self.taker >= self.takers_end:
            self.low += 1
            while self.takers_end < len(self.rows) and self.loads[self.rows[self.takers_end]] == self.low:
                self.takers_end += 1
            self.taker = 0
        self.taker += 1
        return self.rows[self.taker - 1]

    def next_giver(self) -> int | None:
        if self.giver < self.givers_start:
            if self.givers_end <= self.givers_start > 0:
                self.high = self.loads[self.rows[self.givers_start - 1]]  # all givers so far were excluded
            else:
                self.high -= 1
            while self.givers_start > 0 and self.loads[self.rows[self.givers_start - 1]] == self.high:
                self.givers_start -= 1
            self.giver = self.givers_end - 1
        if self.giver < 0:
            return None
        self.giver -= 1
        return self.rows[self.giver + 1]

    def exclude_giver(self) -> None:
        """The last giver has nothing to give."""
        at, last = self.giver + 1, self.givers_end - 1
        self.rows[at], self.rows[last] = self.rows[last], self.rows[at]
        self.givers_end -= 1
