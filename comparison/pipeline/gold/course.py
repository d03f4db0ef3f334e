"""The run's course: in each interval, how many records were delivered, how many of them again, and what was left to do.

Everything is counted from where a partition's records began in this run, so that the sums over partitions are sums of
records. What is measured of several sets of partitions adds up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.measured import CourseInterval
from comparison.pipeline.silver.arrays import (
    ends,
    from_zero,
    highest,
    integers,
    lowest_over,
    numbers,
    previous,
    ranked,
    starts,
    taken,
    together,
)
from comparison.pipeline.silver.course import intervals_of
from comparison.pipeline.silver.lives import lives_of
from comparison.pipeline.silver.naming import keys_of
from comparison.pipeline.silver.offsets import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.measured import RunSpan
    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.reduce import Bundle

    Numbers = NDArray[np.int64]

_KEY = ("group", "topic", "partition")
NO_OFFSET = np.iinfo(np.int64).max

#: One row an interval of the measured span.
COURSE_SCHEMA = pa.schema(
    [
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("delivered", pa.int64()),
        ("duplicates", pa.int64()),
        ("undelivered", pa.int64()),
        ("lag", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Course:
    """Of some partitions, by interval; `undelivered` and `lag` at its end."""

    delivered: Numbers
    duplicates: Numbers
    undelivered: Numbers
    lag: Numbers
    is_empty: bool  #: nothing was delivered, committed or acknowledged
    log_is_known: bool  #: records were acknowledged: without, nobody knows how far a log reaches

    def __add__(self, other: Course) -> Course:
        return Course(
            self.delivered + other.delivered,
            self.duplicates + other.duplicates,
            self.undelivered + other.undelivered,
            self.lag + other.lag,
            is_empty=self.is_empty and other.is_empty,
            log_is_known=self.log_is_known or other.log_is_known,
        )


def course_of(bundle: Bundle, context: Context) -> Course:
    """The course of a bundle's partitions, whole."""
    count = intervals_of(context.span).count
    steps, produced, commits = bundle.steps, of_readers(bundle.produced, context), _commits(bundle, context)
    keys = _keys([(steps, "first"), (produced, "first"), (commits, "offset")], context)
    of_steps, of_produced, of_commits = np.split(keys, np.cumsum([len(steps), len(produced)]))
    at, first, end = (integers(steps[name]) for name in ("interval", "first", "end"))
    end = np.maximum(first, end)
    produced_at, produced_end = integers(produced["interval"]), integers(produced["end"])
    committed_at, committed = integers(commits["interval"]), integers(commits["offset"])
    begins = _begins((of_steps, of_produced), (first, integers(produced["first"])), (of_commits, committed))
    delivered = np.zeros(count, dtype=np.int64)
    inside = (at >= 0) & (at < count)
    np.add.at(delivered, at[inside], (end - first)[inside])
    reached = _sums(_rising(of_steps, at, end, begins), begins, count)
    everything = np.concatenate([of_steps, of_produced, of_commits])
    everywhen = np.concatenate([at, produced_at, committed_at])
    ends_ = np.concatenate([end, produced_end, committed])
    log_end = _sums(_rising(everything, everywhen, ends_, begins), begins, count)
    return Course(
        delivered=delivered,
        duplicates=_again(of_steps, at, first, end, count),
        undelivered=log_end - reached,
        lag=log_end - _sums((of_commits, committed_at, committed), begins, count),
        is_empty=not len(keys),
        log_is_known=len(produced) > 0,
    )


def _keys(tables: Sequence[tuple[pa.Table, str]], context: Context) -> Numbers:
    """A number for each life of each partition, in the rows of tables with a column of offsets."""
    keys, _ = keys_of(pa.concat_tables([table.select(_KEY) for table, _ in tables]))
    lives = np.concatenate([lives_of(table, offset, context) for table, offset in tables])
    return ranked(together(keys, from_zero(lives)))[1]


def of_readers(produced: pa.Table, context: Context) -> pa.Table:
    """What was acknowledged, for every group that reads the topic."""
    topics = pa.compute.unique(produced["topic"]).to_pylist()
    found = [produced.append_column("group", pa.nulls(len(produced), pa.string())).slice(0, 0)]
    for topic in topics:
        rows = produced.filter(pa.compute.equal(produced["topic"], topic))
        found += [
            rows.append_column("group", pa.repeat(group, len(rows))) for group in context.memberships.readers(topic)
        ]
    return pa.concat_tables(found)


def _commits(bundle: Bundle, context: Context) -> pa.Table:
    """Accepted commits, in the order in which the authority saw them."""
    rows = bundle.offsets.filter(pa.compute.equal(bundle.offsets["kind"], WRITTEN))
    t_ns = integers(rows["t_ns"])
    rows = rows.append_column("interval", pa.array(intervals_of(context.span).numbers(t_ns)))
    return rows.take(np.lexsort((integers(rows["seq"]), t_ns)))


def _begins(keys: Sequence[Numbers], firsts: Sequence[Numbers], commits: tuple[Numbers, Numbers]) -> Numbers:
    """The first offset of each key: of a delivered or acknowledged record, otherwise that of a commit."""
    count = 1 + max((int(each.max(initial=-1)) for each in (*keys, commits[0])), default=-1)
    found, committed = (np.full(count, NO_OFFSET) for _ in range(2))
    for of_key, first in zip(keys, firsts, strict=True):
        np.minimum.at(found, of_key, first)
    np.minimum.at(committed, *commits)
    return np.where(found == NO_OFFSET, committed, found)


def _rising(keys: Numbers, at: Numbers, offsets: Numbers, begins: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The rows by time, each with the largest offset of its key so far."""
    order = np.lexsort((at, keys))
    keys, at = keys[order], at[order]
    return keys, at, highest(np.maximum(offsets[order], begins[keys]), starts(keys))


def _sums(rows: tuple[Numbers, Numbers, Numbers], begins: Numbers, count: int) -> Numbers:
    """The sum over all keys of the last offset by the end of each interval, counted from the key's first one.

    Rows are key, interval and offset, those of a key in order.
    """
    keys, at, offsets = rows
    order = np.argsort(keys, kind="stable")
    keys, at, offsets = keys[order], at[order], offsets[order]
    before = taken(offsets, previous(starts(keys)), 0)
    change = offsets - np.where(starts(keys), begins[keys], before)
    found = np.zeros(count + 1, dtype=np.int64)
    np.add.at(found, np.clip(at, 0, count), change)
    return np.cumsum(found)[:count]


def _again(keys: Numbers, at: Numbers, first: Numbers, end: Numbers, count: int) -> Numbers:
    """How many of the records delivered in each interval the group had been handed before, or twice in it."""
    found = np.zeros(count, dtype=np.int64)
    order = np.lexsort((first, keys))
    keys, at, first, end = keys[order], at[order], first[order], end[order]
    apart = starts(keys)
    apart[1:] |= first[1:] >= highest(end, starts(keys))[:-1]
    begin, last = ends(apart)
    several = (last > begin)[numbers(apart)]  # only records that are near others can be among them
    several &= end > first
    keys, at, first, end = keys[several], at[several], first[several], end[several]
    inside = (at >= 0) & (at < count)
    np.add.at(found, at[inside], (end - first)[inside])
    # Between neighbouring ends of ranges records have the same fate: the first delivery of each is not one again.
    of_edge, edges = np.tile(keys, 2), np.append(first, end)
    order = np.lexsort((edges, of_edge))
    distinct = starts(of_edge[order], edges[order])
    places = np.empty(len(edges), dtype=np.int64)
    places[order] = numbers(distinct)
    lengths = np.diff(edges[order][distinct], append=0)
    lows, highs = np.split(places, 2)
    first_at = lowest_over(lows, highs, at, len(lengths), otherwise=count)
    new = (first_at >= 0) & (first_at < count)
    np.subtract.at(found, first_at[new], lengths[new])
    return found


def course_table(course: Sequence[CourseInterval]) -> pa.Table:
    """COURSE_SCHEMA."""
    return pa.table({name: [getattr(each, name) for each in course] for name in COURSE_SCHEMA.names}, COURSE_SCHEMA)


def course_rows(course: Course | None, span: RunSpan) -> list[CourseInterval]:
    """A row for each interval; none of a run in which nothing happened."""
    if course is None or course.is_empty:
        return []
    intervals = intervals_of(span)
    return [
        CourseInterval(
            from_ns=intervals.start_ns + number * intervals.length_ns,
            until_ns=min(intervals.start_ns + (number + 1) * intervals.length_ns, span.end_ns),
            delivered=delivered,
            duplicates=duplicates,
            undelivered=undelivered if course.log_is_known else None,
            lag=lag if course.log_is_known else None,
        )
        for number, (delivered, duplicates, undelivered, lag) in enumerate(
            zip(
                course.delivered.tolist(),
                course.duplicates.tolist(),
                course.undelivered.tolist(),
                course.lag.tolist(),
                strict=True,
            )
        )
    ]
