"""`uniform` where all members subscribe alike: equal loads first, then few moves.

With q partitions for each member and r left over, a member that has more than q keeps q + 1, until r have; what is
still left over goes to the last of the other members. Everybody keeps up to that quota in the iteration order of Java's
tables, and the rest, partitions that nobody had before those given up, goes to the members in order (org.apache.kafka.
coordinator.group.assignor.UniformHomogeneousAssignmentBuilder, 4.1.1).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernel.assignors.group_arrays import stable_order
from kernel.assignors.hash_order import table_size
from kernel.assignors.target.group import NOBODY

#: Partitions that are sorted one by one.
FEW = 64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernel.assignors.target.group import TargetGroup


def assign_uniform(group: TargetGroup) -> NDArray[np.int32]:
    """The next target: rows by partition."""
    members, partitions = len(group.members), group.grid.partitions
    runs = _Runs.of(group)
    loads = np.bincount(runs.rows + 1, runs.lengths, members + 1)[1:].astype(np.int64)
    quota = _quotas(loads, partitions)
    owner = group.owner.copy()
    free = (owner == NOBODY).nonzero()[0]
    if np.count_nonzero(loads > quota):
        free = np.concatenate((free, _given_up(group, runs, loads, quota)))
    owner[free] = np.arange(members, dtype=np.int32).repeat(np.maximum(quota - loads, 0))
    return owner


class _Runs(NamedTuple):
    """Consecutive partitions of one topic with one owner: far fewer than partitions, as long as few have moved."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, group: TargetGroup) -> _Runs:
        owner = group.owner
        begins = np.empty(len(owner), np.bool_)
        np.not_equal(owner[1:], owner[:-1], out=begins[1:])
        begins[group.grid.starts[:-1]] = True
        starts = begins.nonzero()[0]
        return cls(starts, _lengths(starts, len(owner)), owner[starts])

    def at(self, places: NDArray[np.int64]) -> _Runs:
        return _Runs(self.starts[places], self.lengths[places], self.rows[places])


def _quotas(loads: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    quota, extras = divmod(partitions, len(loads))
    keeps_extra = loads > quota
    keeps_extra &= keeps_extra.cumsum() <= extras
    quotas = quota + keeps_extra
    left = extras - np.count_nonzero(keeps_extra)
    if left:
        quotas[(~keeps_extra).nonzero()[0][-left:]] += 1
    return quotas


def _given_up(group: TargetGroup, runs: _Runs, loads: NDArray[np.int64], quota: NDArray[np.int64]) -> NDArray[np.int64]:
    """What members above their quota give up, in order: all after the first `quota` of their tables.

    A cell is what one member has of one topic.
    """
    above = np.zeros(len(loads) + 1, np.bool_)  # NOBODY refers to the last entry
    np.greater(loads, quota, out=above[:-1])
    runs = runs.at(above[runs.rows].nonzero()[0])
    if len(group.grid.ids) == 1 and len(runs.rows) <= FEW and int(runs.lengths.sum()) <= FEW:
        return _few_given_up(runs, quota)
    topic = group.grid.topics_of(runs.starts) if len(group.grid.ids) > 1 else np.zeros(len(runs.rows), np.int64)
    order = stable_order(runs.rows)
    runs, topic = runs.at(order), topic[order]
    begins = np.ones(len(topic), np.bool_)
    np.not_equal(runs.rows[1:], runs.rows[:-1], out=begins[1:])
    if len(group.grid.ids) > 1:
        begins[1:] |= topic[1:] != topic[:-1]
    cells = begins.nonzero()[0]
    cell_runs = _lengths(cells, len(topic))
    held, row, topic = np.add.reduceat(runs.lengths, cells), runs.rows[cells], topic[cells]
    if len(group.grid.ids) > 1:
        walk = _in_maps(group, row, topic)
        cells, cell_runs, held, row, topic = cells[walk], cell_runs[walk], held[walk], row[walk], topic[walk]
        before = np.cumsum(held) - held
        before -= before[np.searchsorted(row, row)]
        keeps = np.clip(quota[row] - before, 0, held)
        cut = np.flatnonzero(keeps < held)
        runs = runs.at(_ranges(cells[cut], cell_runs[cut]))
        held, keeps, topic = held[cut], keeps[cut], topic[cut]
    else:
        keeps = quota[row]
    return _last_of_tables(_ranges(runs.starts, runs.lengths), group.grid.starts[topic], held, keeps)


def _in_maps(group: TargetGroup, row: NDArray[np.int32], topic: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of cells in which the members' maps are iterated; cells come by row."""
    sizes = np.bincount(row)
    for each, others in group.others.items():
        if each < len(sizes):
            sizes[each] += others
    in_map = group.grid.spreads[topic] & _tables(sizes)[row] - 1
    walk = np.lexsort((in_map, row))
    shares = (row[walk][1:] == row[walk][:-1]) & (in_map[walk][1:] == in_map[walk][:-1])
    if not shares.any():
        return walk
    came = np.zeros(len(topic), np.int64)
    for held in np.unique(row[walk][1:][shares]).tolist():
        places = {topic_id: place for place, topic_id in enumerate(group.topics_of(held))}
        cells = np.flatnonzero(row == held)
        came[cells] = [places[group.grid.ids[at]] for at in topic[cells].tolist()]
    return np.lexsort((came, in_map, row))


def _few_given_up(runs: _Runs, quota: NDArray[np.int64]) -> NDArray[np.int64]:
    """As `_given_up`, of one topic, one partition after the other: for few that takes less time than arrays."""
    held: dict[int, list[int]] = {}
    for start, length, row in zip(runs.starts.tolist(), runs.lengths.tolist(), runs.rows.tolist(), strict=True):
        held.setdefault(row, []).extend(range(start, start + length))
    freed: list[int] = []
    for row in sorted(held):
        numbers = held[row]
        mask = table_size(len(numbers)) - 1
        numbers.sort(key=lambda number, mask=mask: (number ^ number >> 16) & mask)  # type: ignore[misc]
        freed += numbers[int(quota[row]) :]
    return np.array(freed, np.int64)


def _last_of_tables(
    ids: NDArray[np.int64], firsts: NDArray[np.int64], held: NDArray[np.int64], keeps: NDArray[np.int64]
) -> NDArray[np.int64]:
    """All but the first `keeps` of each cell's `held` partitions, in the iteration order of its HashSet.

    `ids` are ascending within a cell, and those of its topic begin at the cell's `firsts`.
    """
    numbers = ids - firsts.repeat(held)
    in_set = (numbers ^ numbers >> 16) & (_tables(held) - 1).repeat(held)
    begins = held.cumsum() - held
    bits = int(numbers.max()).bit_length()
    key, number = in_set << bits | numbers, (1 << bits) - 1
    if (held - keeps).max() == 1:  # as when one member joins many
        return firsts + (np.maximum.reduceat(key, begins) & number)
    if (in_set != numbers).any():
        shift = int(key.max()).bit_length()
        key = np.sort(np.repeat(np.arange(len(held)), held) << shift | key) & (1 << shift) - 1
    last = np.arange(len(ids)) - np.repeat(begins, held) >= np.repeat(keeps, held)
    return np.repeat(firsts, held - keeps) + (key[last] & number)


def _ranges(firsts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """All ranges of these firsts and lengths, one after the other."""
    ends = lengths.cumsum()
    found: NDArray[np.int64] = (firsts - ends + lengths).repeat(lengths)
    found += np.arange(int(ends[-1]))
    return found


def _lengths(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """Of the ranges that begin at `starts`, one after the other up to `end`."""
    lengths = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = end - starts[-1]
    return lengths


@cache
def _filled() -> NDArray[np.int64]:
    """The most entries of tables of 16, 32, 64, ... buckets."""
    return 12 << np.arange(30)


def _tables(entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """`kernel.assignors.hash_order.table_size` of each."""
    sizes: NDArray[np.int64] = 16 << _filled().searchsorted(entries)
    return sizes
