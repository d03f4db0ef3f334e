"""The figures of a sweep: those of a run, and those of one change of its group, such as `join.notifications`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.metrics import METRICS, Metric
from kernel.errors import ConfigurationError
from kernel.suggestions import closest, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FAILED_RUNS, APPLICATION_ERRORS = "failed_runs", "application_errors"
#: Figures of a run besides METRICS.
OWN_METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        FAILED_RUNS: Metric("", "runs that failed: their number, of those that ended"),
        APPLICATION_ERRORS: Metric(
            "", "errors that reached applications, in failed runs too; in zookeeper each is a rebalance given up"
        ),
    }
)
#: Figures of one change.
CHANGE_METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "converge_ms": Metric("ms", "time until every partition was owned once"),
        "takeover_ms": Metric("ms", "time until the authority first named a new owner"),
        "rounds": Metric("", "rebalances of the whole group"),
        "unowned_partition_s": Metric("s", "time that partitions were claimed by no member"),
        "unowned_longest_s": Metric("s", "the longest such time of one partition"),
        "two_delivering_partition_s": Metric("s", "time that two members delivered the same partition"),
        "stalled_s": Metric("s", "time in which the whole group delivered nothing"),
        "moved": Metric("", "partitions moved to another member"),
        "stopped": Metric("", "partitions taken from members that stayed"),
        "attempts": Metric("", "attempts to rebalance"),
        "attempts_failed": Metric("", "attempts that failed"),
        "notifications": Metric("", "watch events delivered to members"),
        "zk_reads": Metric("", "reads of ZooKeeper by members"),
        "zk_writes": Metric("", "writes to ZooKeeper by members, without commits"),
        "group_requests": Metric("", "JoinGroup, SyncGroup and LeaveGroup requests of members"),
        "added_ms": Metric("ms", "time until every partition that was added had been delivered from"),
    }
)


def metrics_named(names: Iterable[str]) -> tuple[str, ...]:
    """Checked names of figures, each once. Whether a run has such a change shows only afterwards."""
    known = {**METRICS, **OWN_METRICS}
    for name in names:
        change, dot, figure = name.partition(".")
        table, looked = (CHANGE_METRICS, figure) if dot and change else (known, name)
        if looked not in table:
            before = f"{change}." if dot and change else ""
            names = [before + each for each in table]
            # No other command lists them.
            hint = "" if closest(name, names) else f"Use one of {', '.join(names)}"
            raise ConfigurationError(unknown("metric", name, names, hint=hint))
    return tuple(dict.fromkeys(names))
