"""Count every kind of event by name, outcome and step, in every window.

One table serves all designs. The name of an event depends on its kind:

    kind                name                    outcome             step    area
    zk_op               the operation           ok or the error     yes     what the path is about
    zk_notified         the event's type        ''                          what the path is about
    request_answered    the API                 ok or the error
    attempt_ended       ''                      the outcome
    ...

so that the cost of a change can be read in each design's own units.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from comparison.pipeline.windows import WHOLE_RUN, in_windows

#: Pseudo kinds, for counts of things that are not events.
QUARANTINED, MISSING, TOTAL = "quarantined", "missing", "total"

#: The fields that names are taken from; a kind has at most one of them.
_NAMED_BY = ("op", "api", "event", "trigger", "state", "phase", "reset")
#: Kinds whose count means nothing or is made elsewhere.
_NOT_COUNTED = ("run_started", "counters_read", "final_offset", "phase_entered", "records_acked")


def counts(events: DataFrame, windows: DataFrame) -> DataFrame:
    """run, window, role, kind, name, outcome, step, area, n, first_ns, last_ns."""
    counted = events.where(~F.col("kind").isin(*_NOT_COUNTED)).select(
        "run",
        "t_ns",
        F.col("role"),
        F.col("kind"),
        F.coalesce(*_NAMED_BY, F.lit("")).alias("name"),
        outcome_of(F.col("kind"), F.col("ok"), F.col("error"), F.col("outcome")).alias("outcome"),
        F.coalesce("step", F.lit("")).alias("step"),
        area_of(F.coalesce("path", F.lit(""))).alias("area"),
    )
    keys = ("run", "window", "role", "kind", "name", "outcome", "step", "area")
    return (
        in_windows(counted, windows)
        .groupBy(*keys)
        .agg(F.count(F.lit(1)).alias("n"), F.min("t_ns").alias("first_ns"), F.max("t_ns").alias("last_ns"))
        .select(*keys, "n", "first_ns", "last_ns")
    )


def outcome_of(kind: Column, ok: Column, error: Column, outcome: Column) -> Column:
    """`ok`, or what went wrong: an operation's error, a request's error, an attempt's or a commit's outcome."""
    return (
        F.when(kind == "zk_op", F.when(ok, "ok").when(~ok, F.coalesce(error, F.lit("failed"))))
        .when(kind == "request_answered", F.when(error == "", "ok").when(error != "", error))
        .when(kind == "offset_refused", error)
        .when(outcome.isNotNull(), outcome)
        .otherwise(F.lit(""))
    )


def area_of(path: Column) -> Column:
    """What a path is about: ids, owners or offsets of a group; brokers, topics; or its first node."""
    in_group = F.regexp_extract(path, r"/consumers/[^/]+/(ids|owners|offsets)(/|$)", 1)
    in_cluster = F.regexp_extract(path, r"/brokers/(ids|topics)(/|$)", 1)
    return (
        F.when(in_group != "", in_group)
        .when(in_cluster == "ids", "brokers")
        .when(in_cluster == "topics", "topics")
        .otherwise(F.regexp_extract(path, r"^/([^/]*)", 1))
    )


def set_aside(flagged: DataFrame) -> DataFrame:
    """Counts without a time: unusable lines by reason, sequence numbers missing from the files, and all events; columns
    as in `counts`.
    """
    quarantined = (
        flagged.where(F.col("problem").isNotNull())
        .groupBy("run", "problem")
        .agg(F.count(F.lit(1)).alias("n"))
        .select("run", F.lit(QUARANTINED).alias("kind"), F.col("problem").alias("outcome"), "n")
    )
    missing = (
        flagged.groupBy("run", "file")
        .agg((F.max("seq") + 1 - F.count(F.lit(1))).alias("n"))
        .where(F.col("n") > 0)
        .groupBy("run")
        .agg(F.sum("n").alias("n"))
        .select("run", F.lit(MISSING).alias("kind"), F.lit("").alias("outcome"), "n")
    )
    total = (
        flagged.where(F.col("problem").isNull())
        .groupBy("run")
        .agg(F.count(F.lit(1)).alias("n"))
        .select("run", F.lit(TOTAL).alias("kind"), F.lit("").alias("outcome"), "n")
    )
    none, never = F.lit(""), F.lit(None).cast("bigint")
    return (
        quarantined.unionByName(missing)
        .unionByName(total)
        .select(
            "run",
            F.lit(WHOLE_RUN).alias("window"),
            none.alias("role"),
            "kind",
            none.alias("name"),
            "outcome",
            none.alias("step"),
            none.alias("area"),
            "n",
            never.alias("first_ns"),
            never.alias("last_ns"),
        )
    )


def between_readings(events: DataFrame, readings: DataFrame, slack_ns: int) -> DataFrame:
    """Traced operations between two readings of the servers' counters, by namespace.

    `readings`: run, label, from_ns, until_ns. Result: run, label, namespace, is_read, traced (answered between the
    two), sure (with more than the slack to spare on both sides), possible (also those answered within the slack
    before or after). A reading and a response both take time, so the trace does not show on which side of a
    reading the server counted an operation close to it. Successful operations of every process count, as they do for
    the server, which does not count `sync`.
    """
    operations = events.where((F.col("kind") == "zk_op") & F.col("ok") & (F.col("op") != SYNC)).select(
        "run",
        "t_ns",
        F.regexp_extract("path", r"^/([^/]*)", 1).alias("namespace"),
        is_read(F.col("op")).alias("is_read"),
    )
    near = (F.col("t_ns") >= F.col("from_ns") - slack_ns) & (F.col("t_ns") < F.col("until_ns") + slack_ns)
    between = (F.col("t_ns") >= F.col("from_ns")) & (F.col("t_ns") < F.col("until_ns"))
    within = (F.col("t_ns") >= F.col("from_ns") + slack_ns) & (F.col("t_ns") < F.col("until_ns") - slack_ns)
    return (
        operations.join(F.broadcast(readings), on="run", how="inner")
        .where(near)
        .groupBy("run", "label", "namespace", "is_read")
        .agg(
            F.count(F.when(between, 1)).alias("traced"),
            F.count(F.when(within, 1)).alias("sure"),
            F.count(F.lit(1)).alias("possible"),
        )
        .select("run", "label", "namespace", "is_read", "traced", "sure", "possible")
    )


def is_read(op: Column) -> Column:
    """Whether the operation changes nothing."""
    return op.isin(*READS)


#: An operation that servers count neither as a read nor as a write.
SYNC = "sync"
READS = ("exists", "getData", "getChildren", SYNC)
