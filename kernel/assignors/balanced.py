"""The sticky algorithm for large groups whose members subscribe to different topics.

It gives the guarantees of `sticky_general`, but not the same assignments: each partition of a subscribed topic goes to
exactly one subscriber; if the loads of two members differ by two or more, no partition of the fuller one could go to
the other; members of a balanced group keep everything. It works on counts (`balanced_cells`), by topic or by member,
so its cost grows with the number of subscriptions, not partitions.

1. Members keep the partitions that they had and still subscribe to.
2. Free partitions go to the least loaded subscribers, topics with few subscribers first.
3. Partitions move to members that have at least two less, until none can. If many members have too much or too
   little, the algorithm computes how much each would give or take in an even assignment, and moves as much of that as
   possible, topic by topic. If few members lack partitions, they take them one member at a time from the most loaded;
   if few have too many, they give them to the least loaded. If either would take too long, it balances topic by topic.
4. A member gives up the highest partition numbers of a topic. Moving partitions go, sorted by number, to members by
   index.

Ties go to members that take a partition nobody had or get back one of their own, since that is no move, and then to
the lower index. So the result is deterministic.

It terminates: partitions only move to members with at least two less, so each step reduces the sum of the squared
loads by at least two, and each round but one makes a step. So the number of steps is at most half of that sum after
step 2. In practice there are a few rounds, and hundreds only if members form a chain of shared topics.

The number of moves is not minimal, but close to it: tests/kernel/assignors/moves_bound.py computes a lower bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.balanced_cells import Cells
from kernel.assignors.balanced_exchange import Givers, Takers, exchange, filling, in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: With more unbalanced members than this, all shares are computed at once, as long as that makes progress.
FEW = 16
#: Members are served one by one while that reads at most this many cells, or all of them this many times.
CELL_READS_MAX = 400_000
READS_PER_CELL_MAX = 2


def balance(starts: NDArray[np.int64], subscribed: NDArray[np.bool_], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    """The new owner of each partition; -1 if its topic has no subscriber.

    `starts`: int64[T + 1]; partition p of topic t has index starts[t] + p, and the last entry is the total (N).
    `subscribed`: bool[M, T]. `owner`: int32[N], the former owners, or -1; a member that does not subscribe to a topic
    loses its partitions. Needs about 45 bytes for each subscription and 30 for each partition.
    """
    topic = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    cells = Cells(starts, subscribed)
    cell = cells.claim(topic, owner)
    _give_out(cells)
    _even_out(cells)
    return _reassign(cells, cell, np.where(cell >= 0, owner, -1).astype(np.int32), topic)


def _give_out(cells: Cells) -> None:
    free = cells.free()
    for place in np.argsort(cells.widths, kind="stable").tolist():
        if free[place]:
            at = cells.of_topic(place)
            cells.move(at, filling(cells.loads[cells.member[at]], int(free[place])))


def _even_out(cells: Cells) -> None:
    """Balance in rounds, until no owner of a topic has at least two partitions more than a subscriber."""
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
        if few > 1 and min(reach[low].sum(), reach[high].sum()) > max(CELL_READS_MAX, READS_PER_CELL_MAX * len(loads)):
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
    """Move towards an even assignment as far as subscriptions allow. Returns whether it achieved at least a quarter."""
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
    """Balance one topic: from the most loaded members to the least loaded."""
    loads, held, kept = cells.loads[cells.member[at]], cells.held[at], cells.kept[at]
    if np.where(held > 0, loads, -1).max() >= loads.min() + 2:
        give, take = exchange(Givers(loads, held, held > kept), Takers(loads, held < kept))
        cells.move(at, take - give)


def _feed(cells: Cells, taker: int) -> None:
    """Move partitions to `taker` from the most loaded members that own some of its topics."""
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
    """Move partitions of `giver` to the least loaded members that subscribe to its topics."""
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


def _reassign(
    cells: Cells, cell: NDArray[np.int32], owner: NDArray[np.int32], topic: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Turn counts into partitions. Changes `owner` in place, from the valid former owners to the new ones."""
    keeps = np.minimum(cells.held, cells.kept)
    given_up = np.append(keeps < cells.kept, False)  # index -1 refers to the last entry
    ids = np.flatnonzero(given_up[cell])
    ids = ids[np.argsort(cell[ids], kind="stable")]
    turn = np.arange(len(ids)) - np.searchsorted(cell[ids], cell[ids])
    owner[ids[turn >= keeps[cell[ids]]]] = -1
    loose = np.flatnonzero(owner < 0)
    loose = loose[cells.has_cells(topic[loose])]
    owner[loose] = np.repeat(cells.member, cells.held - keeps)
    return owner
