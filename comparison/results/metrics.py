"""The figures of a run, of one change, and of a sweep's runs: what each means, how the reports show it, what compares.

A new figure of a run is a row here, and its computation in `comparison.pipeline.figures.assemble`; one of a change is a
row, and a field of `comparison.results.run.Change`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.results.meanings import ChangeMetric, Compares, Glance, Meaning, Metric, Of

if TYPE_CHECKING:
    from collections.abc import Mapping


#: With fewer repeats than these a median is no better than a draw.
REPEATS_MIN = 3

ALWAYS, AS_MEDIAN = Compares.ALWAYS, Compares.AS_MEDIAN
STRETCH, CHANGES = Of.STRETCH, Of.CHANGES
PRICE, ANY, HARM = Glance.PRICE, Glance.ANY, Glance.HARM
AUTHORITY_REQUESTS = "authority_requests"
_ASKED_OF_AUTHORITY = Meaning(
    "",
    "requests of members to the coordinator, and their reads and writes of ZooKeeper, without Heartbeat; those of "
    "`consumer` and `server` that carry assignments are counted whether they carry one or not",
)
#: Every figure of a run, in display order.
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "converge_ms": Metric(
            "ms",
            "longest time from a change until every partition had one owner",
            "settled after, ms (worst)",
            AS_MEDIAN,
            is_always_shown=True,
            of=CHANGES,
            glance=PRICE,
        ),
        "converge_healed_ms": Metric(
            "ms",
            "the same from the end of a fault on, if a fault ended; 0: it had settled by then",
            "settled after the heal, ms (worst)",
            AS_MEDIAN,
            of=CHANGES,
            glance=PRICE,
        ),
        "unowned_partition_s": Metric(
            "s",
            "time that partitions were claimed by no member of a group that had one",
            "unowned, partition-s",
            AS_MEDIAN,
            is_always_shown=True,
            of=STRETCH,
            glance=PRICE,
        ),
        "memberless_partition_s": Metric(
            "s",
            "time that partitions had no owner because the group had no member",
            "group without members, partition-s",
            of=STRETCH,
        ),
        "unowned_authority_partition_s": Metric("s", "time that partitions had no owner, by the authority", of=STRETCH),
        "stalled_s": Metric(
            "s",
            "time in the measured changes in which the whole group delivered nothing",
            "nothing delivered, s",
            AS_MEDIAN,
            of=CHANGES,
        ),
        "standstill_s": Metric(
            "s",
            "longest time that records of a partition waited and nothing was delivered from it, owned or not",
            "longest standstill, s",
            AS_MEDIAN,
            is_always_shown=True,
            of=STRETCH,
            glance=PRICE,
        ),
        "standstill_partition_s": Metric(
            "s",
            "the sum of such times of all partitions",
            "all standstills, partition-s",
            AS_MEDIAN,
            of=STRETCH,
        ),
        "left_unnamed": Metric(
            "",
            "partitions without an owner at the end of the last change, by the authority",
            "partitions without an owner at the end",
            of=CHANGES,
            glance=HARM,
        ),
        "double_owned_partition_s": Metric(
            "s", "time that partitions were claimed by two members", "claimed by two, partition-s", AS_MEDIAN
        ),
        "two_delivering_partition_s": Metric(
            "s",
            "time that two members delivered the same partition",
            "two delivering, partition-s",
            AS_MEDIAN,
            is_always_shown=True,
            glance=HARM,
        ),
        "two_delivering_longest_s": Metric("s", "the longest such time of one partition"),
        "stopped": Metric(
            "",
            "partitions taken from members that stayed, counted each time",
            "partitions stopped",
            ALWAYS,
            of=CHANGES,
            glance=PRICE,
        ),
        "stopped_kept": Metric(
            "", "of these, given back to the same member", "and given back", ALWAYS, is_part=True, of=CHANGES
        ),
        "moved": Metric(
            "",
            "partitions moved to another member in the measured changes, counted each time",
            "partitions moved",
            ALWAYS,
            of=CHANGES,
            glance=PRICE,
        ),
        "moved_minimum": Metric(
            "",
            "the fewest that had to move to balance the group",
            "minimum",
            ALWAYS,
            is_part=True,
            of=CHANGES,
            more_is_worse=False,
        ),
        "balance": Metric(
            "",
            "the most partitions of one member less the fewest of one, after the change where that was largest",
            "most partitions less fewest",
            ALWAYS,
            of=CHANGES,
        ),
        "lag_before": Metric(
            "records",
            "records that were not committed when members were added",
            "lag when members were added",
            of=CHANGES,
            more_is_worse=False,
        ),
        "lag_record_s": Metric(
            "s",
            "the lag from then to the end of the load, in records times seconds",
            "from then on, record-s",
            AS_MEDIAN,
            is_part=True,
            of=CHANGES,
        ),
        "dip_records": Metric(
            "records",
            "how many records fewer than at the rate before had been delivered since then, at most",
            "records fewer, at most",
            AS_MEDIAN,
            of=CHANGES,
            glance=ANY,
        ),
        "break_even_s": Metric(
            "s",
            "time until as many records had been delivered as at the rate before",
            "made up for after, s",
            AS_MEDIAN,
            is_part=True,
            of=CHANGES,
            glance=ANY,
        ),
        "rounds": Metric(
            "",
            "rebalances of the whole group in the measured changes: a coordinator's generations, or epochs",
            "rebalances of the group",
            ALWAYS,
            of=CHANGES,
        ),
        "rebalances": Metric("", "rebalances begun by members", "rebalances of members", AS_MEDIAN),
        "rebalances_failed": Metric(
            "",
            "rebalances that members gave up after the last attempt",
            "rebalances given up",
            is_part=True,
            glance=HARM,
        ),
        "attempts": Metric("", "attempts in these rebalances", "attempts", AS_MEDIAN, is_part=True),
        "attempts_failed": Metric("", "attempts that failed", "failed", is_part=True),
        "poll_overdue": Metric(
            "",
            "times that members left their group because they had not polled for max.poll.interval.ms; in consumer "
            "only if they came back",
            "max.poll.interval.ms passed",
        ),
        "rebalance_overdue": Metric(
            "",
            "times that a coordinator removed a member that took longer in a rebalance than it waits "
            "(max.poll.interval.ms, or group.server.rebalance.timeout.ms)",
            "removed in a rebalance",
        ),
        "notifications": Metric("", "watch events delivered to members", "notifications"),
        "zk_reads": Metric("", "successful ZooKeeper reads by members", "ZooKeeper reads"),
        "zk_reads_failed": Metric("", "failed reads", "failed", is_part=True),
        "zk_writes": Metric("", "successful ZooKeeper writes by members", "ZooKeeper writes", more_is_worse=False),
        "zk_writes_failed": Metric("", "failed writes, lost claims included", "failed", is_part=True),
        AUTHORITY_REQUESTS: Metric(
            _ASKED_OF_AUTHORITY.unit,
            _ASKED_OF_AUTHORITY.meaning,
            "requests and reads at the authority",
            of=CHANGES,
            glance=PRICE,
        ),
        "group_requests": Metric(
            "", "JoinGroup, SyncGroup and LeaveGroup requests by members", "join, sync and leave requests", ALWAYS
        ),
        "heartbeats": Metric("", "heartbeats", "heartbeats", more_is_worse=False),
        "commit_requests": Metric(
            "", "offset commits sent to brokers or ZooKeeper", "commits sent", more_is_worse=False
        ),
        "fetches": Metric("", "fetch requests", "fetches", more_is_worse=False),
        "delivered": Metric(
            "records",
            "records delivered, counted each time",
            "records delivered",
            is_always_shown=True,
            more_is_worse=False,
        ),
        "duplicates": Metric(
            "records",
            "records delivered again",
            "delivered again",
            AS_MEDIAN,
            is_part=True,
            is_always_shown=True,
            glance=PRICE,
        ),
        "lost": Metric(
            "records",
            "acknowledged records that were never delivered; unknown if some were left when the run broke off",
            "lost",
            is_part=True,
            is_always_shown=True,
            glance=HARM,
        ),
        "skipped": Metric(
            "records",
            "records that came after the group and were never delivered, because auto.offset.reset began after them",
            "skipped by a reset",
            is_part=True,
            glance=HARM,
        ),
        "old_offsets_used": Metric(
            "",
            "partitions of a recreated topic that the group began at an offset of the deleted one",
            "begun at an old topic's offset",
            glance=HARM,
        ),
        "pauses_dropped": Metric(
            "",
            "pauses of a partition that a rebalance dropped, though the same member got the partition back",
            "pauses dropped by a rebalance",
            glance=HARM,
        ),
        "pauses_moved": Metric(
            "", "pauses that ended because a rebalance took the partition from the member", more_is_worse=False
        ),
        "pauses_outlasting": Metric("", "pauses of a partition that outlasted a rebalance", more_is_worse=False),
        "out_of_order": Metric("", "polls that began before the end of the previous one", "polls out of order"),
        "stale_deliveries": Metric(
            "records", "records delivered by a member that was not the owner", "delivered by a non-owner", glance=HARM
        ),
        "commits": Metric("", "committed offsets that the authority stored", more_is_worse=False),
        "stale_writes": Metric(
            "", "commits accepted from a member that was not the owner", "commits by a non-owner", glance=HARM
        ),
        "moved_back": Metric("", "commits that moved the committed offset back", "offsets moved back", glance=HARM),
        "moved_back_records": Metric("records", "by how many records in all"),
        "of_ended_sessions": Metric("", "commits that ZooKeeper stored after it had expired their session"),
        "old_accepted": Metric(
            "", "commits accepted with an older generation than the group's, or an older epoch than the member's"
        ),
        "refused": Metric("", "commits that the authority refused", "commits refused", more_is_worse=False),
        "started_behind": Metric(
            "",
            "deliveries that started below an offset that had been committed",
            "started behind a commit",
            glance=HARM,
        ),
        "reset_behind": Metric(
            "",
            "positions that auto.offset.reset set below an offset that had been committed",
            "by a reset",
            is_part=True,
        ),
        "fenced": Metric(
            "",
            "commits refused for an old generation or an unknown member; not of a member whose epoch just rose",
            "commits fenced",
            more_is_worse=False,
        ),
        "final_read": Metric("", "partitions whose committed offset was read at the end", more_is_worse=False),
        "final_behind": Metric("", "of these, below what was committed last"),
        "final_beyond": Metric("", "of these, beyond the end of the log"),
        "misdirected": Metric("", "requests refused by a broker that was not the group's coordinator"),
        "dropped": Metric(
            "",
            "commits dropped by a member that had lost its generation",
            "commits dropped by their sender",
            more_is_worse=False,
        ),
        **{
            f"bystander_{op}_{stage}_{share}_ms": Metric(
                "ms",
                f"{meaning} of an uninvolved client's {op} on the same ZooKeeper, {stage} the changes",
                f"{meaning}, ms" if is_part else f"bystander's {op} {stage}, ms",
                AS_MEDIAN,
                CHANGES,
                is_part=is_part,
                more_is_worse=stage == "during",
            )
            for op in ("get", "set")
            for stage in ("before", "during")
            for share, meaning, is_part in (("p50", "median", False), ("p99", "99th percentile", True))
        },
    }
)
#: Figures of one change, in display order. Each is an attribute of `Change`.
CHANGE_METRICS: Mapping[str, ChangeMetric] = MappingProxyType(
    {
        "converge_ms": ChangeMetric("ms", "time until every partition was owned once", "ms", is_spread=True),
        "takeover_ms": ChangeMetric("ms", "time until the authority first named a new owner"),
        "rounds": ChangeMetric("", "rebalances of the whole group", "rebalances", is_spread=True),
        "stopped": ChangeMetric("", "partitions taken from members that stayed", "stopped", is_spread=True),
        "moved": ChangeMetric("", "partitions moved to another member", "moved", is_spread=True),
        "unowned_partition_s": ChangeMetric(
            "s", "time that partitions were claimed by no member", "unowned, s", is_spread=True
        ),
        "unowned_longest_s": ChangeMetric("s", "the longest such time of one partition"),
        "two_delivering_partition_s": ChangeMetric("s", "time that two members delivered the same partition"),
        "stalled_s": ChangeMetric("s", "time in which the whole group delivered nothing", is_spread=True),
        "standstill_s": ChangeMetric(
            "s", "longest time that records of a partition waited and nothing was delivered", is_spread=True
        ),
        "attempts": ChangeMetric("", "attempts to rebalance"),
        "attempts_failed": ChangeMetric("", "attempts that failed"),
        "notifications": ChangeMetric("", "watch events delivered to members"),
        "zk_reads": ChangeMetric("", "reads of ZooKeeper by members"),
        "zk_writes": ChangeMetric("", "writes to ZooKeeper by members, without commits"),
        "group_requests": ChangeMetric("", "JoinGroup, SyncGroup and LeaveGroup requests of members"),
        "added_ms": ChangeMetric("ms", "time until every partition that was added had been delivered from"),
    }
)
FAILED_RUNS, APPLICATION_ERRORS = "failed_runs", "application_errors"
#: Figures of one change in a sweep besides CHANGE_METRICS.
SWEEP_CHANGE_METRICS: Mapping[str, Meaning] = MappingProxyType(
    {
        AUTHORITY_REQUESTS: _ASKED_OF_AUTHORITY,
        "detect_ms": Meaning("ms", "time until the authority noticed that a member was gone"),
        "heartbeats_per_s": Meaning("1/s", "heartbeats, or requests for commands, of all members"),
        "authority_cpu_s": Meaning("s", "CPU time of deciding at the coordinator, measured and not simulated"),
    }
)
#: Figures of a run in a sweep besides METRICS.
SWEEP_METRICS: Mapping[str, Meaning] = MappingProxyType(
    {
        FAILED_RUNS: Meaning("", "runs that failed: their number, of those that ended"),
        APPLICATION_ERRORS: Meaning(
            "", "errors that reached applications, in failed runs too; in zookeeper each is a rebalance given up"
        ),
    }
)


def label_of(name: str) -> str:
    """What a figure of a run is called where no other row stands above it."""
    above = ""
    for each, metric in METRICS.items():
        if metric.label and not metric.is_part:
            above = metric.label
        if each == name:
            return f"{above.partition(',')[0]}: {metric.label}" if metric.is_part else metric.label or metric.meaning
    raise KeyError(name)


def label_and_name(name: str) -> str:
    """What the reports call a figure, and its name: `settled after, ms (converge_ms)`; or the name alone."""
    if not METRICS[name].label:
        return name
    label = label_of(name)
    return f"{label[:-1]}; {name})" if label.endswith(")") else f"{label} ({name})"
