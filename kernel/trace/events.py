"""The schema of record: every kind of event, every field it may carry, in one literal table.

A trace file is JSON lines. The first line is the header (`HEADER_FIELDS`), every other line one event. All
events have the common fields (`COMMON_FIELDS`); a kind adds its own. Unknown kinds are kept by every reader;
an event of a known kind that lacks a required field, or has one of the wrong type, is flagged, never dropped.

Vocabulary:

- *process*: one operating-system process (`m3`, `broker-1`, `runner`); one trace file each.
- *member*: the id under which the group knows a member: the consumer id in `zookeeper`, the member id handed
  out by the coordinator in the broker designs.
- *stream*: the thread's number; the unit of ownership is (process, member, stream).
- *owner*: who the authority names: a thread id (`<consumer id>-<n>`) in `zookeeper`, a member id elsewhere.
- *epoch*: what orders ownership: the zxid of the owner node's creation, or the generation.
- *cause*: what made this happen, as `zxid:<n>`, `generation:<n>`, `correlation:<n>`, `fault:<name>` or ''.

Two truths are written separately and compared by the pipeline: what members *believe* (role `member`) and
what the authority *says*: the broker's own events for the coordinator designs, ZooKeeper's transaction log
(turned into a trace of role `observer` after the run) for `zookeeper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1


class Role(StrEnum):
    """Whose trace it is."""

    MEMBER = "member"
    BROKER = "broker"
    RUNNER = "runner"
    PROXY = "proxy"
    OBSERVER = "observer"


class Implementation(StrEnum):
    """Whose code wrote it: ours, an original Kafka consumer, or a stock client."""

    OURS = "ours"
    ORIGINAL = "original"
    STOCK = "stock"


class Type(Enum):
    """Types of fields, as JSON has them."""

    TEXT = "text"
    INT = "int"
    FLAG = "flag"
    PARTITIONS = "partitions"  #: [{"topic": "t", "partition": 0}, ...]
    DETAIL = "detail"  #: any JSON object; kept as text by the pipeline


#: The header line: {"header": {...}}. One pair of monotonic and wall time ties the two clocks together.
HEADER_FIELDS: Mapping[str, Type] = MappingProxyType(
    {
        "schema": Type.INT,
        "run": Type.TEXT,
        "scenario": Type.TEXT,
        "design": Type.TEXT,
        "role": Type.TEXT,
        "implementation": Type.TEXT,
        "process": Type.TEXT,
        "seed": Type.INT,
        "clock": Type.TEXT,  # monotonic | simulated
        "boot_id": Type.TEXT,
        "monotonic_ns": Type.INT,
        "wall_ns": Type.INT,
        "pid": Type.INT,
    }
)

#: On every event. `seq` counts from 0 in each file without gaps; `ns` is CLOCK_MONOTONIC.
COMMON_FIELDS: Mapping[str, Type] = MappingProxyType(
    {
        "seq": Type.INT,
        "ns": Type.INT,
        "kind": Type.TEXT,
        "process": Type.TEXT,
        "member": Type.TEXT,
        "stream": Type.INT,
        "cause": Type.TEXT,
    }
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event: its fields (all required unless named in `optional`) and what it tells."""

    fields: Mapping[str, Type]
    tells: str
    optional: frozenset[str] = frozenset()


def _kind(tells: str, /, *, optional: str = "", **fields: Type) -> Kind:
    return Kind(MappingProxyType(fields), tells, frozenset(optional.split()))


TEXT, INT, FLAG, PARTITIONS, DETAIL = Type.TEXT, Type.INT, Type.FLAG, Type.PARTITIONS, Type.DETAIL

#: The phases of a rebalance that designs have in common; a design may skip some.
PHASES = (
    "detect",  # told of a change, not yet reacting
    "stop",  # stopping fetchers, committing, revoking
    "release",  # giving claims up (zookeeper: deleting owner nodes)
    "join",  # reading the group (zookeeper) or JoinGroup
    "decide",  # computing the assignment (every member in zookeeper, the leader in eager)
    "claim",  # creating owner nodes (zookeeper) or SyncGroup
    "resume",  # reading offsets where that comes last, starting fetchers
    "backoff",  # waiting after a failed attempt
)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        # -- the runner: what was done to the group ------------------------------------------------------------
        "run_started": _kind("the run's parameters", parameters=DETAIL),
        "run_ended": _kind("how it ended: complete, interrupted or failed", outcome=TEXT, error=TEXT, optional="error"),
        "stage_entered": _kind("warm, steady, fault, heal, drain, final or stop", stage=TEXT),
        "phase_drawn": _kind(
            "the runner waits before a change; `detail` has share, interval_ms and wait_ms", detail=DETAIL
        ),
        "process_started": _kind("a child was started", target=TEXT, child_pid=INT),
        "process_ended": _kind(
            "a child ended; `how` is leave, kill, stop or itself", target=TEXT, how=TEXT, code=INT, optional="code"
        ),
        "fault_started": _kind("a fault began", fault=TEXT, target=TEXT, detail=DETAIL, optional="detail"),
        "fault_ended": _kind("a fault ended", fault=TEXT, target=TEXT),
        "change_started": _kind(
            "one change of the group is about to be made; `members` is their number after it",
            change=TEXT,
            round=INT,
            members=INT,
            detail=DETAIL,
            optional="detail",
        ),
        "change_settled": _kind(
            "every partition is owned once again after that change", change=TEXT, round=INT, members=INT
        ),
        "topic_wanted": _kind(
            "from now on the group should own the partitions 0..wanted-1 of a topic (0: none of it any more); of a "
            "topic for which this is never told, every partition that is known, all the time",
            topic=TEXT,
            wanted=INT,
        ),
        "records_acked": _kind(
            "the producer's records first..last of a partition are stored; each carries its own "
            "number in that partition, serial_first..serial_last",
            topic=TEXT,
            partition=INT,
            first=INT,
            last=INT,
            serial_first=INT,
            serial_last=INT,
        ),
        "counters_read": _kind(
            "a ZooKeeper server's own counters (mntr): successful operations without pings",
            server=TEXT,
            namespace=TEXT,
            reads=INT,
            writes=INT,
            at=TEXT,
        ),
        "final_offset": _kind(
            "committed offset and log end after the drain",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            committed=INT,
            end=INT,
        ),
        # -- a member: what it believes and does -----------------------------------------------------------------
        "member_started": _kind(
            "the member is known to the group under this id", group=TEXT, streams=INT, optional="streams"
        ),
        "member_closed": _kind("the member has left by itself", group=TEXT),
        "member_failed": _kind("an error reached the application", error=TEXT),
        "rebalance_triggered": _kind("this member was told of a change", trigger=TEXT),
        "rebalance_started": _kind("this member began a rebalance", trigger=TEXT),
        "attempt_started": _kind("one attempt of it, counted from 1", attempt=INT),
        "phase_entered": _kind(
            "a phase of the attempt (see PHASES); it lasts until the next one, or until the attempt ends",
            phase=TEXT,
            attempt=INT,
        ),
        "attempt_ended": _kind(
            "ok, conflict, unavailable or error", attempt=INT, outcome=TEXT, error=TEXT, optional="error"
        ),
        "rebalance_ended": _kind("ok, failed or superseded", outcome=TEXT, generation=INT, optional="generation"),
        "partitions_assigned": _kind(
            "this stream may deliver these from now on; `all` is everything it has then",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "partitions_revoked": _kind(
            "this stream has stopped delivering these",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "partitions_lost": _kind(
            "as revoked, but they had been taken away before it knew",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "records_delivered": _kind(
            "records handed out in one poll: consecutive offsets with consecutive serials "
            "(serials are null for records that carry none)",
            topic=TEXT,
            partition=INT,
            first=INT,
            last=INT,
            serial_first=INT,
            serial_last=INT,
            optional="serial_first serial_last",
        ),
        "position_reset": _kind(
            "no usable offset: the position was set by auto.offset.reset",
            topic=TEXT,
            partition=INT,
            offset=INT,
            reset=TEXT,
        ),
        "position_started": _kind("delivery of a partition starts here", topic=TEXT, partition=INT, offset=INT),
        "commit_answered": _kind(
            "what the member learned of its commit: accepted, refused, dropped or unknown; `store` is kafka or "
            "zookeeper where a design has both",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            offset=INT,
            outcome=TEXT,
            error=TEXT,
            generation=INT,
            explicit=FLAG,
            store=TEXT,
            optional="error generation explicit store",
        ),
        "session_changed": _kind("connected, suspended, lost or closed", state=TEXT, session=TEXT, optional="session"),
        "zk_op": _kind(
            "one ZooKeeper request by this process; `step` is R1..R12 of the rebalance or another name",
            op=TEXT,
            path=TEXT,
            ok=FLAG,
            error=TEXT,
            step=TEXT,
            zxid=INT,
            optional="error zxid",
        ),
        "zk_notified": _kind(
            "a watch event was delivered to this process", path=TEXT, event=TEXT, zxid=INT, optional="zxid"
        ),
        "request_answered": _kind(
            "one request to a broker and its answer; error '' is success",
            api=TEXT,
            version=INT,
            correlation=INT,
            broker=INT,
            error=TEXT,
            group=TEXT,
            optional="group",
        ),
        # -- the authority: what the group's state really is -------------------------------------------------------
        "authority_named": _kind(
            "the authority names `owner` for a partition",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            owner=TEXT,
            epoch=INT,
            session=TEXT,
            optional="session",
        ),
        "authority_cleared": _kind(
            "the authority names nobody any more",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            owner=TEXT,
            epoch=INT,
            reason=TEXT,
        ),
        "offset_written": _kind(
            "the authority stored a committed offset, sent by `by`",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            offset=INT,
            by=TEXT,
            epoch=INT,
            session=TEXT,
            optional="session",
        ),
        "offset_refused": _kind(
            "the authority refused a commit",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            offset=INT,
            by=TEXT,
            epoch=INT,
            error=TEXT,
        ),
        "group_changed": _kind(
            "the coordinator moved a group to another state",
            group=TEXT,
            state=TEXT,
            generation=INT,
            members=INT,
            reason=TEXT,
        ),
        "group_member_joined": _kind(
            "the authority knows a member: its id node was created or the coordinator admitted it",
            group=TEXT,
            id=TEXT,
            session=TEXT,
            optional="session",
        ),
        "group_member_left": _kind(
            "the authority forgot a member: leave, session, pending or fenced",
            group=TEXT,
            id=TEXT,
            reason=TEXT,
            session=TEXT,
            optional="session",
        ),
        "leader_changed": _kind(
            "a broker took or gave up a partition's leadership", topic=TEXT, partition=INT, leader=INT, leader_epoch=INT
        ),
        # -- the proxy: what the network did -----------------------------------------------------------------------
        "link_cut": _kind("bytes between two ends are held", link=TEXT),
        "link_healed": _kind("they flow again; what was held is delivered", link=TEXT),
    }
)
