"""`uniform` where all members subscribe alike: equal loads first, then few moves.

With q partitions for each member and r left over, a member that has more than q keeps q + 1, until r have; what is
still left over goes to the last of the other members. Everybody keeps up to that quota in the iteration order of Java's
tables, and the rest, partitions that nobody had before those given up, goes to the members in order (org.apache.kafka.
coordinator.group.assignor.UniformHomogeneousAssignmentBuilder, 4.1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.assignors.group_arrays import stable_order
from kernel.assignors.target.group import NOBODY, loads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernel.assignors.target.group import TargetGroup


def assign_uniform(group: TargetGroup) -> NDArray[np.int32]:
    """The next target: rows by partition."""
    members = len(group.members)
    loads = loads_of(group.owner, members)
    quota = _quotas(loads, group.grid.partitions)
    owner = group.owner.copy()
    free = np.flatnonzero(owner == NOBODY)
    if (loads > quota).any():
        freed = _given_up(group, loads, quota)
        free = np.concatenate((free, freed))
    owner[free] = np.repeat(np.arange(members, dtype=np.int32), np.maximum(quota - loads, 0))
    return owner


def _quotas(loads: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    quota, extras = divmod(partitions, len(loads))
    keeps_extra = loads > quota
    keeps_extra &= np.cumsum(keeps_extra) <= extras
    quotas = quota + keeps_extra
    left = extras - int(keeps_extra.sum())
    if left:
        quotas[np.flatnonzero(~keeps_extra)[-left:]] += 1
    return quotas


def _given_up(group: TargetGroup, loads: NDArray[np.int64], quota: NDArray[np.int64]) -> NDArray[np.int64]:
    """What members above their quota give up, in order: all after the first `quota` of their tables.

    A cell is what one member has of one topic: a run of `ids`, which are sorted by member, topic and number.
    """
    above = np.zeros(len(loads) + 1, np.bool_)  # NOBODY refers to the last entry
    np.greater(loads, quota, out=above[:-1])
    ids = np.flatnonzero(above[group.owner])
    row = group.owner[ids]
    order = stable_order(row)
    topic = group.grid.topics_of(ids)[order] if len(group.grid.ids) > 1 else ids
    ids, row = ids[order], row[order]
    begins = np.ones(len(ids), np.bool_)
    np.not_equal(row[1:], row[:-1], out=begins[1:])
    if len(group.grid.ids) > 1:
        begins[1:] |= topic[1:] != topic[:-1]
        starts = np.flatnonzero(begins)
        held, row, topic = _lengths(starts, len(ids)), row[starts], topic[starts]
        in_map = group.grid.spreads[topic] & _tables(np.bincount(row))[row] - 1
        walk = np.lexsort((group.grid.ranks[topic], in_map, row))
        starts, held, row, topic = starts[walk], held[walk], row[walk], topic[walk]
        before = np.cumsum(held) - held
        before -= before[np.searchsorted(row, row)]
        keeps = np.clip(quota[row] - before, 0, held)
        cut = np.flatnonzero(keeps < held)
        starts, held, keeps = starts[cut], held[cut], keeps[cut]
        firsts = group.grid.starts[topic[cut]]
        ends = np.cumsum(held)
        turn = np.arange(int(ends[-1])) - np.repeat(ends - held, held)
        ids = ids[np.repeat(starts, held) + turn]
        numbers = ids - np.repeat(firsts, held)
    else:  # every cell is cut
        starts = np.flatnonzero(begins)
        held, keeps, numbers = _lengths(starts, len(ids)), quota[row[starts]], ids
        turn = np.arange(len(ids)) - np.repeat(starts, held)
    in_set = (numbers ^ numbers >> 16) & np.repeat(_tables(held), held) - 1
    if (in_set != numbers).any():
        bits = [int(part.max()).bit_length() for part in (in_set, numbers)]
        cell = np.repeat(np.arange(len(held)), held)
        packed = np.sort((cell << bits[0] | in_set) << bits[1] | numbers)
        ids = ids - numbers + (packed & (1 << bits[1]) - 1)
    freed: NDArray[np.int64] = ids[turn >= np.repeat(keeps, held)]
    return freed


def _lengths(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    lengths = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = end - starts[-1]
    return lengths


#: The most entries of tables of 16, 32, 64, ... buckets.
_FILLED = 12 << np.arange(30)


def _tables(entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """`kernel.assignors.hash_order.table_size` of each."""
    sizes: NDArray[np.int64] = 16 << np.searchsorted(_FILLED, entries)
    return sizes
