"""The figures of a run: what each means, for the pipeline that measures them and the report that explains them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class Metric(msgspec.Struct, frozen=True):
    """What a figure of a run means."""

    unit: str
    meaning: str


#: Every figure of a run, in display order. The unit is the last word of a name.
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "converge_ms": Metric("ms", "longest time from a change to every partition owned once"),
        "rounds": Metric(
            "", "rebalances of the whole group in the measured changes: a coordinator's generations, or epochs"
        ),
        "rebalances": Metric("", "rebalances begun by members"),
        "rebalances_failed": Metric("", "rebalances that members gave up after the last attempt"),
        "attempts": Metric("", "attempts in them"),
        "attempts_failed": Metric("", "attempts that failed"),
        "notifications": Metric("", "watch events delivered to members"),
        "zk_reads": Metric("", "successful ZooKeeper reads by members"),
        "zk_writes": Metric("", "successful ZooKeeper writes by members"),
        "zk_reads_failed": Metric("", "failed reads"),
        "zk_writes_failed": Metric("", "failed writes, lost claims included"),
        "group_requests": Metric("", "JoinGroup, SyncGroup and LeaveGroup requests by members"),
        "heartbeats": Metric("", "heartbeats"),
        "commit_requests": Metric("", "offset commits sent to brokers or ZooKeeper"),
        "fetches": Metric("", "fetch requests"),
        "unowned_partition_s": Metric("s", "time that partitions were claimed by no member"),
        "stalled_s": Metric("s", "time in the measured changes in which the whole group delivered nothing"),
        "unowned_authority_partition_s": Metric("s", "time that partitions had no owner, by the authority"),
        "left_unnamed": Metric("", "partitions without an owner at the end of the last change, by the authority"),
        "double_owned_partition_s": Metric("s", "time that partitions were claimed by two members"),
        "two_delivering_partition_s": Metric("s", "time that two members delivered the same partition"),
        "two_delivering_longest_s": Metric("s", "the longest such time of one partition"),
        "moved": Metric("", "partitions moved to another member in the measured changes, counted each time"),
        "moved_minimum": Metric("", "the fewest that had to move to balance the group"),
        "balance": Metric("", "the most partitions of a member less the fewest, after the change where it was largest"),
        "lag_before": Metric("records", "records that were not committed when members were added"),
        "lag_record_s": Metric("s", "the lag from then to the end of the load, in records times seconds"),
        "dip_records": Metric("records", "the most that fewer were delivered since then than at the rate before"),
        "break_even_s": Metric("s", "time until as many were delivered as at the rate before"),
        "stopped": Metric("", "partitions taken from members that stayed, counted each time"),
        "stopped_kept": Metric("", "of these, given back to the same member"),
        "delivered": Metric("records", "records delivered, counted each time"),
        "duplicates": Metric("records", "records delivered again"),
        "lost": Metric(
            "records",
            "acknowledged records that were never delivered; unknown if some were left when the run broke off",
        ),
        "out_of_order": Metric("", "polls that began before the end of the previous one"),
        "stale_deliveries": Metric("records", "records delivered by a member that was not the owner"),
        "commits": Metric("", "committed offsets that the authority stored"),
        "stale_writes": Metric("", "commits accepted from a member that was not the owner"),
        "moved_back": Metric("", "commits that moved the committed offset back"),
        "moved_back_records": Metric("records", "by how many records in all"),
        "of_ended_sessions": Metric("", "commits that ZooKeeper stored after it had expired their session"),
        "old_accepted": Metric(
            "", "commits accepted with an older generation than the group's, or an older epoch than the member's"
        ),
        "refused": Metric("", "commits that the authority refused"),
        "started_behind": Metric("", "deliveries that started behind an accepted commit"),
        "fenced": Metric(
            "", "commits refused for an old generation or an unknown member; not of a member whose epoch just rose"
        ),
        "final_read": Metric("", "partitions whose committed offset was read at the end"),
        "final_behind": Metric("", "of these, behind the last accepted commit"),
        "final_beyond": Metric("", "of these, beyond the end of the log"),
        "misdirected": Metric("", "requests refused by a broker that was not the group's coordinator"),
        "dropped": Metric("", "commits dropped by a member that had lost its generation"),
        **{
            f"bystander_{op}_{stage}_{share}_ms": Metric(
                "ms", f"{meaning} of an uninvolved client's {op} on the same ZooKeeper, {stage} the changes"
            )
            for op in ("get", "set")
            for share, meaning in (("p50", "median"), ("p99", "99th percentile"))
            for stage in ("before", "during")
        },
    }
)
