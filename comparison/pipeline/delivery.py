"""Which records were delivered, lost or duplicated, as ranges of their numbers.

- SERIALS: by the producer's own number. Acknowledged and never delivered is *lost*.
- OFFSETS: by the log's number. Delivered more than once is a *duplicate*, counted once per extra delivery.
- *Out of order*: a stream's poll begins before the end of its previous poll, without a start of delivery in between.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from comparison.pipeline.ownership import owner_of_stream

SERIALS, OFFSETS = "serials", "offsets"
#: The width of a bin of the group's delivery, and the longest time that is binned: ten minutes.
BIN_NS = 100_000_000
BINNED_NS_MAX = 600_000_000_000


def delivered_ranges(events: DataFrame) -> DataFrame:
    """Both views of what was delivered, as ranges for `cover.held`."""
    delivered = events.where(F.col("kind") == "records_delivered").withColumn("owner", owner_of_stream())
    return joined(_ranges(delivered, (OFFSETS, "first", "last"), (SERIALS, "serial_first", "serial_last")))


def acked_ranges(events: DataFrame) -> DataFrame:
    """What was acknowledged to the producer, as ranges for `cover.wanted`."""
    acked = events.where(F.col("kind") == "records_acked").withColumn("owner", F.lit(None).cast("string"))
    return joined(_ranges(acked, (SERIALS, "serial_first", "serial_last")))


def _ranges(events: DataFrame, *views: tuple[str, str, str]) -> DataFrame:
    """One row per poll and view: (its name, the columns of the first and the last number)."""
    each = F.array(
        *(
            F.struct(F.lit(view).alias("view"), F.col(first).alias("low"), (F.col(last) + 1).alias("high"))
            for view, first, last in views
        )
    )
    return (
        events.withColumn("range", F.explode(each))
        .where(F.col("range.low").isNotNull())
        .select("run", "range.view", "topic", "partition", "owner", "t_ns", "seq", "range.low", "range.high")
    )


def joined(ranges: DataFrame) -> DataFrame:
    """Join polls that continue the same owner's previous poll into one range, so that the sweep has a few ranges per
    owner instead of one per poll; what they cover is the same.
    """
    per_owner = Window.partitionBy("run", "view", "topic", "partition", "owner").orderBy("t_ns", "seq")
    so_far = per_owner.rowsBetween(Window.unboundedPreceding, 0)
    breaks = F.coalesce(F.col("low") != F.lag("high").over(per_owner), F.lit(True)).cast("int")
    return (
        ranges.withColumn("breaks", breaks)
        .withColumn("stretch", F.sum("breaks").over(so_far))
        .groupBy("run", "view", "topic", "partition", "owner", "stretch")
        .agg(F.min("low").alias("low"), F.max("high").alias("high"))
        .select("run", "view", "topic", "partition", "low", "high", "owner")
    )


def polls(events: DataFrame, spans: DataFrame) -> DataFrame:
    """run, bin, records, out_of_order: records delivered in each BIN_NS since the span's start (null: outside of it,
    or later than BINNED_NS_MAX), and polls that began before the end of the previous one.
    """
    started = F.col("kind") == "position_started"
    per_stream = Window.partitionBy("run", "owner", "topic", "partition").orderBy("t_ns", "seq")
    # A start of delivery has no last offset: the next poll may begin anywhere.
    previous_last = F.lag("last").over(per_stream)
    since = F.col("t_ns") - F.col("start_ns")
    binned = (since >= 0) & (since < BINNED_NS_MAX) & (F.col("t_ns") < F.col("end_ns"))
    return (
        events.where(started | (F.col("kind") == "records_delivered"))
        .withColumn("owner", owner_of_stream())
        .withColumn("previous_last", previous_last)
        .where(~started)
        .join(F.broadcast(spans), on="run", how="inner")
        .withColumn("bin", F.when(binned, F.floor(since / BIN_NS)))
        .groupBy("run", "bin")
        .agg(
            F.sum(F.col("last") - F.col("first") + 1).alias("records"),
            F.count(F.when(F.col("first") <= F.col("previous_last"), 1)).alias("out_of_order"),
        )
        .select("run", "bin", "records", "out_of_order")
    )
