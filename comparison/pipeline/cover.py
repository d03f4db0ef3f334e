"""One sweep that answers every question of the form "how many at once".

Owners over time, and records over their numbers, are the same problem: ranges [low, high) on a line, some of
them *held* (an owner has the partition; a record was delivered), some of them *wanted* (the group should own it;
the producer's record was acknowledged). Sweeping over the ends of the ranges gives, for each stretch of the line,
how many hold it and whether it is wanted:

    wanted and not held    a gap:    unowned time, lost records
    held more than once    doubled:  double ownership, duplicated records

Ends come before beginnings at the same place, so that ranges which touch do not overlap.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_KEY = ("run", "view", "topic", "partition")


def held(ranges: DataFrame) -> DataFrame:
    """Ranges (run, view, topic, partition, low, high, owner) as ends of held ranges."""
    return _ends(ranges, held=1, wanted=0)


def wanted(ranges: DataFrame) -> DataFrame:
    """The same, as ends of wanted ranges; `owner` is ignored."""
    return _ends(ranges.withColumn("owner", F.lit(None).cast("string")), held=0, wanted=1)


def _ends(ranges: DataFrame, *, held: int, wanted: int) -> DataFrame:
    ends = F.array(
        F.struct(F.col("low").alias("at"), F.lit(held).alias("held"), F.lit(wanted).alias("wanted")),
        F.struct(F.col("high").alias("at"), F.lit(-held).alias("held"), F.lit(-wanted).alias("wanted")),
    )
    return (
        ranges.where(F.col("low") < F.col("high"))
        .withColumn("end", F.explode(ends))
        .select(
            *_KEY,
            "end.at",
            "end.held",
            "end.wanted",
            # Only the start of a range carries its owner and its end.
            F.when(F.col("end.held") > 0, F.col("high")).alias("reach"),
            F.when(F.col("end.held") > 0, F.col("owner")).alias("owner"),
        )
    )


def segments(ends: DataFrame) -> DataFrame:
    """The stretches between neighbouring ends: run, view, topic, partition, low, high, holders, is_wanted,
    owner (which began last) and other (of the earlier ones, the one that reaches furthest, so certainly there).
    """
    line = Window.partitionBy(*_KEY).orderBy("at", "held", "wanted", "reach")
    so_far = line.rowsBetween(Window.unboundedPreceding, 0)
    before = line.rowsBetween(Window.unboundedPreceding, -1)
    # An owner that returns while its first range continues is counted, but is no evidence of a second owner.
    last = F.last(F.when(F.col("owner").isNotNull(), F.struct("owner", "reach")), ignorenulls=True)
    furthest = F.max(F.struct("reach", "owner"))
    return (
        ends.withColumn("high", F.lead("at").over(line))
        .withColumn("holders", F.sum("held").over(so_far))
        .withColumn("wanting", F.sum("wanted").over(so_far))
        .withColumn("latest", last.over(so_far))
        .withColumn("furthest", furthest.over(before))
        .where(F.col("at") < F.col("high"))
        .select(
            *_KEY,
            F.col("at").alias("low"),
            "high",
            F.col("holders").cast("int").alias("holders"),
            (F.col("wanting") > 0).alias("is_wanted"),
            F.col("latest.owner").alias("owner"),
            F.col("furthest.owner").alias("other"),
        )
    )
