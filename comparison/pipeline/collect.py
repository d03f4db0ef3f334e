"""The edge between Spark and plain Python: what is measured is fetched here, for all runs in one pass.

Nothing is collected anywhere else. The stages are put together so that few Spark jobs run: at this size a job
costs more than its data. For that reason what is fetched is put in order here: a sort in Spark is two jobs more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from comparison.pipeline import commits, coordinators, counts, cover, delivery, measures, ownership, rebalances, windows
from comparison.pipeline.ingest import TOLERANCE_NS
from comparison.pipeline.readings import reading_times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: An operation that ended so close to a reading of the counters may be on either side of it.
READING_SLACK_NS = 50_000_000

_TOLD_BY_RUNNER = (
    "run_started",
    "run_ended",
    "stage_entered",
    "process_ended",
    "fault_started",
    "counters_read",
    "final_offset",
)


@dataclass(slots=True)
class Measured:
    """Everything that was measured of one run; rows by window where they have one."""

    told: list[Row] = field(default_factory=list)
    failures: list[Row] = field(default_factory=list)
    span: Row | None = None
    changes: list[Row] = field(default_factory=list)
    counts: list[Row] = field(default_factory=list)
    stretches: dict[tuple[int, str], Row] = field(default_factory=dict)
    commits: Row | None = None
    final_offsets: Row | None = None
    owners: dict[int, list[tuple[str | None, str | None]]] = field(default_factory=dict)
    stopped: dict[int, int] = field(default_factory=dict)
    phases: list[Row] = field(default_factory=list)
    out_of_order: int = 0
    counters: list[Row] = field(default_factory=list)
    takeovers: list[Row] = field(default_factory=list)
    acting: list[Row] = field(default_factory=list)


def measure(spark: SparkSession, flagged: DataFrame, progress: Callable[[str], None]) -> Mapping[int, Measured]:
    """Measure every run in a table of flagged events, by its number."""
    events = flagged.where(F.col("problem").isNull())
    found: dict[int, Measured] = defaultdict(Measured)

    progress("what the runner did")
    _told(events, found)
    spans = windows.spans(events).cache()
    changes = windows.changes(events).cache()
    for row in spans.collect():
        found[row.run].span = row
    for row in sorted(changes.collect(), key=lambda row: row.window):
        found[row.run].changes.append(row)
    changed = windows.change_windows(changes)
    every_window = changed.unionByName(windows.whole_runs(spans))

    progress("counts")
    for row in counts.counts(events, every_window).unionByName(counts.set_aside(flagged)).collect():
        found[row.run].counts.append(row)
    progress("ownership and delivery")
    _stretches(events, spans, changed, every_window, found)
    progress("commits")
    for row in measures.commit_measures(commits.judged(events)).collect():
        found[row.run].commits = row
    for row in commits.final_offsets(events).collect():
        found[row.run].final_offsets = row
    for row in coordinators.takeovers(events).collect():
        found[row.run].takeovers.append(row)
    for row in coordinators.acting(events).collect():
        found[row.run].acting.append(row)
    progress("rebalances")
    for row in sorted(rebalances.phase_times(rebalances.phases(events)).collect(), key=lambda row: row.phase):
        found[row.run].phases.append(row)
    for row in delivery.out_of_order(events).collect():
        found[row.run].out_of_order = row.out_of_order
    _counters(spark, events, found)
    spans.unpersist()
    changes.unpersist()
    return found


def _told(events: DataFrame, found: dict[int, Measured]) -> None:
    """What is told once and read as it stands: the runner's own events, and errors that reached applications."""
    told = F.col("role").isin("runner") & F.col("kind").isin(*_TOLD_BY_RUNNER)
    columns = (
        "run",
        "t_ns",
        "seq",
        "kind",
        "process",
        "parameters",
        "outcome",
        "error",
        "target",
        "how",
        "stage",
        "fault",
        "server",
        "namespace",
        "reads",
        "writes",
        "at",
    )
    rows = events.where(told | (F.col("kind") == "member_failed")).select(*columns)
    for row in sorted(rows.collect(), key=lambda row: (row.t_ns, row.seq)):
        (found[row.run].failures if row.kind == "member_failed" else found[row.run].told).append(row)


def _stretches(
    events: DataFrame, spans: DataFrame, changed: DataFrame, every_window: DataFrame, found: dict[int, Measured]
) -> None:
    """Ownership in its three views and delivery in its two, all by one sweep."""
    believed = ownership.believed(events)
    authority = ownership.authority(events)
    intervals = believed.drop("gone_ns").unionByName(authority).unionByName(ownership.delivering(events))
    ends = (
        cover.held(ownership.until_the_end(intervals, spans))
        .unionByName(cover.wanted(ownership.expected(ownership.known_partitions(events), spans)))
        .unionByName(cover.held(delivery.delivered_ranges(events)))
        .unionByName(cover.wanted(delivery.acked_ranges(events)))
    )
    for row in measures.stretch_measures(cover.segments(ends), every_window, TOLERANCE_NS).collect():
        found[row.run].stretches[row.window, row.view] = row
    for row in measures.stopped_partitions(believed, changed).collect():
        found[row.run].stopped[row.window] = row.stopped
    for row in measures.owners_around(authority, changed).collect():
        found[row.run].owners[row.window] = [(pair.before, pair.after) for pair in row.owners]


def _counters(spark: SparkSession, events: DataFrame, found: dict[int, Measured]) -> None:
    """The traced operations between two readings of the servers' counters, where there were any."""
    rows = [
        (run, label, from_ns, until_ns)
        for run, measured in found.items()
        for label, (from_ns, until_ns) in reading_times(measured.told).items()
    ]
    if not rows:
        return
    readings = spark.createDataFrame(rows, "run int, label string, from_ns bigint, until_ns bigint")
    for row in counts.between_readings(events, readings, READING_SLACK_NS).collect():
        found[row.run].counters.append(row)
