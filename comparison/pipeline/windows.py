"""The time windows that are measured: the whole run, and each change in it.

A *window* is the part of a run in which events are counted. Every run has the window WHOLE_RUN. Every
`change_started`, and every fault that does not change the membership by itself (a freeze, a cut), opens another. It
lasts until the next one opens or the members are stopped. It does not end at `change_settled`, because a rebalance's
last reads (the leader finder's) come after the last claim.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

#: The number of the window that is the whole run; changes count from 0.
WHOLE_RUN = -1
#: The change that brings a group to the size to be measured; it is not measured itself.
FORMING = "form"
#: Faults that are already traced as a change of the membership.
_KILL = "kill"
#: Later than any clock, and small enough that differences fit in 64 bits.
_FOREVER_NS = 1 << 61


def spans(events: DataFrame) -> DataFrame:
    """run, start_ns, end_ns: the part of the run in which the running group is measured, without its end.

    From the first steady stage, change or fault (or the first member, if the runner traced none) to the final reads or
    the end of the trace. Growth to the first size and the shutdown are not measured.
    """
    stage = F.when(F.col("kind") == "stage_entered", F.col("stage"))
    measured = (F.col("kind") == "change_started") & (F.col("change") != FORMING)
    begun = measured | (F.col("kind") == "fault_started") | stage.isin("steady", "fault")
    ended = stage.isin("final", "stop") | (F.col("kind") == "run_ended")
    return (
        events.groupBy("run")
        .agg(
            F.min(F.when(begun, F.col("t_ns"))).alias("begun_ns"),
            F.min(F.when(F.col("kind") == "member_started", F.col("t_ns"))).alias("member_ns"),
            F.min(F.when(ended, F.col("t_ns"))).alias("ended_ns"),
            F.min("t_ns").alias("first_ns"),
            F.max("t_ns").alias("last_ns"),
        )
        .select(
            "run",
            F.coalesce("begun_ns", "member_ns", "first_ns").alias("start_ns"),
            F.coalesce("ended_ns", F.col("last_ns") + 1).alias("end_ns"),
        )
    )


def changes(events: DataFrame) -> DataFrame:
    """One row a change: run, window, change, round, members, from_ns, settled_ns, healed_ns, until_ns.

    For a fault, `change` is its name, `members` is null, and `healed_ns` is its end.
    """
    stops = F.col("stage").isin("final", "stop") | (F.col("kind") == "run_ended")
    is_fault = (F.col("kind") == "fault_started") & (F.col("fault") != _KILL)
    is_start = (F.col("kind") == "change_started") | is_fault
    is_end = F.col("kind").isin("change_settled", "fault_ended")
    in_run = Window.partitionBy("run").orderBy("t_ns", "seq")
    later = in_run.rowsBetween(1, Window.unboundedFollowing)
    earlier = in_run.rowsBetween(Window.unboundedPreceding, 0)
    # Faults may be nested.
    later_of_name = Window.partitionBy("run", "name").orderBy("t_ns", "seq").rowsBetween(1, Window.unboundedFollowing)
    settled = F.when(F.col("kind") == "change_settled", F.struct("t_ns", "name", "round"))
    same_change = (F.col("settled.name") == F.col("name")) & (F.col("settled.round") == F.col("round"))
    return (
        events.where((F.col("role") == "runner") & (is_start | is_end | stops))
        .withColumn("name", F.coalesce("change", "fault"))
        .withColumn("until_ns", F.min(F.when(is_start | stops, F.col("t_ns"))).over(later))
        .withColumn("settled", F.min(settled).over(later))
        .withColumn("healed_ns", F.min(F.when(F.col("kind") == "fault_ended", F.col("t_ns"))).over(later_of_name))
        .withColumn("window", F.count(F.when(is_start, 1)).over(earlier) - 1)
        .where(is_start)
        .select(
            "run",
            F.col("window").cast("int").alias("window"),
            F.col("name").alias("change"),
            F.coalesce("round", F.lit(1)).cast("int").alias("round"),
            F.col("members").cast("int").alias("members"),
            F.col("t_ns").alias("from_ns"),
            F.when(same_change, F.col("settled.t_ns")).alias("settled_ns"),
            F.when(is_fault, F.col("healed_ns")).alias("healed_ns"),
            F.coalesce("until_ns", F.lit(_FOREVER_NS)).alias("until_ns"),
        )
    )


def change_windows(changes: DataFrame) -> DataFrame:
    """run, window, window_from_ns, window_until_ns: every change's window."""
    return changes.select(
        "run", "window", F.col("from_ns").alias("window_from_ns"), F.col("until_ns").alias("window_until_ns")
    )


def whole_runs(spans: DataFrame) -> DataFrame:
    """One window for each whole run: from before its first event until its members are stopped."""
    return spans.select(
        "run",
        F.lit(WHOLE_RUN).alias("window"),
        F.lit(-_FOREVER_NS).alias("window_from_ns"),
        F.col("end_ns").alias("window_until_ns"),
    )


def in_windows(moments: DataFrame, windows: DataFrame) -> DataFrame:
    """Each row once per window of its run that contains its `t_ns`."""
    inside = (F.col("t_ns") >= F.col("window_from_ns")) & (F.col("t_ns") < F.col("window_until_ns"))
    return moments.join(F.broadcast(windows), on="run", how="inner").where(inside)
