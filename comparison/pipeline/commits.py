"""Commits and deliveries with the partition's owner, in the order in which the authority saw them.

Every commit and delivery gets the owner at that moment by the authority, the group's generation, and whether the sender
was known. A write while the partition has no owner is not stale, but it may still move an offset back.

There are two kinds of refusal. A commit is *fenced* if it carries an old generation or an unknown member id. The
refusal of a member of the group between two generations is the protocol's ordinary "not now".
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: Errors for a sender that may not, or no longer, commit: Kafka's names, and those of `server`.
FENCING_ERRORS = (
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "FENCED_INSTANCE_ID",
    "FENCED_MEMBER_EPOCH",
    "STALE_MEMBER_EPOCH",
    "UNKNOWN_CONSUMER",
    "PARTITION_NOT_ASSIGNED",
)
#: The states of a group between two generations.
BETWEEN_GENERATIONS = ("PreparingRebalance", "CompletingRebalance")
#: A commit is judged when it arrives and recorded when it is durable, so a generation that began less than this before
#: the record does not make it old.
IN_FLIGHT_NS = 100_000_000

_GROUP_KINDS = ("group_changed", "group_member_joined", "group_member_left", "offset_written", "offset_refused")
_NAMING_KINDS = ("authority_named", "authority_cleared")
_DELIVERY_KINDS = ("records_delivered", "position_started")


def judged(events: DataFrame) -> DataFrame:
    """One row per commit at the authority, a delivery or a start of deliveries: run, kind, topic, partition, t_ns, by,
    offset, records, and what was true then: owner (null: none), is_stale, moved_back_by, is_old, is_fenced,
    starts_behind.
    """
    naming = events.where(F.col("kind").isin(*_NAMING_KINDS))
    deliveries = events.where(F.col("kind").isin(*_DELIVERY_KINDS)).withColumn("by", F.col("member"))
    moments = (
        _with_group(events)
        .where(F.col("kind").isin("offset_written", "offset_refused"))
        .unionByName(naming.unionByName(deliveries), allowMissingColumns=True)
    )
    per_partition = Window.partitionBy("run", "topic", "partition").orderBy("t_ns", "seq")
    so_far = per_partition.rowsBetween(Window.unboundedPreceding, 0)
    before = per_partition.rowsBetween(Window.unboundedPreceding, -1)
    # A commit accepted this shortly before a start may have come after its offset was read.
    long_before = (
        Window.partitionBy("run", "topic", "partition")
        .orderBy("t_ns")
        .rangeBetween(Window.unboundedPreceding, -IN_FLIGHT_NS)
    )
    named_now = F.when(F.col("kind") == "authority_named", F.col("owner")).when(
        F.col("kind") == "authority_cleared", F.lit("")
    )
    written = F.when(F.col("kind") == "offset_written", F.col("offset"))
    return (
        moments.withColumn("named", F.last(named_now, ignorenulls=True).over(so_far))
        .withColumn("previous", F.last(written, ignorenulls=True).over(before))
        .withColumn("accepted", F.last(written, ignorenulls=True).over(long_before))
        .where(~F.col("kind").isin(*_NAMING_KINDS))
        .withColumn("owner", F.when(F.col("named") != "", F.col("named")))
        .select(
            "run",
            "kind",
            "topic",
            "partition",
            "t_ns",
            "by",
            "offset",
            (F.col("last") - F.col("first") + 1).alias("records"),
            "owner",
            is_stale(F.col("owner"), F.col("by")).alias("is_stale"),
            moved_back_by(F.col("kind"), F.col("offset"), F.col("previous")).alias("moved_back_by"),
            is_old(F.col("kind"), F.col("epoch"), F.col("group_generation")).alias("is_old"),
            is_fenced(F.col("kind"), F.col("error"), F.col("is_known"), F.col("group_state")).alias("is_fenced"),
            starts_behind(F.col("kind"), F.col("offset"), F.col("accepted")).alias("starts_behind"),
        )
    )


def final_offsets(events: DataFrame) -> DataFrame:
    """run, read, behind, beyond: partitions whose committed offset was read at the end, how many of them were behind
    the last commit accepted by then, and how many beyond the end of their log.
    """
    per_partition = Window.partitionBy("run", "group", "topic", "partition")
    is_final = F.col("kind") == "final_offset"
    read_ns = F.max(F.when(is_final, F.col("t_ns"))).over(per_partition)
    # A commit this shortly before the reading may have come after it.
    accepted = (F.col("kind") == "offset_written") & (F.col("t_ns") <= F.col("read_ns") - IN_FLIGHT_NS)
    return (
        events.where(is_final | (F.col("kind") == "offset_written"))
        .withColumn("read_ns", read_ns)
        .where(F.col("read_ns").isNotNull())
        .groupBy("run", "group", "topic", "partition")
        .agg(
            F.max(F.when(is_final, F.struct("t_ns", "committed", "end"))).alias("final"),
            F.max(F.when(accepted, F.struct("t_ns", "seq", "offset"))).alias("accepted"),
        )
        .groupBy("run")
        .agg(
            F.count(F.lit(1)).alias("read"),
            F.count(F.when(F.col("final.committed") < F.col("accepted.offset"), 1)).alias("behind"),
            F.count(F.when(F.col("final.committed") > F.col("final.end"), 1)).alias("beyond"),
        )
        .select("run", "read", "behind", "beyond")
    )


def _with_group(events: DataFrame) -> DataFrame:
    """The authority's commits with the state of their group and of their sender at that time."""
    per_group = Window.partitionBy("run", "group").orderBy("t_ns", "seq")
    # A new generation counts only after the commits in flight at its start.
    per_group_later = Window.partitionBy("run", "group").orderBy("counted_ns", "seq")
    per_sender = Window.partitionBy("run", "group", "sender").orderBy("t_ns", "seq")
    so_far = Window.unboundedPreceding, 0
    changed = F.col("kind") == "group_changed"
    began = F.when(changed, F.col("generation"))
    comes_or_goes = F.when(F.col("kind") == "group_member_joined", True).when(
        F.col("kind") == "group_member_left", False
    )
    return (
        events.where(F.col("kind").isin(*_GROUP_KINDS))
        .withColumn("counted_ns", F.col("t_ns") + F.when(changed, F.lit(IN_FLIGHT_NS)).otherwise(F.lit(0)))
        .withColumn("group_generation", _latest(began).over(per_group_later.rowsBetween(*so_far)))
        .withColumn("group_state", _latest(F.when(changed, F.col("state"))).over(per_group.rowsBetween(*so_far)))
        .withColumn("sender", F.coalesce("by", "id"))
        .withColumn("is_known", _latest(comes_or_goes).over(per_sender.rowsBetween(*so_far)))
    )


def _latest(column: Column) -> Column:
    return F.last(column, ignorenulls=True)


def is_stale(owner: Column, by: Column) -> Column:
    """Whether another member is the owner. ZooKeeper's owners are threads, `<consumer id>-<n>`; senders are consumers.

    An unknown sender ('') does not count as another member.
    """
    is_owners = (by == "") | (owner == by) | (F.regexp_replace(owner, r"-\d+$", "") == by)
    return F.coalesce(~is_owners, F.lit(False))


def moved_back_by(kind: Column, offset: Column, previous: Column) -> Column:
    """By how many records a commit moved the committed offset back; null when it did not."""
    return F.when((kind == "offset_written") & (offset < previous), previous - offset)


def starts_behind(kind: Column, offset: Column, accepted: Column) -> Column:
    """Whether delivery starts behind the last committed offset."""
    return F.coalesce((kind == "position_started") & (offset < accepted), F.lit(False))


def is_old(kind: Column, epoch: Column, generation: Column) -> Column:
    """Whether an accepted commit carries an older generation than the group's. Without a group, none is old."""
    carries_one = epoch >= 0
    return F.coalesce((kind == "offset_written") & carries_one & (epoch < generation), F.lit(False))


def is_fenced(kind: Column, error: Column, is_known: Column, state: Column) -> Column:
    """Whether a commit was refused because of its sender, not its time; see the module's docstring."""
    for_who = (kind == "offset_refused") & error.isin(*FENCING_ERRORS)
    not_now = F.coalesce(is_known, F.lit(False)) & F.coalesce(state.isin(*BETWEEN_GENERATIONS), F.lit(False))
    return F.coalesce(for_who & ~not_now, F.lit(False))
