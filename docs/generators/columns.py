"""What the fields of events and the columns of tables mean, for the pages that `docs.generators.table_pages` writes.

Fields of the same name mean the same in every kind of event, except for those in `OF_KIND`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Column(NamedTuple):
    """What one field or column means; `null` is what null means, '' where it cannot be null."""

    meaning: str
    unit: str = ""
    null: str = ""


C = Column
_NS, _RECORDS = "ns", "records"
_MEMBER = "member id; in `zookeeper` the consumer id"
_NOT_KNOWN = "not known"

#: The header and the end marker.
HEADER: Mapping[str, Column] = MappingProxyType(
    {
        "schema": C("version of this format"),
        "run": C("the run's id, the same in all files of a run"),
        "scenario": C("name of the scenario"),
        "design": C("name of the design; empty of a broker that was started by hand"),
        "role": C("`member`, `broker`, `runner`, `proxy`, `observer` or `bystander`"),
        "implementation": C("`ours`, or `original` for a consumer of Kafka's"),
        "process": C("the process that writes the file, `<process>.jsonl`"),
        "seed": C("seed of the run's random numbers"),
        "clock": C("`monotonic` or `simulated`"),
        "boot_id": C("id of the machine's boot: files of one boot share the monotonic clock"),
        "monotonic_ns": C("monotonic clock at the header", _NS),
        "wall_ns": C("wall clock at the same moment, since 1970", _NS),
        "pid": C("the process's id"),
    }
)
END: Mapping[str, Column] = MappingProxyType(
    {"events": C("number of events in the file"), "monotonic_ns": C("monotonic clock at the end", _NS)}
)
#: What every event has.
COMMON: Mapping[str, Column] = MappingProxyType(
    {
        "seq": C("number of the event in its file, from 0 without gaps"),
        "ns": C("CLOCK_MONOTONIC", _NS),
        "kind": C("the kind of event"),
        "process": C("the process that wrote it"),
        "member": C(_MEMBER, null="the process has no member, or does not know its id yet"),
        "stream": C("number of the consumer's stream", null="not about a stream"),
        "cause": C("what led to it: `zxid:<n>`, `generation:<n>`, `correlation:<n>`, `fault:<name>`, or empty"),
    }
)
#: The fields of kinds, by their names in lines.
FIELDS: Mapping[str, Column] = MappingProxyType(
    {
        "all": C("every partition that the stream then has"),
        "api": C("name of the request"),
        "at": C("`<label>:before` or `<label>:after`; the readings of one label belong together"),
        "attempt": C("number of the attempt in its rebalance, from 1"),
        "broker": C("id of the broker that answered"),
        "by": C("member id of the sender; empty if it named none"),
        "change": C("what changes: join, leave, crash, restart, ..."),
        "child_pid": C("the child's process id"),
        "code": C("exit code; negative for a signal", null="it did not exit by itself"),
        "committed": C("the committed offset"),
        "correlation": C("the request's correlation id"),
        "detail": C("a JSON object"),
        "end": C("the end of the partition's log: the offset that the next record would have"),
        "epoch": C("orders ownership: zxid of the owner znode, or generation; -1 for none"),
        "error": C("the error; empty for none", null="no error"),
        "event": C("ZooKeeper's type of watch event"),
        "explicit": C("the application asked for the commit", null=_NOT_KNOWN),
        "fault": C("name of the fault: freeze, cut, kill, ..."),
        "first": C("offset of the first record"),
        "generation": C(
            "the group's generation; with KIP-848 the member's epoch", null="without a coordinator, or not known"
        ),
        "group": C("the consumer group", null="not about a group"),
        "how": C("how it ended"),
        "id": C(_MEMBER),
        "last": C("offset of the last record"),
        "latency_ns": C("from sending the request to its answer", _NS),
        "leader": C("id of the leading broker; -1 for none, -2 when the topic has been deleted"),
        "leader_epoch": C("Kafka's leader epoch"),
        "link": C("name of the link"),
        "members": C("number of members of the group afterwards"),
        "namespace": C("ZooKeeper's namespace: the first node of a path"),
        "offset": C("the offset"),
        "ok": C("whether it succeeded"),
        "op": C("ZooKeeper's operation"),
        "outcome": C("how it ended"),
        "owner": C("the owner as the authority names it: `<consumer id>-<n>` in `zookeeper`, else a member id"),
        "parameters": C("the run's parameters, as JSON"),
        "partition": C("number of the partition"),
        "partitions": C("the partitions that this is about"),
        "path": C("path of the znode"),
        "phase": C("the phase of the rebalance"),
        "reads": C("reads counted since the server started"),
        "reason": C("why"),
        "reset": C("`auto.offset.reset`"),
        "round": C("which change of that name, from 1"),
        "serial_first": C("serial number of the first record", null="records without serial numbers"),
        "serial_last": C("serial number of the last record", null="records without serial numbers"),
        "server": C("address of the ZooKeeper server"),
        "session": C("id of the ZooKeeper session", null=_NOT_KNOWN),
        "stage": C("stage of the run"),
        "state": C("the new state"),
        "step": C("step of the rebalance, R1 to R12, or another name"),
        "store": C("where the offset was to be stored", null="the design has one store only"),
        "streams": C("number of streams", null="not said"),
        "target": C("the process, or what else it was done to"),
        "topic": C("name of the topic"),
        "trigger": C("what the member was notified of, or why it rebalances on its own, in a word"),
        "version": C("version of the request"),
        "wanted": C("partitions 0 to wanted-1 should be owned; 0: none"),
        "writes": C("writes counted since the server started"),
        "zxid": C("ZooKeeper's transaction id", null="the answer had none"),
    }
)
#: Fields that mean something of their own in one kind.
OF_KIND: Mapping[tuple[str, str], Column] = MappingProxyType(
    {
        ("phase_drawn", "detail"): C(
            "`share` of the interval, `interval_ms`, and `wait_ms`: how long the runner waits, their product"
        ),
        ("fault_started", "detail"): C("the fault's parameters, by their names", null="it has none"),
        ("change_started", "detail"): C(
            "what the change is, by its name: `target` and `away_ms` of a restart, `topics` of a new subscription, "
            "`before` and `after` of more partitions, ...",
            null="nothing more to say",
        ),
        ("copies_read", "detail"): C(
            "`transactions`: whether there were any; `records` to copy, `copied` once or more, `twice` or more; "
            "`late_write`, `late_offset`, `late_commit`: what the frozen one was answered"
        ),
        ("authority_cleared", "reason"): C(
            "why: `delete` of the owner znode, `revoked` from a member of a KIP-848 group, or why its member left"
        ),
        ("group_member_left", "reason"): C(
            "why: its session expired, another of its name has `fenced` it, `watch` found it `gone`, ..."
        ),
        ("zk_op", "latency_ns"): C(
            "from sending the request to its answer, or to its failure",
            _NS,
            null="it was never sent, or in former traces",
        ),
        ("records_acked", "latency_ns"): C(
            "from handing the records to the producer to the acknowledgement", _NS, null="in former traces"
        ),
        ("counters_read", "latency_ns"): C("from sending the request to its answer", _NS, null="in former traces"),
        ("commit_answered", "outcome"): C("the result as the member sees it"),
        ("group_changed", "state"): C("the state of the group, by Kafka's names"),
        ("group_changed", "generation"): C("the generation; of a KIP-848 group its epoch"),
        ("group_member_advanced", "epoch"): C("the member's epoch"),
        ("group_changed", "members"): C("number of members of that generation"),
        ("fault_started", "target"): C("the process that has the fault"),
        ("fault_ended", "target"): C("the process that had the fault"),
    }
)

#: The first columns of every table.
RUN: Mapping[str, Column] = MappingProxyType(
    {
        "run_id": C("the run, as in result.json"),
        "scenario": C("name of the scenario"),
        "design": C("name of the design"),
        "seed": C("seed of the run's random numbers"),
        "repeat": C("number among runs that differ in the seed only, from 1"),
    }
)
#: What tables of events have more than lines.
EVENT: Mapping[str, Column] = MappingProxyType(
    {
        "file": C("name of the trace file"),
        "role": C("role of the process: `member`, `broker`, `runner`, `proxy`, `observer` or `bystander`"),
        "t_ns": C("when, on the run's clock: since the runner's header", _NS),
    }
)
_WHERE = {
    "group_id": C("the consumer group"),
    "topic": C("name of the topic"),
    "partition": C("number of the partition"),
}
_SWEPT = {
    "sweep": C("the sweep"),
    "scenario": C("name of the scenario"),
    "design": C("name of the design"),
    "metric": C("name of the figure"),
}
_VIEW = C("`believed` by members, named by the `authority`, or `delivering`")
#: The columns of all other tables, by their names in files.
TABLES: Mapping[str, Mapping[str, Column]] = MappingProxyType(
    {
        "ownership": {
            **_WHERE,
            "view": _VIEW,
            "owner": C("`process/member/stream`; in the view `authority`, the owner as the authority names it"),
            "from_ns": C("start", _NS),
            "until_ns": C("end, not part of it", _NS, "until the end of the run"),
            "closed_by": C("revoked, lost, reassigned, member, process, renamed, a reason to clear, pause or end"),
            "gone_ns": C("when the owner's member or process ended", _NS, "it did not, or is no member's view"),
        },
        "segments": {
            **_WHERE,
            "view": C("a view of `ownership`, or `offsets` or `serials`: records that were delivered"),
            "low": C("start: a time in ns, or in `offsets` and `serials` a record's number"),
            "high": C("end, not part of it"),
            "holders": C("how many owners have it, or how often a record was delivered"),
            "is_wanted": C("the group should own it, or the record was acknowledged to a producer"),
            "counts_as_overlap": C("part of an overlap that is longer than the tolerance of the clocks"),
        },
        "commits": {
            **_WHERE,
            "t_ns": C("when the authority answered it", _NS),
            "record_offset": C("the committed offset"),
            "by_member": C("member id of the sender; empty if it named none"),
            "epoch": C("generation that it carries, or zxid; -1 for none"),
            "outcome": C("`accepted`, or the error it was refused with"),
            "owner": C("the owner at that moment, by the authority", null="nobody"),
            "is_stale": C("the sender is not the owner"),
            "is_old": C(
                "accepted with an older generation than the group's; in `consumer`, an older epoch than its own"
            ),
            "is_fenced": C("refused because of an old generation or an unknown member"),
            "moved_back_by": C("by how much it moved the committed offset back; 0: it did not", _RECORDS),
        },
        "rounds": {
            "round": C("number in the run, from 0"),
            "group_id": C("the consumer group"),
            "from_ns": C("start", _NS),
            "gathered_ns": C("when all members had joined", _NS, "without a coordinator, and in `consumer`"),
            "until_ns": C("end", _NS, "it did not end"),
            "generation": C("the new generation; in `consumer`, the group's new epoch", null="without a coordinator"),
            "members": C("members of the new generation; 0 without a coordinator"),
        },
        "phases": {
            "group_id": C("the consumer group; empty if nobody can say"),
            "process": C("the member's process"),
            "member": C(_MEMBER, null="it never learned its id"),
            "phase": C("phase of the rebalance; `rebalance` for a whole one"),
            "from_ns": C("start", _NS),
            "until_ns": C("end", _NS),
        },
        "changes": {
            "number": C("number in the run, from 0"),
            "change": C("what changed: join, leave, crash, restart, ..., or the name of the fault"),
            "round": C("which change of that name, from 1"),
            "members": C("members of the group afterwards", null="a fault"),
            "from_ns": C("start", _NS),
            "settled_ns": C("every partition had one owner again, as the runner saw", _NS, "it did not see that"),
            "healed_ns": C("end of the fault", _NS, "no fault, or it was not healed"),
            "until_ns": C("end: the next change, or the end of the run", _NS, "nothing ended it"),
        },
        "faults": {
            "fault": C("name of the fault"),
            "target": C("the process"),
            "from_ns": C("start", _NS),
            "healed_ns": C("end", _NS, "it was not healed"),
        },
        "course": {
            "from_ns": C("start of the interval", _NS),
            "until_ns": C("its end, not part of it", _NS),
            "delivered": C("delivered in it, by any member", _RECORDS),
            "duplicates": C("of these, those that their group had been handed before", _RECORDS),
            "undelivered": C(
                "at its end, acknowledged ones behind the furthest delivered one of each partition",
                _RECORDS,
                "no acknowledgement was traced",
            ),
            "lag": C(
                "at its end, acknowledged ones behind the committed offset of each partition; without a commit, all "
                "of this run",
                _RECORDS,
                "no acknowledgement was traced",
            ),
        },
        "waits": {
            "round": C("number of the round, as in `rounds`"),
            "group_id": C("the consumer group"),
            "process": C("the member's process"),
            "member": C("member id", null="it never learned its id, or did not join"),
            "joined_ns": C("when it asked to join", _NS, "it did not, and the others waited until it was removed"),
            "waited_ns": C("how long it then waited for another member", "ns"),
            "is_waited_for": C("it is the last one, for which the others waited"),
        },
        "quarantine": {
            "file": C("name of the trace file"),
            "line": C("number of the line, from 1; 0: the file as a whole"),
            "reason": C("why it cannot be used"),
            "detail": C("what is wrong with it"),
            "text": C("how it begins"),
        },
        "runs": {
            "path": C("the run's folder"),
            "outcome": C("`complete`, `interrupted`, `failed`, or empty if the trace does not say"),
            "verdict": C("the worst of its verdicts: `as expected`, `unknown` or `not as expected`"),
            "duration_s": C("length of the stretch that is measured", "s"),
            "tolerance_ms": C("moments closer than this have no order", "ms"),
            "events": C("number of usable events"),
            "parameters": C("the run's parameters, as JSON"),
        },
        "files": {
            "file": C("name of the trace file"),
            "process": C("as its header says; empty without a usable header"),
            "role": C("as its header says"),
            "members": C("ids under which the process was a member, in order"),
            "lines": C("lines that are not empty; 0 for a file that is missing"),
            "events": C("usable events"),
            "unusable": C("unusable lines"),
            "seq_doubled": C("events whose number another one has"),
            "seq_missing": C("numbers that no event has"),
            "backwards": C("how often time goes backwards"),
            "backwards_ns": C("by how much at most", _NS),
            "ended": C("has an end marker"),
            "announced": C("number of events in the end marker", null="no end marker"),
            "first_ns": C("first event, on the run's clock", _NS, "no event"),
            "last_ns": C("last event, on the run's clock", _NS, "no event"),
            "problems": C("what is wrong; empty for a whole file"),
        },
        "bystanders": {
            "change": C("what changed: join, grow, ..., or the name of the fault"),
            "round": C("which change of that name, from 1"),
            "members": C("members of the group afterwards", null="a fault"),
            "stage": C("`before` or `during`"),
            "op": C("ZooKeeper's operation: `getData` or `setData`"),
            "answered": C("operations that succeeded"),
            "failed": C("operations that failed"),
            "p50_ms": C("median of their latencies", "ms", "none succeeded"),
            "p99_ms": C("99th percentile; the largest if there are fewer than 100", "ms", "none succeeded"),
            "max_ms": C("the largest", "ms", "none succeeded"),
        },
        "metrics": {
            "metric": C("name of the figure"),
            "value": C("the figure", "as `unit`", "cannot be measured from this trace"),
            "unit": C("unit of the figure; empty for a count"),
        },
        "cells": {
            **_SWEPT,
            "cell": C("the cell: one value of every axis"),
            "axes": C("the values of the axes, as JSON"),
            "computed_by": C("how a simulated cell was computed, as `by` in sweep.json; empty for live runs"),
            "unit": C("unit of the figure; empty for a count"),
            "n": C("runs in which the figure was measured"),
            "median": C("median of those runs", "as `unit`"),
            "low": C("lowest of those runs", "as `unit`"),
            "high": C("highest of those runs", "as `unit`"),
            "runs": C("complete runs of the cell"),
            "failed": C("runs that failed"),
        },
        "exponents": {
            **_SWEPT,
            "axis": C("the axis that the figure is followed along"),
            "axes": C("the values of the other axes, as JSON"),
            "n": C("figures, one a run"),
            "exponent": C("the figure grows as the axis to this power", null="cannot be fitted; `reason` says why"),
            "low": C("lower end of its 95% interval", null="too few figures"),
            "high": C("upper end of its 95% interval", null="too few figures"),
            "through_x": C("the figure is about through_y * (axis / through_x) ^ exponent", "as the axis", "as above"),
            "through_y": C("see `through_x`", "as the figure", "as above"),
            "reason": C("why there is no exponent; empty if there is one"),
        },
        "verdicts": {
            "check_name": C("what was checked"),
            "kind": C("`promise`, `history` or `model`"),
            "outcome": C("`as expected`, `unknown` or `not as expected`"),
            "reason": C("why"),
        },
    }
)
