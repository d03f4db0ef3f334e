"""Measure some partitions of one run, whole: what a task does for a bucket of them, and a test for all.

What is measured of several sets of partitions of one run adds up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from comparison.ownership.cover import cut, united
from comparison.pipeline.gold import cover, pauses, standstills
from comparison.pipeline.gold.commits import COMMIT_SCHEMA, final_offsets, judged
from comparison.pipeline.gold.course import Course, course_of
from comparison.pipeline.gold.cover import SEGMENT_SCHEMA, Ranges
from comparison.pipeline.gold.identities import Use, groupless, uses_of
from comparison.pipeline.gold.line_keys import Keys
from comparison.pipeline.gold.old_offsets import old_offsets_used
from comparison.pipeline.gold.ownership import INTERVAL_SCHEMA, authority, believed, delivering
from comparison.pipeline.gold.skips import unpromised, without
from comparison.pipeline.gold.standstills import standstills_of
from comparison.pipeline.gold.turnover import added_kept, kept_through, owners_around
from comparison.pipeline.measured import (  # noqa: TC001 - typed_rows reads the annotations
    FirstOverlap,
    KeptThrough,
    PartitionOwners,
)
from comparison.pipeline.measured_offsets import FinalOffsets, Skip
from comparison.pipeline.measured_pauses import Pauses  # noqa: TC001 - likewise
from comparison.pipeline.measured_standstills import Standstills  # noqa: TC001 - likewise
from comparison.pipeline.silver.arrays import (
    NOWHERE,
    as_of,
    codes,
    from_zero,
    integers,
    previous,
    starts,
    taken,
    together,
)
from comparison.pipeline.silver.deliveries import NO_SERIAL, owners_of
from comparison.pipeline.silver.lives import as_traced, lives_of
from comparison.pipeline.silver.naming import Names
from comparison.pipeline.silver.offsets import FINAL, STARTED
from comparison.pipeline.silver.reduce import bucket_of_topic
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING, OFFSETS, OVER_TIME, SERIALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.naming import Key
    from comparison.pipeline.silver.reduce import Bundle

_FOREVER = 1 << 62
T = TypeVar("T")


@dataclass(slots=True)
class PartitionFigures:
    """What was measured of a set of partitions beside their tables, and is no query over these."""

    first_overlaps: dict[str, FirstOverlap] = field(default_factory=dict)  #: by view
    owners: dict[int, list[PartitionOwners]] = field(default_factory=dict)
    kept: dict[int, KeptThrough] = field(default_factory=dict)
    memberless_ns: int = 0  #: of all partitions
    left_unnamed: int = 0  #: partitions that should have had an owner at the end of the last change, and had none
    skips: list[Skip] = field(default_factory=list)
    standstills: Standstills | None = None
    pauses: Pauses | None = None
    started_behind: int = 0
    reset_behind: int = 0
    final_offsets: FinalOffsets | None = None
    old_offsets_used: int | None = None  #: None: no recreated topic was begun
    out_of_order: int = 0
    course: Course | None = None
    uses: list[Use] = field(default_factory=list)
    groupless: set[str] = field(default_factory=set)


#: The tables of partitions, and their columns beside those that say which run a row is of.
TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {"ownership": INTERVAL_SCHEMA, "segments": SEGMENT_SCHEMA, "commits": COMMIT_SCHEMA}
)


class PartitionTables(NamedTuple):
    """Who had each of a set of partitions, the stretches that were counted, and the commits; in the order of TABLES."""

    intervals: pa.Table  #: INTERVAL_SCHEMA
    segments: pa.Table  #: SEGMENT_SCHEMA
    committed: pa.Table  #: COMMIT_SCHEMA


def measure_partitions(
    bundle: Bundle, context: Context, bucket: int = 0, buckets: int = 1
) -> tuple[PartitionFigures, PartitionTables]:
    """Measure the partitions of one bucket of several; `bundle` has all their rows."""
    keys = Keys()
    believes = believed(bundle.claims, context)
    names = authority(bundle.naming)
    delivers = delivering(bundle.stretches, bundle.claims)
    wanted, memberless_ns = wanted_ranges(keys, bundle, context, bucket, buckets)
    commits = judged(bundle.offsets, bundle.naming, context)
    handed = _records(keys, bundle.stretches, "first", "end")
    skips, not_due = unpromised(keys, bundle, handed, context)
    found = PartitionFigures(
        owners=owners_around(names, context.change_windows),
        kept=kept_through(believes, bundle.in_rounds, context.rounds) if context.keeps else {},
        memberless_ns=memberless_ns,
        skips=skips,
        standstills=standstills_of(bundle, believes, keys.by_partition(wanted), context),
        pauses=pauses.pauses_of(bundle, context),
        started_behind=int(commits.starts_behind.sum()),
        reset_behind=int(commits.resets_behind.sum()),
        final_offsets=final_offsets(bundle.offsets),
        old_offsets_used=old_offsets_used(bundle, context),
        out_of_order=_out_of_order(bundle),
        course=course_of(bundle, context),
        uses=uses_of(pa.concat_tables([believes, delivers]), context),
        groupless=groupless([bundle.claims, bundle.stretches, _started(bundle)], context),
    )
    nothing, named = Ranges.none(), _over_time(keys, names, context)
    found.left_unnamed = _left_unnamed(wanted, named, context)
    views = {
        BELIEVED: (_over_time(keys, believes, context), wanted),
        AUTHORITY: (named, wanted),
        DELIVERING: (_over_time(keys, delivers, context), nothing),
        OFFSETS: (handed, nothing),
        SERIALS: (
            _records(keys, bundle.stretches, "serial_first", "serial_end"),
            _due(keys, bundle, context, not_due),
        ),
    }
    tables = []
    for view, (held, needed) in views.items():
        segments = cover.segments_of(held, needed)
        overlaps = cover.overlaps_of(segments, context.tolerance_ns if view in OVER_TIME else 0)
        if first := cover.first_overlap(overlaps, held, keys.meanings, keys.owners.texts):
            found.first_overlaps[view] = first
        table = cover.segment_table(view, segments, overlaps, keys.meanings)
        tables.append(_segments_as_traced(table, context) if view == OFFSETS else table)
    intervals = pa.concat_tables([believes, names, delivers])
    committed = as_traced(commits.commits(), ["offset"], context)
    return found, PartitionTables(intervals, pa.concat_tables(tables), committed)


def _segments_as_traced(table: pa.Table, context: Context) -> pa.Table:
    """Stretches of offsets as they were traced, without those between two lives of a topic, which were no offsets."""
    within = lives_of(table, "low", context) == lives_of(table, "high", context)
    return as_traced(table if within.all() else table.filter(pa.array(within)), ["low", "high"], context)


def _over_time(keys: Keys, intervals: pa.Table, context: Context) -> Ranges:
    """Intervals as ranges: open ones reach to the end of the run's span, and nothing goes beyond it."""
    end_ns = context.span.end_ns
    highs = np.minimum(integers(intervals["until_ns"], null=end_ns), end_ns)
    return Ranges(keys.column(intervals), integers(intervals["from_ns"]), highs, keys.owners.column(intervals["owner"]))


def _records(keys: Keys, stretches: pa.Table, first: str, end: str) -> Ranges:
    lows, highs = integers(stretches[first]), integers(stretches[end])
    numbered = lows != NO_SERIAL
    owners = keys.owners.column(owners_of(stretches))
    return Ranges(keys.column(stretches)[numbered], lows[numbered], highs[numbered], owners[numbered])


def _due(keys: Keys, bundle: Bundle, context: Context, not_due: Mapping[Key, Sequence[tuple[int, int]]]) -> Ranges:
    """The serial numbers of what each group should be handed: every acknowledged record of the topics that it reads.

    `not_due` has the offsets of others, by partition.
    """
    topics, names = codes(bundle.acks["topic"])
    readers = [context.memberships.readers(str(name)) for name in names]
    shares = []
    for group in sorted({group for several in readers for group in several}):
        reads = np.array([group in several for several in readers], dtype=np.bool_)[topics]
        acks = bundle.acks.filter(pa.array(reads))
        shares.append(acks.append_column("group", pa.repeat(group, len(acks))))
    if not shares:
        return Ranges.none()
    acks = pa.concat_tables(shares)
    numbers, lows, highs = keys.column(acks), integers(acks["first"]), integers(acks["end"])
    if not_due:
        offsets, meanings = integers(acks["offset"]), keys.meanings
        columns = (column.tolist() for column in (numbers, lows, highs, offsets - lows))
        kept = [
            (number, first - ahead, end - ahead)
            for number, low, high, ahead in zip(*columns, strict=True)
            for first, end in without([(low + ahead, high + ahead)], not_due.get(meanings[number], ()))
        ]
        numbers, lows, highs = np.array(kept, dtype=np.int64).reshape(-1, 3).T
    return cover.united(Ranges(numbers, lows, highs))


def wanted_ranges(keys: Keys, bundle: Bundle, context: Context, bucket: int, buckets: int) -> tuple[Ranges, int]:
    """Every known partition should have an owner while it exists, its group has a member, and that wants the topic.

    The second value is for how long the group wanted them and had no member, in nanoseconds over all partitions.

    Known are those with acknowledged records or with owners, and those that the group was asked to take. A topic that
    goes on being wanted is wanted in one piece, so that a gap is not cut where the group is asked again.
    """
    known = known_partitions(bundle, context)
    for each in context.wanted:
        at = bucket_of_topic(each.topic)
        known |= {
            (group, each.topic, number)
            for group in context.memberships.readers(each.topic)
            for number in range(each.count)
            if (at + number) % buckets == bucket
        }
    by_topic: dict[str, list[tuple[int, int, int]]] = {}
    for each in context.wanted:
        until_ns = each.until_ns if each.until_ns is not None else _FOREVER
        by_topic.setdefault(each.topic, []).append((each.count, each.from_ns, until_ns))
    always = [(_FOREVER, -_FOREVER, _FOREVER)]
    rows = [
        (keys.number(key), max(context.span.start_ns, from_ns), min(context.span.end_ns, until_ns))
        for key in sorted(known)
        for count, from_ns, until_ns in by_topic.get(key[1], always)
        if key[2] < count
    ]
    numbers, lows, highs = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    asked = cover.united(Ranges(numbers, lows, highs).not_empty())
    present, meanings = _present(context), keys.meanings
    every = set(asked.keys.tolist())
    existing = {key: context.existing[where] for key in every if (where := meanings[key][1:]) in context.existing}
    wanted = _cut(asked, existing)
    with_members = _cut(wanted, {key: present[group] for key in every if (group := meanings[key][0]) in present})
    return with_members, int((wanted.highs - wanted.lows).sum() - (with_members.highs - with_members.lows).sum())


def _left_unnamed(wanted: Ranges, named: Ranges, context: Context) -> int:
    if not context.change_windows:
        return 0
    end_ns = context.change_windows[-1].until_ns
    should, did = (set(each.keys[(each.lows < end_ns) & (each.highs >= end_ns)].tolist()) for each in (wanted, named))
    return len(should - did)


def _cut(ranges: Ranges, to: Mapping[int, Sequence[tuple[int, int]]]) -> Ranges:
    """What of the ranges is within those for their keys; all of it for a key without any."""
    columns = (column.tolist() for column in (ranges.keys, ranges.lows, ranges.highs))
    parts = [
        (key, first, end)
        for key, low, high in zip(*columns, strict=True)
        for first, end in cut(to.get(key, [(low, high)]), low, high)
    ]
    return Ranges(*np.array(parts, dtype=np.int64).reshape(-1, 3).T)


def _present(context: Context) -> dict[str, list[tuple[int, int]]]:
    """When each group had a member, where members were traced."""
    lives: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for life in context.lives:
        lives[context.memberships.group(life.process, life.member)].append((life.from_ns, life.until_ns))
    return {group: united(of_one) for group, of_one in lives.items()}


def known_partitions(bundle: Bundle, context: Context) -> set[Key]:
    finals = bundle.offsets.filter(pa.compute.equal(bundle.offsets["kind"], FINAL))
    named = bundle.naming.filter(pa.compute.is_null(bundle.naming["reason"]))
    assigned = bundle.claims.filter(pa.compute.equal(bundle.claims["kind"], "partitions_assigned"))
    columns = ["group", "topic", "partition"]
    rows = pa.concat_tables([table.select(columns) for table in (finals, named, assigned)])
    distinct = rows.group_by(columns, use_threads=False).aggregate([])
    known: set[Key] = {(row["group"], row["topic"], row["partition"]) for row in distinct.to_pylist()}
    acked = bundle.acks.group_by(["topic", "partition"], use_threads=False).aggregate([])
    for row in acked.to_pylist():
        known |= {(group, row["topic"], row["partition"]) for group in context.memberships.readers(row["topic"])}
    return known


def _out_of_order(bundle: Bundle) -> int:
    """Stretches of a stream that begin before the end of its previous one, without a start of delivery in between."""
    stretches = bundle.stretches
    started = _started(bundle)
    owners = Names()
    who = np.concatenate([owners.column(owners_of(stretches)), owners.column(started["by"])])
    columns = ["topic", "partition"]
    both = pa.concat_tables([stretches.select(columns), started.select(columns)])
    partitions = integers(both["partition"])
    lines = together(who, codes(both["topic"])[0], from_zero(partitions))
    seq, mine = integers(stretches["seq"]), lines[: len(stretches)]
    # A start is traced by the same process, so that its place among the polls follows from `seq`.
    started_at = lines[len(stretches) :], integers(started["seq"])
    begun = as_of((mine, seq), started_at)
    begun_at_last = as_of((mine, integers(stretches["seq_last"])), started_at)
    order = np.lexsort((seq, mine))
    before = previous(starts(mine[order]))
    goes_back = integers(stretches["first"])[order] < taken(integers(stretches["end"])[order], before, 0)
    same_start = begun[order] == taken(begun_at_last[order], before, NOWHERE)
    return int(((before != NOWHERE) & same_start & goes_back).sum())


def _started(bundle: Bundle) -> pa.Table:
    return bundle.offsets.filter(pa.compute.equal(bundle.offsets["kind"], STARTED))


def added(parts: Sequence[PartitionFigures]) -> PartitionFigures:
    """The figures of several sets of partitions of one run together."""
    finals, courses = _known(part.final_offsets for part in parts), _known(part.course for part in parts)
    return PartitionFigures(
        first_overlaps=_earliest(part.first_overlaps for part in parts),
        owners=_together(part.owners for part in parts),
        kept=added_kept(part.kept for part in parts),
        skips=[skip for part in parts for skip in part.skips],
        standstills=standstills.added(part.standstills for part in parts),
        pauses=pauses.added(part.pauses for part in parts),
        memberless_ns=sum(part.memberless_ns for part in parts),
        left_unnamed=sum(part.left_unnamed for part in parts),
        started_behind=sum(part.started_behind for part in parts),
        reset_behind=sum(part.reset_behind for part in parts),
        final_offsets=FinalOffsets(
            read=sum(final.read for final in finals),
            behind=sum(final.behind for final in finals),
            beyond=sum(final.beyond for final in finals),
        )
        if finals
        else None,
        old_offsets_used=sum(of_old) if (of_old := _known(part.old_offsets_used for part in parts)) else None,
        out_of_order=sum(part.out_of_order for part in parts),
        course=reduce(add, courses) if courses else None,
        uses=[use for part in parts for use in part.uses],
        groupless={process for part in parts for process in part.groupless},
    )


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _earliest(parts: Iterable[Mapping[str, FirstOverlap]]) -> dict[str, FirstOverlap]:
    found: dict[str, FirstOverlap] = {}
    for part in parts:
        for view, each in part.items():
            found[view] = min(each, found.get(view, each), key=astuple)
    return found


def _together(parts: Iterable[Mapping[int, list[PartitionOwners]]]) -> dict[int, list[PartitionOwners]]:
    found: dict[int, list[PartitionOwners]] = {}
    for part in parts:
        for window, owners in part.items():
            found.setdefault(window, []).extend(owners)
    return {window: sorted(owners, key=lambda each: (each.topic, each.partition)) for window, owners in found.items()}
