"""How long the phases of rebalances take, as members tell them; see kernel.trace.events.PHASES."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

#: The pseudo phase that is a whole rebalance, from its start to its end.
WHOLE = "rebalance"


def phases(events: DataFrame) -> DataFrame:
    """One row a phase that a member was in: run, process, member, phase, from_ns, until_ns.

    A phase lasts until the next one, or the end of its attempt; one that never ended is left out. So is
    whatever comes between: a member that waits for nothing is in no phase.
    """
    phase_kinds = ("phase_entered", "attempt_ended", "rebalance_ended", "rebalance_started")
    per_member = Window.partitionBy("run", "process", "member").orderBy("seq")
    later = per_member.rowsBetween(1, Window.unboundedFollowing)
    ended_ns = F.min(F.when(F.col("kind") == "rebalance_ended", F.col("t_ns"))).over(later)
    is_whole = F.col("kind") == "rebalance_started"
    return (
        events.where(F.col("kind").isin(*phase_kinds))
        .withColumn("until_ns", F.when(is_whole, ended_ns).otherwise(F.lead("t_ns").over(per_member)))
        .where((is_whole | (F.col("kind") == "phase_entered")) & F.col("until_ns").isNotNull())
        .select(
            "run",
            "process",
            "member",
            F.when(is_whole, F.lit(WHOLE)).otherwise(F.col("phase")).alias("phase"),
            F.col("t_ns").alias("from_ns"),
            "until_ns",
        )
    )


def phase_times(phases: DataFrame) -> DataFrame:
    """run, phase, n, median_ns, max_ns, total_ns."""
    lasted = F.col("until_ns") - F.col("from_ns")
    return (
        phases.groupBy("run", "phase")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.percentile(lasted, 0.5).cast("bigint").alias("median_ns"),
            F.max(lasted).alias("max_ns"),
            F.sum(lasted).alias("total_ns"),
        )
        .select("run", "phase", "n", "median_ns", "max_ns", "total_ns")
    )
