"""What became of the records, as ranges on the line of their numbers.

- SERIALS: by the producer's own number. Acknowledged and never delivered to anybody is *lost*.
- OFFSETS: by the log's number. Delivered more than once is a *duplicate*; counted once for each extra delivery.
- *Out of order*: a stream's poll begins before the end of its poll before, without a start of delivery between.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from comparison.pipeline.ownership import owner_of_stream

SERIALS, OFFSETS = "serials", "offsets"


def delivered_ranges(events: DataFrame) -> DataFrame:
    """Both views of what was delivered, as ranges for `cover.held`."""
    delivered = events.where(F.col("kind") == "records_delivered").withColumn("owner", owner_of_stream())
    return _ranges(delivered, OFFSETS, "first", "last").unionByName(
        _ranges(delivered, SERIALS, "serial_first", "serial_last")
    )


def acked_ranges(events: DataFrame) -> DataFrame:
    """What the producer was told is stored, as ranges for `cover.wanted`."""
    acked = events.where(F.col("kind") == "records_acked").withColumn("owner", F.lit(None).cast("string"))
    return _ranges(acked, SERIALS, "serial_first", "serial_last")


def _ranges(events: DataFrame, view: str, first: str, last: str) -> DataFrame:
    return events.where(F.col(first).isNotNull()).select(
        "run",
        F.lit(view).alias("view"),
        "topic",
        "partition",
        F.col(first).alias("low"),
        (F.col(last) + 1).alias("high"),
        "owner",
    )


def out_of_order(events: DataFrame) -> DataFrame:
    """run, out_of_order: how many polls began before the end of the one before."""
    started = F.col("kind") == "position_started"
    per_stream = Window.partitionBy("run", "owner", "topic", "partition").orderBy("t_ns", "seq")
    # A start of delivery has no last offset: what follows it may begin anywhere.
    previous_last = F.lag("last").over(per_stream)
    return (
        events.where(started | (F.col("kind") == "records_delivered"))
        .withColumn("owner", owner_of_stream())
        .withColumn("previous_last", previous_last)
        .where(F.col("first") <= F.col("previous_last"))
        .groupBy("run")
        .agg(F.count(F.lit(1)).alias("out_of_order"))
    )
