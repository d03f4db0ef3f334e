"""Reduce stretches, commits and intervals to one row per run and window: the last stages before the edge."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from comparison.pipeline.delivery import OFFSETS, SERIALS
from comparison.pipeline.windows import WHOLE_RUN

#: The suffix of a restarted process: m3, m3.2, m3.3.
LATER_LIFE = r"\.\d+$"


def coverage(segments: DataFrame, windows: DataFrame, tolerance_ns: int) -> DataFrame:
    """run, window, view, held, gap, gap_longest, doubled, doubled_count, doubled_longest, unsettled_until,
    doubled_first.

    Lengths are in the view's own unit: nanoseconds, or records. `doubled` counts every holder beyond the first.
    Overlaps in time no longer than the tolerance are not overlaps. `unsettled_until` is the end of the last
    stretch in the window in which a partition did not have exactly one owner (null: it always had).
    """
    by_number = F.col("view").isin(SERIALS, OFFSETS)
    meets = (F.col("low") < F.col("window_until_ns")) & (F.col("high") > F.col("window_from_ns"))
    # Record numbers are not times, so they belong to no change.
    inside = meets & (~by_number | (F.col("window") == WHOLE_RUN))
    length = F.when(by_number, F.col("high") - F.col("low")).otherwise(
        F.least("high", "window_until_ns") - F.greatest("low", "window_from_ns")
    )
    is_gap = F.col("is_wanted") & (F.col("holders") == 0)
    is_doubled = (F.col("holders") > 1) & (by_number | (F.col("high") - F.col("low") > tolerance_ns))
    evidence = F.struct("low", "high", "topic", "partition", "owner", "other")
    return (
        segments.join(F.broadcast(windows), on="run", how="inner")
        .where(inside)
        .withColumn("length", length)
        .groupBy("run", "window", "view")
        .agg(
            F.sum(F.when(F.col("holders") > 0, F.col("length")).otherwise(0)).alias("held"),
            F.sum(F.when(is_gap, F.col("length")).otherwise(0)).alias("gap"),
            F.max(F.when(is_gap, F.col("length"))).alias("gap_longest"),
            F.sum(F.when(is_doubled, F.col("length") * (F.col("holders") - 1)).otherwise(0)).alias("doubled"),
            F.count(F.when(is_doubled, 1)).alias("doubled_count"),
            F.max(F.when(is_doubled, F.col("length"))).alias("doubled_longest"),
            F.max(F.when(F.col("is_wanted") & (is_gap | is_doubled), F.col("high"))).alias("unsettled_until"),
            F.min(F.when(is_doubled, evidence)).alias("doubled_first"),
        )
        .select(
            "run",
            "window",
            "view",
            "held",
            "gap",
            "gap_longest",
            "doubled",
            "doubled_count",
            "doubled_longest",
            "unsettled_until",
            "doubled_first",
        )
    )


def commit_measures(judged: DataFrame) -> DataFrame:
    """run, written, stale_writes, moved_back, moved_back_records, old_accepted, refused, fenced, delivered,
    stale_delivered (records delivered by a non-owner), started_behind.
    """
    is_write = F.col("kind") == "offset_written"
    is_delivery = F.col("kind") == "records_delivered"
    return (
        judged.groupBy("run")
        .agg(
            F.count(F.when(is_write, 1)).alias("written"),
            F.count(F.when(is_write & F.col("is_stale"), 1)).alias("stale_writes"),
            F.count("moved_back_by").alias("moved_back"),
            F.coalesce(F.sum("moved_back_by"), F.lit(0)).alias("moved_back_records"),
            F.count(F.when(F.col("is_old"), 1)).alias("old_accepted"),
            F.count(F.when(F.col("kind") == "offset_refused", 1)).alias("refused"),
            F.count(F.when(F.col("is_fenced"), 1)).alias("fenced"),
            F.sum(F.when(is_delivery, F.col("records")).otherwise(0)).alias("delivered"),
            F.sum(F.when(is_delivery & F.col("is_stale"), F.col("records")).otherwise(0)).alias("stale_delivered"),
            F.count(F.when(F.col("starts_behind"), 1)).alias("started_behind"),
        )
        .select(
            "run",
            "written",
            "stale_writes",
            "moved_back",
            "moved_back_records",
            "old_accepted",
            "refused",
            "fenced",
            "delivered",
            "stale_delivered",
            "started_behind",
        )
    )


def turnover(believed: DataFrame, windows: DataFrame) -> DataFrame:
    """run, window, moved, stopped, stopped_kept: how often a partition moved to another member; was taken from one
    that stayed; and, of these, was given back to the same one.

    A member that was restarted, also after its removal, is the same member.
    """
    line = Window.partitionBy("run", "topic", "partition").orderBy("from_ns", "owner")
    base = F.regexp_replace(F.element_at(F.split("owner", "/"), 1), LATER_LIFE, "")
    before = F.col("before")
    same_again = (before.base == F.col("base")) & (
        (before.closed_by == "lost") | F.coalesce(before.gone_ns <= F.col("from_ns"), F.lit(False))
    )
    moves = (before.owner != F.col("owner")) & ~same_again & _within(F.col("from_ns"))
    stayed = F.col("gone_ns").isNull() | (F.col("gone_ns") >= F.col("window_until_ns"))
    stops = F.col("closed_by").isin("revoked", "lost") & stayed & _within(F.col("until_ns"))
    return (
        believed.withColumn("base", base)
        .withColumn("before", F.lag(F.struct("owner", "base", "closed_by", "gone_ns")).over(line))
        .withColumn("owner_after", F.lead("owner").over(line))
        .join(F.broadcast(windows), on="run", how="inner")
        .withColumn("moves", F.coalesce(moves, F.lit(False)))
        .withColumn("stops", F.coalesce(stops, F.lit(False)))
        .where(F.col("moves") | F.col("stops"))
        .groupBy("run", "window")
        .agg(
            F.count(F.when(F.col("moves"), 1)).alias("moved"),
            F.count(F.when(F.col("stops"), 1)).alias("stopped"),
            F.count(F.when(F.col("stops") & (F.col("owner_after") == F.col("owner")), 1)).alias("stopped_kept"),
        )
        .select("run", "window", "moved", "stopped", "stopped_kept")
    )


def _within(moment: Column) -> Column:
    return (moment >= F.col("window_from_ns")) & (moment < F.col("window_until_ns"))


def owners_around(authority: DataFrame, windows: DataFrame) -> DataFrame:
    """run, window, owners: [(topic, partition, before, after)] for each partition that had an owner; null: none."""
    ends_ns = F.coalesce("until_ns", F.lit(1 << 62))
    was = (F.col("from_ns") <= F.col("window_from_ns")) & (ends_ns > F.col("window_from_ns"))
    then_is = (F.col("from_ns") < F.col("window_until_ns")) & (ends_ns >= F.col("window_until_ns"))
    return (
        authority.join(F.broadcast(windows), on="run", how="inner")
        .where(was | then_is)
        .groupBy("run", "window", "topic", "partition")
        .agg(F.max(F.when(was, F.col("owner"))).alias("before"), F.max(F.when(then_is, F.col("owner"))).alias("after"))
        .groupBy("run", "window")
        .agg(F.collect_list(F.struct("topic", "partition", "before", "after")).alias("owners"))
        .select("run", "window", "owners")
    )
