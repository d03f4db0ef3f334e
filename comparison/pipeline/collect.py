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
from comparison.pipeline.rounds import Round, rounds_of
from kernel.designs import INCREMENTAL

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
    "change_started",
    "counters_read",
    "final_offset",
)
_TOLD_BY_COORDINATOR = ("group_changed", "group_member_left")


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
    owners: dict[int, list[Row]] = field(default_factory=dict)
    turnover: dict[int, Row] = field(default_factory=dict)
    group: list[Row] = field(default_factory=list)
    phases: list[Row] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    kept: dict[int, Row] = field(default_factory=dict)
    polls: list[Row] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    takeovers: list[Row] = field(default_factory=list)
    acting: list[Row] = field(default_factory=list)


def measure(
    spark: SparkSession, flagged: DataFrame, designs: Mapping[int, str], progress: Callable[[str], None]
) -> Mapping[int, Measured]:
    """Measure every run in a table of flagged events, by its number; `designs` says of which design each is."""
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
    for row in rebalances.phases(events).collect():
        found[row.run].phases.append(row)
    for measured in found.values():
        measured.rounds = rounds_of(measured.group, measured.phases)
    for row in delivery.polls(events, spans).collect():
        found[row.run].polls.append(row)
    _kept(spark, events, designs, found)
    _counters(spark, events, found)
    spans.unpersist()
    changes.unpersist()
    return found


def _told(events: DataFrame, found: dict[int, Measured]) -> None:
    """What is told once and read as it stands: the runner's own events, what coordinators told of the group as a
    whole, and errors that reached applications.
    """
    told = (F.col("role") == "runner") & F.col("kind").isin(*_TOLD_BY_RUNNER)
    coordinated = (F.col("role") == "broker") & F.col("kind").isin(*_TOLD_BY_COORDINATOR)
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
        "detail",
        "server",
        "namespace",
        "reads",
        "writes",
        "at",
        "group",
        "state",
        "generation",
        "members",
        "id",
        "reason",
    )
    rows = events.where(told | coordinated | (F.col("kind") == "member_failed")).select(*columns)
    for row in sorted(rows.collect(), key=lambda row: (row.t_ns, row.seq)):
        measured = found[row.run]
        if row.kind == "member_failed":
            measured.failures.append(row)
        else:
            (measured.group if row.kind in _TOLD_BY_COORDINATOR else measured.told).append(row)


def _stretches(
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
    for row in measures.stretch_measures(cover.segments(ends), every_window, TOLERANCE_NS).collect():
        found[row.run].stretches[row.window, row.view] = row
    for row in measures.turnover(believed, changed).collect():
        found[row.run].turnover[row.window] = row
    for row in measures.owners_around(authority, changed).collect():
        found[row.run].owners[row.window] = row.owners


def _kept(spark: SparkSession, events: DataFrame, designs: Mapping[int, str], found: dict[int, Measured]) -> None:
    """What was kept through each round and delivered meanwhile, where a design says that what is kept goes on."""
    rows = [
        (run, number, each.from_ns, each.until_ns)
        for run, measured in found.items()
        for number, each in enumerate(measured.rounds)
        if designs.get(run) in INCREMENTAL and each.until_ns is not None
    ]
    if not rows:
        return
    rounds = spark.createDataFrame(rows, "run int, round int, round_from_ns bigint, round_until_ns bigint")
    for row in rebalances.kept_through(events, ownership.believed(events), rounds).collect():
        found[row.run].kept[row["round"]] = row


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
