"""Who owned which partition, and when, in three views. Each is a set of intervals [from_ns, until_ns).

- *believed*: what members believe to own. An interval starts with `partitions_assigned` and ends when the partition
  is revoked or lost, or when the member or its process ends. A member stopped with SIGSTOP still believes that it is
  the owner, which is the point of this view.
- *authority*: what ZooKeeper or the coordinator says, from the authority's own events.
- *delivering*: what members actually do. An interval lasts as long as a stream delivers records of the partition
  without a pause longer than DELIVERY_PAUSE_NS_MAX between two polls.

`owner` is `process/member/stream` in the views of members, and the authority's own name for it in `authority`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

BELIEVED, AUTHORITY, DELIVERING = "believed", "authority", "delivering"
#: A longer pause between two polls starts a new interval, because the stream may have had nothing to deliver.
DELIVERY_PAUSE_NS_MAX = 1_000_000_000


def owner_of_stream() -> Column:
    """The unit of ownership in every trace: (process, member, stream)."""
    return F.concat_ws("/", F.col("process"), F.coalesce("member", F.lit("")), F.coalesce("stream", F.lit(0)))


def believed(events: DataFrame) -> DataFrame:
    """Intervals of the view BELIEVED; `closed_by` is revoked, lost, reassigned, member, process or end.

    `gone_ns` is when the owner itself ended, if it did.
    """
    changes_owner = F.col("kind").isin("partitions_assigned", "partitions_revoked", "partitions_lost")
    ends_process = F.col("kind") == "process_ended"
    ends_member = F.col("kind") == "member_closed"
    # A process of the same name may be started again, so the next end is the one that counts.
    per_process = (
        Window.partitionBy("run", "process").orderBy("t_ns").rangeBetween(Window.currentRow, Window.unboundedFollowing)
    )
    per_member = Window.partitionBy("run", "process", "member").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    per_partition = Window.partitionBy("run", "process", "member", "stream", "topic", "partition").orderBy("seq")
    return (
        events.where(changes_owner | ends_process | ends_member)
        .withColumn("process", F.when(ends_process, F.col("target")).otherwise(F.col("process")))
        .withColumn("process_end_ns", F.min(F.when(ends_process, F.col("t_ns"))).over(per_process))
        .withColumn("member_end_ns", F.min(F.when(ends_member, F.col("t_ns"))).over(per_member))
        .where(changes_owner)
        .withColumn("each", F.explode("partitions"))
        .withColumns({"topic": F.col("each.topic"), "partition": F.col("each.partition")})
        .withColumn("next_ns", F.lead("t_ns").over(per_partition))
        .withColumn("next_kind", F.lead("kind").over(per_partition))
        .where(F.col("kind") == "partitions_assigned")
        .withColumn("until_ns", F.least("next_ns", "process_end_ns", "member_end_ns"))
        .select(
            "run",
            F.lit(BELIEVED).alias("view"),
            "topic",
            "partition",
            owner_of_stream().alias("owner"),
            F.col("t_ns").alias("from_ns"),
            "until_ns",
            F.when(F.col("until_ns").isNull(), "end")
            .when(F.col("until_ns") == F.col("next_ns"), _reason_of(F.col("next_kind")))
            .when(F.col("until_ns") == F.col("member_end_ns"), "member")
            .when(F.col("until_ns") == F.col("process_end_ns"), "process")
            .alias("closed_by"),
            F.least("process_end_ns", "member_end_ns").alias("gone_ns"),
        )
    )


def _reason_of(next_kind: Column) -> Column:
    return (
        F.when(next_kind == "partitions_assigned", "reassigned")
        .when(next_kind == "partitions_revoked", "revoked")
        .when(next_kind == "partitions_lost", "lost")
    )


def authority(events: DataFrame) -> DataFrame:
    """Intervals of the view AUTHORITY; `closed_by` is renamed, the reason of the clearing, or end."""
    named = F.col("kind") == "authority_named"
    per_partition = Window.partitionBy("run", "group", "topic", "partition").orderBy("t_ns", "seq")
    return (
        events.where(named | (F.col("kind") == "authority_cleared"))
        .withColumn("until_ns", F.lead("t_ns").over(per_partition))
        .withColumn("next_kind", F.lead("kind").over(per_partition))
        .withColumn("next_reason", F.lead("reason").over(per_partition))
        .where(named)
        .select(
            "run",
            F.lit(AUTHORITY).alias("view"),
            "topic",
            "partition",
            "owner",
            F.col("t_ns").alias("from_ns"),
            "until_ns",
            F.when(F.col("next_kind").isNull(), "end")
            .when(F.col("next_kind") == "authority_named", "renamed")
            .when(F.col("next_kind") == "authority_cleared", F.col("next_reason"))
            .alias("closed_by"),
        )
    )


def delivering(events: DataFrame) -> DataFrame:
    """Intervals of the view DELIVERING, from the first to the last poll of each stretch; `closed_by` is pause.

    An interval of a single poll has no length, so it overlaps nothing.
    """
    per_stream = Window.partitionBy("run", "owner", "topic", "partition").orderBy("t_ns", "seq")
    so_far = per_stream.rowsBetween(Window.unboundedPreceding, 0)
    pause = F.col("t_ns") - F.lag("t_ns").over(per_stream)
    return (
        events.where(F.col("kind") == "records_delivered")
        .withColumn("owner", owner_of_stream())
        .withColumn("resumes", (F.coalesce(pause, F.lit(0)) > DELIVERY_PAUSE_NS_MAX).cast("int"))
        .withColumn("stretch", F.sum("resumes").over(so_far))
        .groupBy("run", "owner", "topic", "partition", "stretch")
        .agg(F.min("t_ns").alias("from_ns"), F.max("t_ns").alias("until_ns"))
        .select(
            "run",
            F.lit(DELIVERING).alias("view"),
            "topic",
            "partition",
            "owner",
            "from_ns",
            "until_ns",
            F.lit("pause").alias("closed_by"),
        )
    )


def until_the_end(intervals: DataFrame, spans: DataFrame) -> DataFrame:
    """Intervals as ranges for `cover`; open ones end with their run's span, and longer ones are cut there."""
    ends = spans.select("run", "end_ns")
    return (
        intervals.join(F.broadcast(ends), on="run", how="inner")
        .withColumn("high", F.least(F.coalesce("until_ns", "end_ns"), "end_ns"))
        .select("run", "view", "topic", "partition", "owner", F.col("from_ns").alias("low"), "high")
    )


def expected(partitions: DataFrame, wanted: DataFrame, spans: DataFrame) -> DataFrame:
    """Ranges for `cover.wanted`: every known partition should have an owner, as long as the group wants its topic.

    `wanted`: see `wanted_topics`. A topic that it does not mention is wanted for the whole span.
    """
    views = F.explode(F.array(F.lit(BELIEVED), F.lit(AUTHORITY)))
    is_wanted = F.col("wanted").isNull() | (F.col("partition") < F.col("wanted"))
    return (
        partitions.join(F.broadcast(spans), on="run", how="inner")
        .join(F.broadcast(wanted), on=["run", "topic"], how="left")
        .where(is_wanted)
        .select(
            "run",
            views.alias("view"),
            "topic",
            "partition",
            F.greatest("start_ns", "wanted_from_ns").alias("low"),
            F.least("end_ns", "wanted_until_ns").alias("high"),
        )
    )


def wanted_topics(events: DataFrame) -> DataFrame:
    """run, topic, wanted, wanted_from_ns, wanted_until_ns: how many partitions of a topic the group wants, when."""
    per_topic = Window.partitionBy("run", "topic").orderBy("t_ns", "seq")
    return (
        events.where(F.col("kind") == "topic_wanted")
        .withColumn("wanted_until_ns", F.lead("t_ns").over(per_topic))
        .select("run", "topic", "wanted", F.col("t_ns").alias("wanted_from_ns"), "wanted_until_ns")
    )


def known_partitions(events: DataFrame) -> DataFrame:
    """run, topic, partition: every partition that the group should own at some time: those with records or owners,
    and those of topics that the runner says the group wants.
    """
    named = F.when(F.col("kind") == "partitions_assigned", F.col("partitions")).when(
        (F.col("kind") == "topic_wanted") & (F.col("wanted") > 0),
        F.transform(
            F.sequence(F.lit(0), F.col("wanted") - 1), lambda n: F.struct(F.col("topic"), n.alias("partition"))
        ),
    )
    return (
        events.where(F.col("kind").isin("records_acked", "authority_named", "final_offset"))
        .select("run", "topic", "partition")
        .unionByName(
            events.where(F.col("kind").isin("partitions_assigned", "topic_wanted"))
            .select("run", F.explode(named).alias("each"))
            .select("run", "each.topic", "each.partition")
        )
        .distinct()
    )
