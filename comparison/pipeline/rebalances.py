"""The phases of members' rebalances, and deliveries of kept partitions meanwhile.

See kernel.trace.events.PHASES for the phases; comparison.pipeline.rounds combines them into rounds of the group.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from comparison.pipeline.ownership import owner_of_stream

#: The pseudo phase that is a whole rebalance, from its start to its end.
WHOLE = "rebalance"


def phases(events: DataFrame) -> DataFrame:
    """One row per phase of a member: run, process, member, phase, from_ns, until_ns.

    A phase lasts until the next one or the end of its attempt; one that never ended is left out. Between attempts a
    member is in no phase. What a member did before it received its id counts for the next id of its stream.
    """
    phase_kinds = ("phase_entered", "attempt_ended", "rebalance_ended", "rebalance_started")
    per_member = Window.partitionBy("run", "process", "member").orderBy("seq")
    from_here = Window.partitionBy("run", "process", "stream").orderBy("seq").rowsBetween(0, Window.unboundedFollowing)
    later = per_member.rowsBetween(1, Window.unboundedFollowing)
    ended_ns = F.min(F.when(F.col("kind") == "rebalance_ended", F.col("t_ns"))).over(later)
    is_whole = F.col("kind") == "rebalance_started"
    return (
        events.where(F.col("kind").isin(*phase_kinds))
        .withColumn("member", F.first("member", ignorenulls=True).over(from_here))
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


def kept_through(events: DataFrame, believed: DataFrame, rounds: DataFrame) -> DataFrame:
    """run, round, kept, delivered: partitions that one stream had from before a round until after it, and how many
    of them it delivered from in the middle of the round.

    `rounds`: run, round, round_from_ns, round_until_ns.
    """
    keys = ("run", "round", "topic", "partition", "owner")
    through = (F.col("from_ns") <= F.col("round_from_ns")) & (
        F.col("until_ns").isNull() | (F.col("until_ns") > F.col("round_until_ns"))
    )
    kept = believed.join(F.broadcast(rounds), on="run", how="inner").where(through).select(*keys)
    meanwhile = (F.col("t_ns") >= F.col("round_from_ns")) & (F.col("t_ns") < F.col("round_until_ns"))
    delivered = (
        events.where(F.col("kind") == "records_delivered")
        .select("run", "t_ns", "topic", "partition", owner_of_stream().alias("owner"))
        .join(F.broadcast(rounds), on="run", how="inner")
        .where(meanwhile)
        .groupBy(*keys)
        .agg(F.count(F.lit(1)).alias("polls"))
    )
    return (
        kept.join(delivered, on=list(keys), how="left")
        .groupBy("run", "round")
        .agg(F.count(F.lit(1)).alias("kept"), F.count("polls").alias("delivered"))
        .select("run", "round", "kept", "delivered")
    )
