"""Who acted as a group's coordinator, and whether the one that was replaced went on.

Coordinator is whichever broker leads the group's partition of the offsets topic. Every takeover of that partition
begins a *term*; what the broker accepts from then on, commits and owners, belongs to its latest one. A broker
that still accepts after another has taken over at a higher leader epoch is *late*: the fence on its storage should
have kept it from acknowledging anything. (What it refuses is no fault: that is how its members learn of the move.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from comparison.pipeline.commits import IN_FLIGHT_NS
from comparison.pipeline.result import Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

OFFSETS_TOPIC = "__consumer_offsets"
_ACCEPTED = ("offset_written", "authority_named")
_NS_PER_MS = 1_000_000
_FOREVER_NS = 1 << 62
_INT32, _INT32_MIN = 1 << 32, -(1 << 31)


def takeovers(events: DataFrame) -> DataFrame:
    """run, t_ns, process, partition, leader_epoch: every time a broker took a partition of the offsets topic."""
    took = (F.col("kind") == "leader_changed") & (F.col("topic") == OFFSETS_TOPIC) & (F.col("leader") >= 0)
    return events.where(took).select("run", "t_ns", "process", "partition", "leader_epoch")


def acting(events: DataFrame) -> DataFrame:
    """run, group, process, from_ns, until_ns, commits: stretches in which one broker after the other accepted what
    belongs to a group; both ends are moments of acceptance.
    """
    per_group = Window.partitionBy("run", "group").orderBy("t_ns", "seq")
    so_far = per_group.rowsBetween(Window.unboundedPreceding, 0)
    another = F.coalesce(F.lag("process").over(per_group) != F.col("process"), F.lit(False)).cast("int")
    return (
        events.where((F.col("role") == "broker") & F.col("kind").isin(*_ACCEPTED))
        .withColumn("another", another)
        .withColumn("stretch", F.sum("another").over(so_far))
        .groupBy("run", "group", "process", "stretch")
        .agg(
            F.min("t_ns").alias("from_ns"),
            F.max("t_ns").alias("until_ns"),
            F.count(F.when(F.col("kind") == "offset_written", 1)).alias("commits"),
        )
        .select("run", "group", "process", "from_ns", "until_ns", "commits")
    )


def terms(takeovers: Sequence[Row], acting: Sequence[Row]) -> list[Term]:
    """The terms of the coordinators of one run's groups, in order; none where leadership was not traced."""
    partitions = 1 + max((row.partition for row in takeovers), default=0)
    found = []
    for group in sorted({row.group for row in acting}):
        place = partition_of(group, partitions)
        took = sorted((row for row in takeovers if row.partition == place), key=lambda row: row.leader_epoch)
        stretches = [row for row in acting if row.group == group]
        found += [_term(group, term, took, stretches) for term in took]
    return found


def _term(group: str, term: Row, took: Sequence[Row], stretches: Sequence[Row]) -> Term:
    later = [other for other in took if other.leader_epoch > term.leader_epoch]
    ends_ns = min((other.t_ns for other in later if other.process == term.process), default=_FOREVER_NS)
    replaced_ns = min((other.t_ns for other in later if other.process != term.process), default=_FOREVER_NS)
    held = [row for row in stretches if row.process == term.process and term.t_ns <= row.from_ns < ends_ns]
    last_ns = max((row.until_ns for row in held), default=None)
    return Term(
        group=group,
        broker=term.process,
        leader_epoch=term.leader_epoch,
        from_ms=round(term.t_ns / _NS_PER_MS, 3),
        commits=sum(row.commits for row in held),
        last_ms=round(last_ns / _NS_PER_MS, 3) if last_ns is not None else None,
        # What was durable before the takeover may be told a little after it.
        late=last_ns is not None and last_ns > replaced_ns + IN_FLIGHT_NS,
    )


def partition_of(group: str, partitions: int) -> int:
    """Where Kafka puts a group: the absolute value of the JVM's String.hashCode, modulo the number of partitions."""
    units = group.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8) + low) % _INT32
    signed = hashed - _INT32 if hashed >= -_INT32_MIN else hashed
    return (0 if signed == _INT32_MIN else abs(signed)) % partitions
