"""The trace schema: every kind of event and its fields, in one table.

A trace file holds JSON lines. The first line is the header (`HEADER_FIELDS`). The last one is the end marker
(`END_FIELDS`), which a process writes when it ends cleanly; a killed process leaves none. Every other line is one
event. All events have the common fields (`COMMON_FIELDS`), and each kind adds its own. Readers keep events of unknown
kinds. They flag an event that lacks a required field, has one of the wrong type, or in a field of few words another
one (`kernel.trace.words`); they never drop it.

Schema 1 had no end marker. Its files are still read, and nothing is concluded from the missing marker.

Vocabulary:

- *process*: an operating-system process (`m3`, `broker-1`, `runner`). Each writes one trace file.
- *member*: the member's id in the group: the consumer id in `zookeeper`, the member id that the coordinator assigned
  in the other designs.
- *stream*: the number of a consumer thread. The unit of ownership is (process, member, stream).
- *owner*: the owner by the authority: a thread id (`<consumer id>-<n>`) in `zookeeper`, a member id elsewhere.
- *epoch*: orders ownership: the zxid that created the owner znode, or the generation (KIP-848: the member's epoch).
- *cause*: the trigger of the event, as `zxid:<n>`, `generation:<n>`, `correlation:<n>`, `fault:<name>` or ''; of
  `partitions_resumed`, a word.

Traces record two views, which the pipeline compares: what members *believe* (role `member`) and what the *authority*
says. The authority is the coordinator, which traces its own events, or in `zookeeper` ZooKeeper itself, whose
transaction log becomes a trace of role `observer` after the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 2
#: The first schema whose files have an end marker.
END_MARKER_SINCE = 2
#: Times are smaller than this, so that the sum of four of them fits into 64 bits: 73 years in nanoseconds.
TIME_NS_LIMIT = 1 << 61


class Role(StrEnum):
    """The kind of process that wrote a trace."""

    MEMBER = "member"
    BROKER = "broker"
    RUNNER = "runner"
    PROXY = "proxy"
    OBSERVER = "observer"
    BYSTANDER = "bystander"


class Implementation(StrEnum):
    """Whose code ran in the process: ours, or an original Kafka consumer's."""

    OURS = "ours"
    ORIGINAL = "original"


class Type(Enum):
    """The JSON types of fields."""

    TEXT = "text"
    INT = "int"
    FLAG = "flag"
    PARTITIONS = "partitions"  #: [{"topic": "t", "partition": 0}, ...]
    DETAIL = "detail"  #: any JSON object; the pipeline keeps it as text


#: The header line: {"header": {...}}. It holds one reading of both clocks, which relates monotonic to wall time.
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
        "clock": Type.TEXT,  # a word of kernel.trace.words.TimeSource
        "boot_id": Type.TEXT,
        "monotonic_ns": Type.INT,
        "wall_ns": Type.INT,
        "pid": Type.INT,
    }
)

#: The end marker: {"end": {...}}. It has the number of events in the file, and the time on the same clock as theirs.
END_FIELDS: Mapping[str, Type] = MappingProxyType({"events": Type.INT, "monotonic_ns": Type.INT})

#: Fields of every event. `seq` counts from 0 in each file without gaps; `ns` is CLOCK_MONOTONIC.
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
    """One kind of event: its fields (required unless listed in `optional`) and its meaning."""

    fields: Mapping[str, Type]
    meaning: str
    optional: frozenset[str] = frozenset()


def _kind(meaning: str, /, *, optional: str = "", **fields: Type) -> Kind:
    return Kind(MappingProxyType(fields), meaning, frozenset(optional.split()))


TEXT, INT, FLAG, PARTITIONS, DETAIL = Type.TEXT, Type.INT, Type.FLAG, Type.PARTITIONS, Type.DETAIL

#: The phases of a rebalance, common to all designs; a design may skip some.
PHASES = (
    "detect",  # notified of a change, not reacting yet
    "stop",  # stopping fetchers, committing, revoking
    "release",  # giving up claims (zookeeper: deleting owner znodes)
    "join",  # reading the group's znodes (zookeeper) or JoinGroup
    "decide",  # computing the assignment (every member in zookeeper, the leader in eager)
    "claim",  # creating owner znodes (zookeeper) or SyncGroup
    "resume",  # starting fetchers, after reading offsets in designs that read them last
    "backoff",  # waiting after a failed attempt
)

_RECORDS = {"topic": TEXT, **dict.fromkeys(("partition", "first", "last", "serial_first", "serial_last"), INT)}
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        # -- the runner: what the scenario did to the group ------------------------------------------------------
        "run_started": _kind("The run started with these parameters.", parameters=DETAIL),
        "run_ended": _kind("The run ended.", outcome=TEXT, error=TEXT, optional="error"),
        "stage_entered": _kind("The run entered a stage.", stage=TEXT),
        "phase_drawn": _kind(
            "The runner waits for a random share of a timer's interval before a change.", detail=DETAIL
        ),
        "process_started": _kind("The runner started a child process.", target=TEXT, child_pid=INT),
        "process_ended": _kind("A child process ended.", target=TEXT, how=TEXT, code=INT, optional="code"),
        "fault_started": _kind("A fault began.", fault=TEXT, target=TEXT, detail=DETAIL, optional="detail"),
        "fault_ended": _kind("A fault ended.", fault=TEXT, target=TEXT),
        "change_started": _kind(
            "The runner is about to change the group.",
            change=TEXT,
            round=INT,
            members=INT,
            detail=DETAIL,
            optional="detail",
        ),
        "change_settled": _kind(
            "After a change, every partition has exactly one owner again.", change=TEXT, round=INT, members=INT
        ),
        "topic_wanted": _kind(
            "From now on the group should own these partitions of the topic. Without this event, "
            "it should own every known partition of the topic throughout.",
            topic=TEXT,
            wanted=INT,
        ),
        "records_acked": _kind(
            "The broker acknowledged records at offsets first to last of a partition. Each carries a serial number, "
            "serial_first to serial_last.",
            **_RECORDS,
            latency_ns=INT,
            optional="latency_ns",
        ),
        "copies_read": _kind(
            "What a read_committed reader found of the copies of an application that was frozen and replaced.",
            detail=DETAIL,
        ),
        "counters_read": _kind(
            "A ZooKeeper server's own counters (mntr): successful operations, without pings.",
            server=TEXT,
            namespace=TEXT,
            reads=INT,
            writes=INT,
            at=TEXT,
            latency_ns=INT,
            optional="latency_ns",
        ),
        "final_offset": _kind(
            "The committed offset and the log end offset of a partition after the drain.",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            committed=INT,
            end=INT,
        ),
        # -- a member: what it believes and does -----------------------------------------------------------------
        "member_started": _kind(
            "The member joined the group under this id.", group=TEXT, streams=INT, optional="streams"
        ),
        "member_closed": _kind("The member left the group on its own.", group=TEXT),
        "member_failed": _kind("An error reached the application.", error=TEXT),
        "member_refused": _kind(
            "The group refused the member for good: it answered `api` with this error, and the member asks no more.",
            group=TEXT,
            api=TEXT,
            error=TEXT,
        ),
        "rebalance_triggered": _kind("The member was notified of a change.", trigger=TEXT),
        "rebalance_started": _kind("The member began a rebalance; of KIP-848: to join or reconcile.", trigger=TEXT),
        "attempt_started": _kind("An attempt of the rebalance began.", attempt=INT),
        "phase_entered": _kind(
            "The attempt entered a phase, which lasts until the next phase or the end of the attempt.",
            phase=TEXT,
            attempt=INT,
        ),
        "attempt_ended": _kind("The attempt ended.", attempt=INT, outcome=TEXT, error=TEXT, optional="error"),
        "rebalance_ended": _kind("The rebalance ended.", outcome=TEXT, generation=INT, optional="generation"),
        "partitions_assigned": _kind(
            "The stream may deliver these partitions from now on; `all` lists every partition it then has.",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "partitions_revoked": _kind(
            "The stream stopped delivering these partitions; `all` lists those it still has.",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "partitions_lost": _kind(
            "The stream lost these partitions before it could stop delivering them; `all` lists those it still has.",
            partitions=PARTITIONS,
            all=PARTITIONS,
            generation=INT,
            optional="generation",
        ),
        "partitions_paused": _kind(
            "The application paused these partitions: the stream owns them, and delivers nothing from them.",
            partitions=PARTITIONS,
        ),
        "partitions_resumed": _kind(
            "The pause of these partitions is over: the application resumed them (`cause` is asked), or it was dropped "
            "when the stream gave them up or lost them, though it may get them back at once (rebalance).",
            partitions=PARTITIONS,
        ),
        "records_delivered": _kind(
            "One poll returned these records: consecutive offsets with consecutive serial numbers.",
            **_RECORDS,
            optional="serial_first serial_last",
        ),
        "position_reset": _kind(
            "There was no usable offset, so auto.offset.reset set the position.",
            topic=TEXT,
            partition=INT,
            offset=INT,
            reset=TEXT,
        ),
        "position_started": _kind(
            "Delivery of a partition starts at this offset.", topic=TEXT, partition=INT, offset=INT
        ),
        "fetch_refused": _kind(
            "No records of a partition could be fetched: the broker refused, or could not be reached. Traced when it "
            "begins, not for each attempt.",
            topic=TEXT,
            partition=INT,
            error=TEXT,
        ),
        "commit_answered": _kind(
            "The result of a commit as the member sees it.",
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
        "session_changed": _kind(
            "The process's ZooKeeper session changed its state.", state=TEXT, session=TEXT, optional="session"
        ),
        "zk_op": _kind(
            "The process sent a ZooKeeper request.",
            op=TEXT,
            path=TEXT,
            ok=FLAG,
            error=TEXT,
            step=TEXT,
            zxid=INT,
            latency_ns=INT,
            optional="error zxid latency_ns",
        ),
        "zk_notified": _kind("The process received a watch event.", path=TEXT, event=TEXT, zxid=INT, optional="zxid"),
        "request_answered": _kind(
            "A broker answered a request of this process.",
            api=TEXT,
            version=INT,
            correlation=INT,
            broker=INT,
            error=TEXT,
            group=TEXT,
            optional="group",
        ),
        # -- the authority: the actual state of the group ----------------------------------------------------------
        "authority_named": _kind(
            "The authority made `owner` the owner of a partition.",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            owner=TEXT,
            epoch=INT,
            session=TEXT,
            optional="session",
        ),
        "authority_cleared": _kind(
            "The authority removed the owner of a partition.",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            owner=TEXT,
            epoch=INT,
            reason=TEXT,
        ),
        "offset_written": _kind(
            "The authority stored an offset that `by` committed.",
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
            "The authority refused a commit of `by`.",
            group=TEXT,
            topic=TEXT,
            partition=INT,
            offset=INT,
            by=TEXT,
            epoch=INT,
            error=TEXT,
        ),
        "group_changed": _kind(
            "The coordinator moved a group to another state.",
            group=TEXT,
            state=TEXT,
            generation=INT,
            members=INT,
            reason=TEXT,
        ),
        "group_member_joined": _kind(
            "The group has a new member: its id znode was created, or the coordinator admitted it.",
            group=TEXT,
            id=TEXT,
            session=TEXT,
            optional="session",
        ),
        "group_member_left": _kind(
            "The authority removed a member.",
            group=TEXT,
            id=TEXT,
            reason=TEXT,
            session=TEXT,
            optional="session",
        ),
        "group_member_advanced": _kind(
            "From now on a member of a KIP-848 group has this epoch.", group=TEXT, id=TEXT, epoch=INT
        ),
        "leader_changed": _kind(
            "A broker gained or gave up the leadership of a partition.",
            topic=TEXT,
            partition=INT,
            leader=INT,
            leader_epoch=INT,
        ),
        # -- the bystander: a client of the same ZooKeeper that has nothing to do with the group ----------------------
        "bystander_op": _kind(
            "ZooKeeper answered an operation on the bystander's own znode, or the operation failed.",
            op=TEXT,
            ok=FLAG,
            latency_ns=INT,
            error=TEXT,
            optional="error",
        ),
        # -- the proxy: what the network did -----------------------------------------------------------------------
        "link_cut": _kind("The proxy holds all bytes of a link.", link=TEXT),
        "link_healed": _kind("The proxy delivers the held bytes; the link works again.", link=TEXT),
    }
)
