"""Records that a group skipped: it had no usable offset, and `auto.offset.reset` set its position to the log's end.

What came before the group is none of its business. What came later, and was delivered to nobody, is *skipped*: the
first member had not committed yet, offsets had expired (KIP-211), or a partition was added and had records before the
group noticed it (KIP-842, KIP-1327). It is not lost: every part did what its settings say. Offsets are counted, so that
skips are known of groups whose producers nobody traced; where they were traced, only what they wrote.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc
from msgspec.structs import replace

from comparison.pipeline.gold.cover import Ranges, united
from comparison.pipeline.measured_offsets import Skip
from comparison.pipeline.silver.arrays import tuples_of
from comparison.pipeline.silver.lives import life_begin, within_life
from comparison.pipeline.silver.offsets import RESET, STARTED, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.pipeline.gold.line_keys import Keys
    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.naming import Key
    from comparison.pipeline.silver.reduce import Bundle

    #: Offsets or serial numbers from the first one to before the second one.
    Range = tuple[int, int]

#: The values of `auto.offset.reset` that begin at the log's end, of either era.
TO_THE_END = ("latest", "largest")


class Unpromised(NamedTuple):
    """What a group need not be handed of the partitions in which its position was set to the log's end."""

    skips: list[Skip]  #: in the order of partitions and offsets
    offsets: Mapping[Key, Sequence[Range]]  #: those of the skips, and those from before the group


def unpromised(keys: Keys, bundle: Bundle, delivered: Ranges, context: Context) -> Unpromised:
    """What resets have skipped; `delivered` are ranges of offsets, numbered by `keys`."""
    resets = of_kind(bundle, RESET, ("offset", "t_ns", "seq", "reset", "by"))
    to_the_end = {key: rows for key, of_one in resets.items() if (rows := [r for r in of_one if r[3] in TO_THE_END])}
    if not to_the_end:
        return Unpromised([], {})
    handed, acked = keys.by_partition(united(delivered)), _acked(bundle)
    started, written = (of_kind(bundle, kind, ("t_ns", "seq", "offset")) for kind in (STARTED, WRITTEN))
    skips: list[Skip] = []
    offsets: dict[Key, list[Range]] = {}
    for key, of_one in sorted(to_the_end.items()):
        begin = 0 if _was_added(key, context) or key not in started else started[key][0][2]
        known = _Known(handed.get(key, []), acked.get(key[1:]), [(t_ns, at) for t_ns, _, at in written.get(key, ())])
        found = list(_skipped(key, begin, of_one, known, context))
        skips += [_as_traced(skip, context) for skip in found]
        offsets[key] = [(0, begin), *((skip.first, skip.end) for skip in found)]
    return Unpromised(skips, offsets)


def without(ranges: Iterable[Range], left_out: Sequence[Range]) -> Iterator[Range]:
    """What remains of the ranges; both are in order, and none overlaps another one of its kind."""
    for low, high in ranges:
        begin = low
        for first, end in left_out:
            if first < high and end > begin:
                if first > begin:
                    yield begin, first
                begin = max(begin, end)
        if begin < high:
            yield begin, high


def _as_traced(skip: Skip, context: Context) -> Skip:
    place = skip.topic, skip.partition
    first, end = (within_life(offset, place, context) for offset in (skip.first, skip.end))
    committed = None if skip.committed is None else within_life(skip.committed, place, context)
    return replace(skip, first=first, end=end, committed=committed)


def of_kind(bundle: Bundle, kind: str, columns: Sequence[str]) -> dict[Key, list[tuple[Any, ...]]]:
    """These columns of one kind of rows about offsets, by partition, in order."""
    found: defaultdict[Key, list[tuple[Any, ...]]] = defaultdict(list)
    rows = bundle.offsets.filter(pc.equal(bundle.offsets["kind"], kind))
    for group, topic, partition, *values in tuples_of(rows, ("group", "topic", "partition", *columns)):
        found[group, topic, partition].append(tuple(values))
    return {key: sorted(of_one) for key, of_one in found.items()}


def _was_added(key: Key, context: Context) -> bool:
    """Whether the group was there before the partition."""
    group, topic, partition = key
    appeared_ns = context.appeared.get((topic, partition))
    if appeared_ns is None:
        return False
    lives = (life for life in context.lives if context.memberships.group(life.process, life.member) == group)
    return any(life.from_ns < appeared_ns for life in lives)


def _acked(bundle: Bundle) -> dict[tuple[str, int], list[Range]]:
    """The offsets at which records of each partition were acknowledged, in order, where anybody traced them."""
    found: defaultdict[tuple[str, int], list[Range]] = defaultdict(list)
    for topic, partition, at, first, end in tuples_of(bundle.acks, ("topic", "partition", "offset", "first", "end")):
        found[topic, partition].append((at, at + end - first))
    return {place: sorted(ranges) for place, ranges in found.items()}


class _Known(NamedTuple):
    """What is known of a partition: offsets that were delivered, and acknowledged (None: not traced), and commits."""

    handed: Sequence[Range]
    acked: Sequence[Range] | None
    commits: Sequence[tuple[int, int]]  #: when, and the offset, in order


def _skipped(
    key: Key, begin: int, resets: Iterable[tuple[Any, ...]], known: _Known, context: Context
) -> Iterator[Skip]:
    """The gap right before each reset's offset, down to what was delivered, to another reset, to `begin`, or to where
    the life of the topic began.
    """
    group, topic, partition = key
    for end, t_ns, _, reset, by in resets:
        begin = max(begin, life_begin(end, (topic, partition), context))
        first = max([begin, *(min(high, end) for low, high in known.handed if low < end)])
        acked = [(first, end)] if known.acked is None else known.acked
        written = [(max(low, first), min(high, end)) for low, high in acked]
        records = sum(high - low for low, high in written if low < high)
        begin = max(begin, end)
        if records:
            yield Skip(
                group=group,
                topic=topic,
                partition=partition,
                first=first,
                end=end,
                records=records,
                reset=reset,
                committed=next((offset for at_ns, offset in reversed(known.commits) if at_ns < t_ns), None),
                by=by,
                t_ns=t_ns,
            )
