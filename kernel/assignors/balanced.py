"""The sticky strategies' algorithm for members that subscribe to different topics, when the group is large.

It promises what `sticky_general` does, but not the same answer: every partition of a topic that somebody subscribes to
goes to exactly one subscriber; of two members that differ by two or more, nothing of the fuller one could go to the
other; whoever is as even as that keeps everything. It works on counts (`balanced_cells`), topic by topic or member
by member, and so costs as much as there are subscriptions, not partitions.

1. Everybody keeps what it had and still subscribes to.
2. Free partitions go to the least loaded subscribers, topics with few subscribers first.
3. Partitions move from members to others that have two or more less, until none can. Where many members have too much
   or too little, all are told how much to give or take if everybody were to be even, and topic after topic does as
   much of that as it can. Where few lack something, they are served one by one, from whoever has most; where few have
   too much, they give to whoever has least; where either would take long, topic after topic is evened out.
4. A member gives up the highest numbers of a topic. What is on the move goes by number to members by index.

Among equals the member of the lower index comes first, and before that whoever gains what nobody had, or gets back
what it had: that is not moved. So the same input has one answer.

It ends: partitions only go where there are at least two less, so that each step lessens the sum of the squares of
all loads by two or more, and each round but one makes a step; there cannot be more steps than half that sum after 2.
In practice it is a few rounds, and hundreds only where members hang together like the links of a chain.

How many move is not the least possible, but near it: for a lower bound see tests/support/moves_bound.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.balanced_cells import Cells
from kernel.assignors.balanced_exchange import Givers, Takers, exchange, filling, in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: More members than these are told together how much to give or take, as long as that gets on.
FEW = 16
#: Members are served one by one while that looks at no more than so many cells, or at all of them so many times.
LOOKS = 400_000
LOOKS_A_CELL = 2


def balance(starts: NDArray[np.int64], subscribed: NDArray[np.bool_], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    """The new owner of each partition, -1 only where nobody subscribes to its topic.

    `starts`: int64[T + 1], partition p of topic t is number starts[t] + p, the last entry is the number of all (N).
    `subscribed`: bool[M, T]. `owner`: int32[N], the member that had it, -1 where there was none; one that does not
    subscribe to the topic loses it. Takes about 45 bytes for each subscription and 30 for each partition.
    """
    topic = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    cells = Cells(starts, subscribed)
    cell = cells.claim(topic, owner)
    _give_out(cells)
    _even_out(cells)
    return _deal(cells, cell, np.where(cell >= 0, owner, -1).astype(np.int32), topic)


def _give_out(cells: Cells) -> None:
    free = cells.free()
    for place in np.argsort(cells.widths, kind="stable").tolist():
        if free[place]:
            at = cells.of_topic(place)
            cells.move(at, filling(cells.loads[cells.member[at]], int(free[place])))


def _even_out(cells: Cells) -> None:
    """Rounds, until for no topic an owner has two or more than a subscriber."""
    widths, none = cells.widths, np.zeros(len(cells.loads), np.bool_)
    reach = np.bincount(cells.member, np.repeat(widths, widths), minlength=len(none))
    share = True
    while len(widths):
        loads = cells.loads[cells.member]
        most = np.maximum.reduceat(np.where(cells.held > 0, loads, -1), cells.first[:-1])
        least = np.minimum.reduceat(loads, cells.first[:-1])
        lopsided = np.flatnonzero(most >= least + 2)
        if not len(lopsided):
            break
        low, high = none.copy(), none.copy()
        low[cells.member[loads + 2 <= np.repeat(most, widths)]] = True
        high[cells.member[(cells.held > 0) & (loads >= np.repeat(least, widths) + 2)]] = True
        few = min(int(low.sum()), int(high.sum()))
        if share and few > FEW:
            share = _share(cells, lopsided)
            continue
        before = int((cells.loads**2).sum())
        if few > 1 and min(reach[low].sum(), reach[high].sum()) > max(LOOKS, LOOKS_A_CELL * len(loads)):
            for place in lopsided.tolist():
                _level(cells, cells.of_topic(place))
        elif reach[low].sum() <= reach[high].sum():
            for member in sorted(np.flatnonzero(low), key=cells.loads.__getitem__):
                _feed(cells, int(member))
        else:
            for member in sorted(np.flatnonzero(high), key=cells.loads.__getitem__, reverse=True):
                _drain(cells, int(member))
        assert int((cells.loads**2).sum()) < before


def _share(cells: Cells, lopsided: NDArray[np.int64]) -> bool:
    """What would make all members even, as far as subscriptions allow it; whether that was a quarter of it or more."""
    busy = np.unique(cells.member)
    loads, alike = cells.loads[busy], np.zeros(len(busy), np.bool_)
    give, take = np.zeros_like(cells.loads), np.zeros_like(cells.loads)
    give[busy], take[busy] = exchange(Givers(loads, loads, alike), Takers(loads, alike))
    all_of_it = left = int(give.sum())
    for place in lopsided[np.argsort(cells.widths[lopsided], kind="stable")].tolist():
        at = cells.of_topic(place)
        member = cells.member[at]
        asked, offered = take[member], np.minimum(give[member], cells.held[at])
        moving = int(min(asked.sum(), offered.sum()))
        if moving:
            taken, given = in_turn(asked, moving), in_turn(offered, moving)
            take[member] -= taken
            give[member] -= given
            cells.move(at, taken - given)
            left -= moving
    return 4 * (all_of_it - left) >= max(1, all_of_it)


def _level(cells: Cells, at: slice) -> None:
    """One topic: from those who have most to those who have least."""
    loads, held, kept = cells.loads[cells.member[at]], cells.held[at], cells.kept[at]
    if np.where(held > 0, loads, -1).max() >= loads.min() + 2:
        give, take = exchange(Givers(loads, held, held > kept), Takers(loads, held < kept))
        cells.move(at, take - give)


def _feed(cells: Cells, taker: int) -> None:
    """From those who have most of all that have something of what the member subscribes to."""
    mine = cells.of_member(taker)
    topics = cells.topics_of(mine)
    stock, gained = np.zeros_like(cells.loads), np.zeros_like(cells.loads)
    for at in topics:
        stock[cells.member[at]] += cells.held[at]
        gained[cells.member[at]] += np.maximum(cells.held[at] - cells.kept[at], 0)
    fuller = np.flatnonzero((stock > 0) & (cells.loads >= cells.loads[taker] + 2))
    if not len(fuller):
        return
    give = np.zeros_like(cells.loads)
    givers = Givers(cells.loads[fuller], stock[fuller], gained[fuller] > 0)
    give[fuller], _ = exchange(givers, Takers(cells.loads[[taker]], np.zeros(1, np.bool_)))
    for sparing in (True, False):
        for cell, at in zip(mine.tolist(), topics, strict=True):
            keep = cells.kept[at] if sparing and cells.held[cell] >= cells.kept[cell] else 0
            given = np.clip(cells.held[at] - keep, 0, give[cells.member[at]])
            give[cells.member[at]] -= given
            cells.move(at, -given)
            cells.held[cell] += given.sum()
            cells.loads[taker] += given.sum()
        if not give.any():
            break


def _drain(cells: Cells, giver: int) -> None:
    """To those who have least of all that subscribe to something of what the member has."""
    mine = cells.of_member(giver)
    mine = mine[cells.held[mine] > 0]
    topics = cells.topics_of(mine)
    near = np.zeros(len(cells.loads), np.bool_)
    for at in topics:
        near[cells.member[at]] = True
    emptier = np.flatnonzero(near & (cells.loads + 2 <= cells.loads[giver]))
    if not len(emptier):
        return
    take = np.zeros_like(cells.loads)
    givers = Givers(cells.loads[[giver]], cells.held[mine].sum(keepdims=True), np.zeros(1, np.bool_))
    _, take[emptier] = exchange(givers, Takers(cells.loads[emptier], np.zeros(len(emptier), np.bool_)))
    for sparing in (True, False):
        for cell, at in zip(mine.tolist(), topics, strict=True):
            spare = int(cells.held[cell] - cells.kept[cell] * sparing)
            taken = in_turn(take[cells.member[at]], max(0, spare))
            take[cells.member[at]] -= taken
            cells.move(at, taken)
            cells.held[cell] -= taken.sum()
            cells.loads[giver] -= taken.sum()
        if not take.any():
            break


def _deal(
    cells: Cells, cell: NDArray[np.int32], owner: NDArray[np.int32], topic: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Counts become partitions: `owner` is who had each and may keep it, and is changed into who gets it."""
    keeps = np.minimum(cells.held, cells.kept)
    given_up = np.append(keeps < cells.kept, False)  # the last entry is what -1 leads to
    ids = np.flatnonzero(given_up[cell])
    ids = ids[np.argsort(cell[ids], kind="stable")]
    turn = np.arange(len(ids)) - np.searchsorted(cell[ids], cell[ids])
    owner[ids[turn >= keeps[cell[ids]]]] = -1
    loose = np.flatnonzero(owner < 0)
    loose = loose[cells.has_cells(topic[loose])]
    owner[loose] = np.repeat(cells.member, cells.held - keeps)
    return owner
