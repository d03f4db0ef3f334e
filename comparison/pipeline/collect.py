"""The edge between Spark and plain Python: fetches what was measured, for all runs in one pass.

Nothing is collected anywhere else, and no Spark row leaves this module: each becomes a typed value of
`comparison.pipeline.measured`, whose types are checked here. The stages are combined so that few Spark jobs run: at
this size a job costs more than its data. For the same reason values are sorted here: a sort in Spark is two jobs more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from comparison.pipeline import (
    commits,
    coordinators,
    counts,
    cover,
    delivery,
    measured,
    measures,
    ownership,
    rebalances,
    windows,
)
from comparison.pipeline.ingest import TOLERANCE_NS
from comparison.pipeline.measured import Measured
from comparison.pipeline.rounds import rounds_of
from comparison.pipeline.server_counters import reading_intervals
from kernel.designs import INCREMENTAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: An operation that ended so close to a reading of the counters may be on either side of it.
READING_SLACK_NS = 50_000_000

#: Events of the runner and the coordinators about the whole group, by kind.
_RUNNER_EVENTS: Mapping[str, type[measured.RunnerEvent]] = MappingProxyType(
    {
        "run_started": measured.RunStarted,
        "run_ended": measured.RunEnded,
        "stage_entered": measured.StageEntered,
        "change_started": measured.ChangeStarted,
        "fault_started": measured.FaultStarted,
        "process_ended": measured.ProcessEnded,
        "counters_read": measured.CounterReading,
    }
)
_GROUP_EVENTS: Mapping[str, type[measured.GroupEvent]] = MappingProxyType(
    {"group_changed": measured.GroupChanged, "group_member_left": measured.GroupMemberLeft}
)
#: Columns that hold JSON.
_JSON_COLUMNS = ("parameters", "detail")

T = TypeVar("T")


def measure(
    spark: SparkSession, flagged: DataFrame, designs: Mapping[int, str], progress: Callable[[str], None]
) -> Mapping[int, Measured]:
    """Measure every run in a table of flagged events, by its number; `designs` has each run's design."""
    events = flagged.where(F.col("problem").isNull())
    found: dict[int, Measured] = defaultdict(Measured)

    progress("what the runner did")
    _single_events(events, found)
    spans = windows.spans(events).cache()
    changes = windows.changes(events).cache()
    for row in spans.collect():
        found[row.run].span = _typed(measured.RunSpan, row)
    for row in sorted(changes.collect(), key=lambda row: row.window):
        found[row.run].changes.append(_typed(measured.ChangeWindow, row))
    changed = windows.change_windows(changes)
    every_window = changed.unionByName(windows.whole_runs(spans))

    progress("counts")
    for row in counts.counts(events, every_window).unionByName(counts.set_aside(flagged)).collect():
        found[row.run].counts.append(_typed(measured.EventCount, row))
    progress("ownership and delivery")
    _coverage(events, spans, changed, every_window, found)
    progress("commits")
    for row in measures.commit_measures(commits.judged(events)).collect():
        found[row.run].commits = _typed(measured.CommitTotals, row)
    for row in commits.final_offsets(events).collect():
        found[row.run].final_offsets = _typed(measured.FinalOffsets, row)
    for row in coordinators.takeovers(events).collect():
        found[row.run].takeovers.append(_typed(measured.Takeover, row))
    for row in coordinators.acting(events).collect():
        found[row.run].acting.append(_typed(measured.Acting, row))
    progress("rebalances")
    for row in rebalances.phases(events).collect():
        found[row.run].phases.append(_typed(measured.MemberPhase, row))
    for each in found.values():
        each.rounds = rounds_of(each.group, each.phases)
    for row in delivery.polls(events, spans).collect():
        found[row.run].delivered.append(_typed(measured.DeliveryBin, row))
    _kept(spark, events, designs, found)
    _operations(spark, events, found)
    spans.unpersist()
    changes.unpersist()
    return found


def _typed(shape: type[T], row: Row) -> T:
    """The row as a typed value, of the columns that `shape` names; raises msgspec.ValidationError for a wrong type."""
    return msgspec.convert(row.asDict(recursive=True), shape)


def _single_events(events: DataFrame, found: dict[int, Measured]) -> None:
    """Events that are used one by one: the runner's, the coordinators' about the group, errors of applications."""
    by_runner = (F.col("role") == "runner") & F.col("kind").isin(*_RUNNER_EVENTS)
    by_coordinator = (F.col("role") == "broker") & F.col("kind").isin(*_GROUP_EVENTS)
    shapes = (*_RUNNER_EVENTS.values(), *_GROUP_EVENTS.values(), measured.MemberFailed)
    fields = dict.fromkeys(name for shape in shapes for name in shape.__struct_fields__)
    rows = events.where(by_runner | by_coordinator | (F.col("kind") == "member_failed")).select(
        "run", "seq", "kind", *fields
    )
    for row in sorted(rows.collect(), key=lambda row: (row.t_ns, row.seq)):
        each = found[row.run]
        values = row.asDict(recursive=True)
        values |= {name: json.loads(values[name]) for name in _JSON_COLUMNS if values[name] is not None}
        if row.kind == "member_failed":
            each.failures.append(msgspec.convert(values, measured.MemberFailed))
        elif row.kind in _GROUP_EVENTS:
            each.group.append(msgspec.convert(values, _GROUP_EVENTS[row.kind]))
        else:
            each.runner.append(msgspec.convert(values, _RUNNER_EVENTS[row.kind]))


def _coverage(
    events: DataFrame, spans: DataFrame, changed: DataFrame, every_window: DataFrame, found: dict[int, Measured]
) -> None:
    """Ownership in its three views and delivery in its two, all by one sweep."""
    believed = ownership.believed(events)
    authority = ownership.authority(events)
    intervals = believed.drop("gone_ns").unionByName(authority).unionByName(ownership.delivering(events))
    wanted = ownership.expected(ownership.known_partitions(events), ownership.wanted_topics(events), spans)
    ends = (
        cover.held(ownership.until_the_end(intervals, spans))
        .unionByName(cover.wanted(wanted))
        .unionByName(cover.held(delivery.delivered_ranges(events)))
        .unionByName(cover.wanted(delivery.acked_ranges(events)))
    )
    for row in measures.coverage(cover.segments(ends), every_window, TOLERANCE_NS).collect():
        found[row.run].coverage[row.window, row.view] = _typed(measured.Coverage, row)
    for row in measures.turnover(believed, changed).collect():
        found[row.run].turnover[row.window] = _typed(measured.Turnover, row)
    for row in measures.owners_around(authority, changed).collect():
        found[row.run].owners[row.window] = [_typed(measured.PartitionOwners, owners) for owners in row.owners]


def _kept(spark: SparkSession, events: DataFrame, designs: Mapping[int, str], found: dict[int, Measured]) -> None:
    """What was kept through each round and delivered during it, in designs that promise it goes on."""
    rows = [
        (run, number, round_.from_ns, round_.until_ns)
        for run, each in found.items()
        for number, round_ in enumerate(each.rounds)
        if designs.get(run) in INCREMENTAL and round_.until_ns is not None
    ]
    if not rows:
        return
    rounds = spark.createDataFrame(rows, "run int, round int, round_from_ns bigint, round_until_ns bigint")
    for row in rebalances.kept_through(events, ownership.believed(events), rounds).collect():
        found[row.run].kept[row["round"]] = _typed(measured.KeptThrough, row)


def _operations(spark: SparkSession, events: DataFrame, found: dict[int, Measured]) -> None:
    """The traced operations between two readings of the servers' counters, where there were any."""
    rows = [
        (run, label, from_ns, until_ns)
        for run, each in found.items()
        for label, (from_ns, until_ns) in reading_intervals(each.runner).items()
    ]
    if not rows:
        return
    readings = spark.createDataFrame(rows, "run int, label string, from_ns bigint, until_ns bigint")
    for row in counts.between_readings(events, readings, READING_SLACK_NS).collect():
        found[row.run].operations.append(_typed(measured.TracedOperations, row))
