"""The figures that are numbers of events: which events each counts, for whoever counts them.

The pipeline counts tables of events, the playground one event after the other as they happen.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from comparison.results.keys import GROUP_REQUESTS, OK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The fields that names are taken from: the first that a kind has.
NAMED_BY = ("op", "api", "event", "trigger", "state", "phase", "reset", "reason")
#: An operation that servers count neither as a read nor as a write.
SYNC = "sync"
#: The operations that change nothing.
READS = ("exists", "getData", "getChildren", SYNC)
#: A member of the consumer design joins, reconciles and leaves by heartbeats alone.
HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
#: Triggers of members of either protocol that had not polled for max.poll.interval.ms.
POLL_OVERDUE = ("poll-overdue", "poll-timeout")
#: Why a coordinator removes members that take longer in a rebalance than it waits (kernel.trace.words.Removal).
REBALANCE_OVERDUE = (
    *("not rejoined", "not synced", "not revoked in time"),
    *("not stopped in time", "not started in time"),
)
#: Kafka's name for the error.
NOT_COORDINATOR = "NOT_COORDINATOR"
MEMBER, BROKER = "member", "broker"
#: The area of committed offsets in ZooKeeper.
OFFSETS = "offsets"

_IN_GROUP = re.compile(r"/consumers/[^/]+/(ids|owners|offsets)(/|$)")
_IN_CLUSTER = re.compile(r"/brokers/(ids|topics)(/|$)")
_CLUSTER_AREAS = {"ids": "brokers", "topics": "topics"}


class Counted(Protocol):
    """An event, or several that are equal in all of this."""

    @property
    def role(self) -> str: ...  #: of the process that traced it
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def area(self) -> str: ...


class What(NamedTuple):
    """A `Counted`."""

    role: str
    kind: str
    name: str
    outcome: str
    area: str


def what_of(role: str, event: Mapping[str, object]) -> What:
    """An event that a process of this role has traced."""
    kind = str(event["kind"])
    name = next((event[field] for field in NAMED_BY if field in event), "")
    return What(role, kind, str(name or ""), outcome_of(kind, event), area_of(str(event.get("path") or "")))


def outcome_of(kind: str, row: Mapping[str, object]) -> str:
    """`ok`, or what went wrong: an operation's error, a request's error, an attempt's or a commit's outcome."""
    error = row.get("error")
    if kind == "zk_op":
        return OK if row["ok"] else str(error if error is not None else "failed")
    if kind == "request_answered":
        return str(error) or OK
    if kind == "offset_refused":
        return str(error)
    return str(row.get("outcome") or "")


def area_of(path: str) -> str:
    """What a path is about: ids, owners or offsets of a group; brokers, topics; or its first node."""
    if found := _IN_GROUP.search(path):
        return found[1]
    if found := _IN_CLUSTER.search(path):
        return _CLUSTER_AREAS[found[1]]
    return path[1:].partition("/")[0] if path.startswith("/") else ""


class Events(NamedTuple):
    """The events of one kind and role that count, in one figure."""

    kind: str
    where: Callable[[Counted], bool] = lambda _: True
    role: str = MEMBER


def _operations(*, reads: bool, ok: bool) -> Events:
    return Events("zk_op", lambda each: (each.name in READS) is reads and (each.outcome == OK) is ok)


def _requests(*names: str) -> Events:
    return Events("request_answered", lambda each: each.name in names)


#: Each figure of `METRICS` that is a number of events until the members are stopped: the events that count.
COUNTS: Mapping[str, tuple[Events, ...]] = MappingProxyType(
    {
        "rebalances": (Events("rebalance_started"),),
        "rebalances_failed": (Events("rebalance_ended", lambda each: each.outcome == "failed"),),
        "poll_overdue": (Events("rebalance_triggered", lambda each: each.name in POLL_OVERDUE),),
        "rebalance_overdue": (Events("group_member_left", lambda each: each.name in REBALANCE_OVERDUE, BROKER),),
        "attempts": (Events("attempt_ended"),),
        "attempts_failed": (Events("attempt_ended", lambda each: each.outcome != OK),),
        "notifications": (Events("zk_notified"),),
        "zk_reads": (_operations(reads=True, ok=True),),
        "zk_writes": (_operations(reads=False, ok=True),),
        "zk_reads_failed": (_operations(reads=True, ok=False),),
        "zk_writes_failed": (_operations(reads=False, ok=False),),
        "group_requests": (_requests(*GROUP_REQUESTS),),
        "heartbeats": (_requests(*HEARTBEATS),),
        "commit_requests": (
            _requests("OffsetCommit"),
            Events("zk_op", lambda each: each.name not in READS and each.area == OFFSETS),
        ),
        "fetches": (_requests("Fetch"),),
        "misdirected": (Events("request_answered", lambda each: each.outcome == NOT_COORDINATOR),),
        "dropped": (Events("commit_answered", lambda each: each.outcome == "dropped"),),
    }
)
