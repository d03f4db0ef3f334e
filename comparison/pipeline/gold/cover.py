"""One sweep that answers every question of the form "how many at once".

Owners over time, and records over their numbers, are the same problem: ranges [low, high) on a line, some of
them *held* (an owner has the partition; a record was delivered), some of them *wanted* (the group should own it;
the producer's record was acknowledged). Sweeping over the ends of the ranges gives, for each stretch of the line,
how many hold it and whether it is wanted:

    wanted and not held    a gap:    unowned time, lost records
    held more than once    doubled:  double ownership, duplicated records

Ends come before beginnings at the same place, so that ranges which touch do not overlap. An *overlap* is a maximal
stretch that is held more than once, whoever comes and goes within it; in time it counts only when the whole of it is
longer than the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from comparison.pipeline.measured import FirstOverlap
from comparison.pipeline.silver.arrays import ends, following, highest, numbers, running, starts
from comparison.pipeline.silver.naming import WHERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.silver.naming import Key

#: Stretches of one view, as a table for others.
SEGMENT_SCHEMA = pa.schema(
    [
        ("view", pa.string()),
        *WHERE,
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("holders", pa.int64()),
        ("is_wanted", pa.bool_()),
        ("counts_as_overlap", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges [low, high) of one view, by partition; `owners` holds numbers, and is None for wanted ranges."""

    keys: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    owners: NDArray[np.int64] | None = None

    @classmethod
    def none(cls) -> Ranges:
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, empty, empty)

    def not_empty(self) -> Ranges:
        """Without those that have no length."""
        kept = self.lows < self.highs
        owners = self.owners[kept] if self.owners is not None else None
        return Ranges(self.keys[kept], self.lows[kept], self.highs[kept], owners)


def united(ranges: Ranges) -> Ranges:
    """What ranges cover together, in as few ranges as possible: where one was cut makes no difference."""
    order = np.lexsort((ranges.lows, ranges.keys))
    keys, lows, highs = (column[order] for column in (ranges.keys, ranges.lows, ranges.highs))
    first = starts(keys)
    reach = highest(highs, first)
    begins = first.copy()
    begins[1:] |= lows[1:] > reach[:-1]
    rows, last = ends(begins)
    return Ranges(keys[rows], lows[rows], reach[last])


@dataclass(frozen=True, slots=True)
class Segments:
    """The stretches between neighbouring ends of one view's ranges, in order."""

    keys: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    holders: NDArray[np.int64]
    is_wanted: NDArray[np.bool_]
    overlap: NDArray[np.int64]  #: the number of the maximal overlap that it is part of, from 0; -1: of none


def segments_of(held: Ranges, wanted: Ranges) -> Segments:
    """Cut every key's range where a holder or a want begins or ends."""
    held, wanted = held.not_empty(), wanted.not_empty()
    keys = np.concatenate([held.keys, held.keys, wanted.keys, wanted.keys])
    at = np.concatenate([held.lows, held.highs, wanted.lows, wanted.highs])
    holding = np.repeat(np.array([1, -1, 0, 0]), [len(held.keys)] * 2 + [len(wanted.keys)] * 2)
    wanting = np.repeat(np.array([0, 0, 1, -1]), [len(held.keys)] * 2 + [len(wanted.keys)] * 2)
    order = np.lexsort((at, keys))
    keys, at = keys[order], at[order]
    first = starts(keys)
    holders, wants = running(holding[order], first), running(wanting[order], first)
    behind = following(first)
    # Of several ends at one place only the last one begins a stretch: everything there has been counted by then.
    kept = (behind != -1) & (at < at[behind])
    keys, lows, highs, holders = keys[kept], at[kept], at[behind][kept], holders[kept]
    doubled = holders > 1
    begins = doubled & starts(keys, doubled)
    return Segments(keys, lows, highs, holders, wants[kept] > 0, np.where(doubled, numbers(begins), -1))


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The maximal overlaps of one view, in order of partitions and places; `counts` leaves out those too short."""

    keys: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    counts: NDArray[np.bool_]


def overlaps_of(segments: Segments, tolerance: int) -> Overlaps:
    rows = np.flatnonzero(segments.overlap >= 0)
    first = starts(segments.overlap[rows])
    lows = segments.lows[rows][first]
    highs = np.maximum.reduceat(segments.highs[rows], np.flatnonzero(first)) if len(rows) else lows
    return Overlaps(segments.keys[rows][first], lows, highs, highs - lows > tolerance)


def _counting(segments: Segments, overlaps: Overlaps) -> NDArray[np.bool_]:
    """Which stretches are part of an overlap that counts."""
    counting = np.zeros(len(segments.keys), dtype=np.bool_)
    in_overlap = segments.overlap >= 0
    counting[in_overlap] = overlaps.counts[segments.overlap[in_overlap]]
    return counting


def first_overlap(overlaps: Overlaps, held: Ranges, keys: Sequence[Key], owners: Sequence[str]) -> FirstOverlap | None:
    """The earliest overlap that counts, with two of those that hold where it begins."""
    rows = np.flatnonzero(overlaps.counts)
    if not len(rows):
        return None
    places = [(int(overlaps.lows[row]), int(overlaps.highs[row]), int(overlaps.keys[row])) for row in rows.tolist()]
    low, high, (topic, partition) = min((low, high, keys[key][1:]) for low, high, key in places)
    assert held.owners is not None
    there = (held.lows <= low) & (held.highs > low)
    found = []
    for _, _, key in (place for place in places if (*place[:2], keys[place[2]][1:]) == (low, high, (topic, partition))):
        names = sorted({owners[number] for number in held.owners[there & (held.keys == key)].tolist()})
        found.append(
            FirstOverlap(low=low, high=high, topic=topic, partition=partition, owner=names[0], other=names[-1])
        )
    return min(found, key=astuple)


def segment_table(view: str, segments: Segments, overlaps: Overlaps, keys: Sequence[Key]) -> pa.Table:
    """SEGMENT_SCHEMA; neighbours that are alike are one row."""
    counting = _counting(segments, overlaps)
    first = starts(segments.keys, segments.holders, segments.is_wanted, counting)
    rows, last = ends(first)
    return pa.table(
        [
            pa.repeat(view, len(rows)),
            *key_columns(segments.keys[rows], keys),
            segments.lows[rows],
            segments.highs[last],
            segments.holders[rows],
            segments.is_wanted[rows],
            counting[rows],
        ],
        schema=SEGMENT_SCHEMA,
    )


def key_columns(numbers_of_keys: NDArray[np.int64], keys: Sequence[Key]) -> list[pa.Array]:
    """Group, topic and partition of each row."""
    rows = pa.array(numbers_of_keys)
    columns: Iterable[tuple[object, ...]] = zip(*keys, strict=True) if keys else ((), (), ())
    return [pa.array(column, type_).take(rows) for column, (_, type_) in zip(columns, WHERE, strict=True)]
