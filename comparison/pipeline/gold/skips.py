"""Records that a group skipped: it had no usable offset, and `auto.offset.reset` set its position to the log's end.

What came before the group is none of its business. What came later, and was delivered to nobody, is *skipped*: the
first member had not committed yet, offsets had expired (KIP-211), or a partition was added and had records before the
group noticed it (KIP-842, KIP-1327). It is not lost: every part did what its settings say. Offsets are counted, so that
skips are known of groups whose producers nobody traced; where they were traced, only what they wrote.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.gold.cover import Ranges, united
from comparison.pipeline.measured_offsets import Skip
from comparison.pipeline.silver.arrays import integers
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
    resets = _resets(bundle)
    handed = _by_key(keys, united(delivered)) if resets else {}
    skips: list[Skip] = []
    offsets: dict[Key, list[Range]] = {}
    for key, of_one in sorted(resets.items()):
        begin = 0 if _was_added(key, context) else _first_start(key, bundle)
        found = list(_skipped(key, begin, of_one, handed.get(key, []), bundle))
        skips += found
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


def _resets(bundle: Bundle) -> dict[Key, list[dict[str, Any]]]:
    """Those to the end, by partition, in the order of their offsets."""
    rows = bundle.offsets
    chosen = rows.filter(pc.and_(pc.equal(rows["kind"], RESET), pc.is_in(rows["reset"], pa.array(TO_THE_END))))
    found: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(chosen.to_pylist(), key=lambda row: (row["offset"], row["t_ns"], row["seq"])):
        found[row["group"], row["topic"], row["partition"]].append(row)
    return dict(found)


def _was_added(key: Key, context: Context) -> bool:
    """Whether the group was there before the partition."""
    group, topic, partition = key
    appeared_ns = context.appeared.get((topic, partition))
    if appeared_ns is None:
        return False
    lives = (life for life in context.lives if context.memberships.group(life.process, life.member) == group)
    return any(life.from_ns < appeared_ns for life in lives)


def _first_start(key: Key, bundle: Bundle) -> int:
    """The offset at which the group's first delivery of a partition started."""
    return next((int(row["offset"]) for row in _rows(key, bundle, STARTED)), 0)


def _rows(key: Key, bundle: Bundle, kind: str) -> list[dict[str, Any]]:
    """Those of one kind about the offsets of a partition, in order."""
    rows = _of(key, bundle.offsets.filter(pc.equal(bundle.offsets["kind"], kind)))
    return sorted(rows.to_pylist(), key=lambda row: (row["t_ns"], row["seq"]))


def _of(key: Key, rows: pa.Table) -> pa.Table:
    group, topic, partition = key
    mine = pc.and_(pc.equal(rows["topic"], topic), pc.equal(rows["partition"], partition))
    return rows.filter(pc.and_(mine, pc.equal(rows["group"], group)) if "group" in rows.column_names else mine)


def _acked(key: Key, bundle: Bundle) -> list[Range] | None:
    """The offsets at which records of a partition were acknowledged, in order; None if nobody traced them."""
    rows = _of(key, bundle.acks)
    if not len(rows):
        return None
    first = integers(rows["offset"])
    return sorted(zip(first.tolist(), (first + integers(rows["end"]) - integers(rows["first"])).tolist(), strict=True))


def _by_key(keys: Keys, ranges: Ranges) -> dict[Key, list[Range]]:
    found: defaultdict[Key, list[Range]] = defaultdict(list)
    meanings = keys.meanings
    for number, low, high in zip(ranges.keys.tolist(), ranges.lows.tolist(), ranges.highs.tolist(), strict=True):
        found[meanings[number]].append((low, high))
    return found


def _skipped(
    key: Key, begin: int, resets: Sequence[Mapping[str, Any]], handed: Sequence[Range], bundle: Bundle
) -> Iterator[Skip]:
    """The gap right before each reset's offset, down to what was delivered, to another reset, or to `begin`."""
    group, topic, partition = key
    acked, commits = _acked(key, bundle), _rows(key, bundle, WRITTEN)
    for reset in resets:
        end = int(reset["offset"])
        first = max([begin, *(min(high, end) for low, high in handed if low < end)])
        written = [(max(low, first), min(high, end)) for low, high in acked] if acked is not None else [(first, end)]
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
                reset=reset["reset"],
                committed=next((row["offset"] for row in reversed(commits) if row["t_ns"] < reset["t_ns"]), None),
                by=reset["by"],
                t_ns=reset["t_ns"],
            )
