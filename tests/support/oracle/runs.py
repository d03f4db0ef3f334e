"""The run as a whole, the slow way: its span, its changes, the partitions they moved, and counts of its events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from comparison.ownership.cover import begins, stops
from comparison.ownership.fold import Interval
from comparison.pipeline.measured import (
    Begun,
    ChangeWindow,
    DeliveryBin,
    EventCount,
    FaultPeriod,
    PartitionOwners,
    RunSpan,
    TracedOperations,
    Turnover,
)
from tests.support.oracle.cover import Window
from tests.support.oracle.intervals import Event, in_process, in_time, of, owner_of

_FOREVER_NS = 1 << 61
BIN_NS, BINNED_NS_MAX = 100_000_000, 600_000_000_000
UNANSWERED = {"ConnectionLost", "OperationTimeout", "SessionClosed", "SessionExpired", "SessionFailed", "Unanswered"}
QUARANTINED, MISSING, TOTAL = "quarantined", "missing", "total"
READS = ("exists", "getData", "getChildren", "sync")
_NAMED_BY = ("op", "api", "event", "trigger", "state", "phase", "reset", "reason")
_NOT_COUNTED = ("run_started", "counters_read", "final_offset", "phase_entered", "records_acked", "bystander_op")


def span_of(events: list[Event]) -> RunSpan:
    """The time in which the group counts as running; the end is exclusive."""
    begun = [event["t_ns"] for event in events if begins(event)]
    members = [event["t_ns"] for event in of(events, "member_started")]
    stopped = [event["t_ns"] for event in events if stops(event)]
    everything = [event["t_ns"] for event in events]
    return RunSpan(start_ns=min(begun or members or everything), end_ns=min(stopped or [max(everything) + 1]))


def _is_change(event: Event) -> bool:
    """A change, or a fault that is not already traced as a change of membership."""
    return event["kind"] == "change_started" or (event["kind"] == "fault_started" and event["fault"] != "kill")


def changes_of(events: list[Event]) -> list[ChangeWindow]:
    """Every change and fault, until the next one or until the members are stopped."""
    by_runner = in_time(event for event in events if event["role"] == "runner")
    found: list[ChangeWindow] = []
    for number, event in enumerate(by_runner):
        if not _is_change(event):
            continue
        later = by_runner[number + 1 :]
        ends = [each["t_ns"] for each in later if _is_change(each) or stops(each)]
        settled = next(((each["t_ns"], each["change"], each["round"]) for each in of(later, "change_settled")), None)
        is_fault = event["kind"] == "fault_started"
        name = event["fault"] if is_fault else event["change"]
        healed = [
            each["t_ns"]
            for each in of(later, "fault_ended")
            if is_fault and (each["fault"], each["target"]) == (name, event["target"])
        ]
        is_settled = settled is not None and not is_fault and settled[1:] == (name, event["round"])
        found.append(
            ChangeWindow(
                window=len(found),
                change=name,
                round=1 if is_fault else event["round"],
                members=None if is_fault else event["members"],
                from_ns=event["t_ns"],
                settled_ns=settled[0] if settled is not None and is_settled else None,
                healed_ns=min(healed, default=None) if is_fault else None,
                until_ns=min(ends, default=_FOREVER_NS),
            )
        )
    return found


def faults_of(events: list[Event]) -> list[FaultPeriod]:
    """Every fault of each target, until the first end of it that comes before it begins again."""
    by_runner = in_time(event for event in events if event["role"] == "runner")
    found = []
    for number, event in enumerate(by_runner):
        if event["kind"] != "fault_started":
            continue
        what = event["fault"], event["target"]
        later = [
            each
            for each in of(by_runner[number + 1 :], "fault_started", "fault_ended")
            if (each["fault"], each["target"]) == what
        ]
        healed_ns = later[0]["t_ns"] if later and later[0]["kind"] == "fault_ended" else None
        found.append(FaultPeriod(fault=what[0], target=what[1], from_ns=event["t_ns"], healed_ns=healed_ns))
    return found


def counts_of(events: list[Event], windows: Iterable[Window]) -> list[EventCount]:
    """How often each kind of event occurred in each window, by name, outcome and cause."""
    found = []
    for number, begin, end in windows:
        times: dict[tuple[str, ...], list[int]] = {}
        for event in events:
            if event["kind"] not in _NOT_COUNTED and begin <= event["t_ns"] < end:
                times.setdefault(what_of(event), []).append(event["t_ns"])
        found += [_count(number, what, len(at), min(at)) for what, at in times.items()]
    return found


def set_aside(events: list[Event], usable: list[Event]) -> list[EventCount]:
    """Counts without a time: unusable lines by reason, sequence numbers missing from the files, and all events."""
    reasons = Counter(str(event["problem"]) for event in events if event.get("problem"))
    missing = 0
    for file in {event["file"] for event in events}:
        of_file = [event for event in events if event["file"] == file]
        numbers = [event["seq"] for event in of_file if event.get("seq") is not None]
        missing += max(0, max(numbers, default=-1) + 1 - len(of_file))
    found = [_count(-1, ("", QUARANTINED, "", reason, "", ""), n, None) for reason, n in reasons.items()]
    found += [_count(-1, ("", MISSING, "", "", "", ""), missing, None)] if missing else []
    found += [_count(-1, ("", TOTAL, "", "", "", ""), len(usable), None)] if usable else []
    return found


def _count(window: int, what: tuple[str, ...], n: int, first_ns: int | None) -> EventCount:
    role, kind, name, outcome, step, area = what
    return EventCount(
        window=window, role=role, kind=kind, name=name, outcome=outcome, step=step, area=area, n=n, first_ns=first_ns
    )


def what_of(event: Event) -> tuple[str, ...]:
    names = [event[name] for name in _NAMED_BY if event.get(name) is not None]
    return (
        str(event["role"]),
        event["kind"],
        names[0] if names else "",
        _outcome_of(event),
        event.get("step") or "",
        _area_of(event.get("path") or ""),
    )


def _outcome_of(event: Event) -> str:
    if event["kind"] == "zk_op":
        error = event.get("error")
        return "ok" if event["ok"] else ("failed" if error is None else str(error))
    if event["kind"] == "request_answered":
        return event["error"] or "ok"
    if event["kind"] == "offset_refused":
        return str(event["error"])
    return event.get("outcome") or ""


def _area_of(path: str) -> str:
    nodes = path.split("/")
    for number, node in enumerate(nodes):
        before = nodes[:number]
        if node in ("ids", "owners", "offsets") and before[-2:-1] == ["consumers"] and before[-1] and len(before) > 2:
            return node
    for number, node in enumerate(nodes):
        if node in ("ids", "topics") and number > 1 and nodes[number - 1] == "brokers":
            return {"ids": "brokers", "topics": "topics"}[node]
    return nodes[1] if path.startswith("/") else ""


def operations_of(events: list[Event], readings: dict[str, tuple[int, int, int, int]]) -> list[TracedOperations]:
    """ZooKeeper operations between two readings of the servers' counters."""
    found = []
    for label, (first, begin, end, last) in readings.items():
        near: dict[tuple[str, bool], tuple[list[tuple[int, int]], int]] = {}
        for event in of(events, "zk_op"):
            latency = event.get("latency_ns")
            sent, answered = event["t_ns"] - (latency or 0), event["t_ns"]
            is_possible = event["ok"] or (event.get("error") in UNANSWERED and latency is not None)
            if event["op"] != "sync" and is_possible and answered >= first and sent < last:
                namespace = event["path"].split("/")[1] if event["path"].startswith("/") else ""
                at, lost = near.get((namespace, event["op"] in READS), ([], 0))
                now = ([*at, (sent, answered)], lost) if event["ok"] else (at, lost + 1)
                near[namespace, event["op"] in READS] = now
        for (namespace, is_read), (at, lost) in near.items():
            found.append(
                TracedOperations(
                    label=label,
                    namespace=namespace,
                    is_read=is_read,
                    traced=sum(begin <= answered < end for _, answered in at),
                    sure=sum(begin <= sent <= answered < end for sent, answered in at),
                    possible=len(at) + lost,
                )
            )
    return found


def readings_of(events: list[Event]) -> dict[str, tuple[int, int, int, int]]:
    """When the readings before began and ended, and those after, for labels with two readings of every server."""
    read = [event for event in in_time(of(events, "counters_read")) if event.get("latency_ns") is not None]
    found = {}
    for label in {event["at"].rpartition(":")[0] for event in read}:
        of_label = [event for event in read if event["at"].rpartition(":")[0] == label]
        servers = {event["server"] for event in of_label}
        first = {
            (server, when): [e for e in of_label if e["server"] == server and e["at"] == f"{label}:{when}"][:1]
            for server in servers
            for when in ("before", "after")
        }
        if all(first.values()):
            ended = {place: event["t_ns"] for place, (event,) in first.items()}
            begun = {place: event["t_ns"] - event["latency_ns"] for place, (event,) in first.items()}
            found[label] = (
                min(begun[server, "before"] for server in servers),
                max(ended[server, "before"] for server in servers),
                min(begun[server, "after"] for server in servers),
                max(ended[server, "after"] for server in servers),
            )
    return found


def bins_of(events: list[Event], span: RunSpan) -> tuple[list[DeliveryBin], int]:
    """What the group delivered in each bin of time, and the polls that began before the end of the previous one."""
    polls = of(events, "records_delivered", "position_started")
    found: dict[int | None, list[int]] = {}
    for line in {(owner_of(event), event["topic"], event["partition"]) for event in polls}:
        before = None
        for event in in_process(each for each in polls if (owner_of(each), each["topic"], each["partition"]) == line):
            if event["kind"] == "records_delivered":
                since = event["t_ns"] - span.start_ns
                is_inside = 0 <= since < BINNED_NS_MAX and event["t_ns"] < span.end_ns
                place = found.setdefault(since // BIN_NS if is_inside else None, [0, 0])
                place[0] += event["last"] - event["first"] + 1
                place[1] += before is not None and event["first"] <= before
            # Just after a start of delivery, the next poll may begin at any offset.
            before = event["last"] if event["kind"] == "records_delivered" else None
    return [DeliveryBin(bin=place, records=each[0]) for place, each in found.items()], sum(
        each[1] for each in found.values()
    )


def owners_around(authority: list[Interval], begin: int, end: int) -> list[PartitionOwners]:
    """Who owned each partition, by the authority, before and after a window."""
    found = []
    for key in sorted({each.key for each in authority}):
        mine = [each for each in authority if each.key == key]
        before = [
            each.owner for each in mine if each.from_ns <= begin and (each.until_ns is None or each.until_ns > begin)
        ]
        after = [each.owner for each in mine if each.from_ns < end and (each.until_ns is None or each.until_ns >= end)]
        if before or after:
            found.append(
                PartitionOwners(
                    topic=key[1], partition=key[2], before=max(before, default=None), after=max(after, default=None)
                )
            )
    return found


def turnover_of(believed: list[Interval], begin: int, end: int) -> Turnover | None:
    """How often a partition moved to another member, was taken from one that stayed, and was returned to it."""
    moved = stopped = kept = 0
    for key in {each.key for each in believed}:
        line = sorted((each for each in believed if each.key == key), key=lambda each: (each.from_ns, each.owner))
        for number, each in enumerate(line):
            before = line[number - 1] if number else None
            after = line[number + 1] if number + 1 < len(line) else None
            if before is not None and begin <= each.from_ns < end and before.owner != each.owner:
                is_gone = before.gone_ns is not None and before.gone_ns <= each.from_ns
                is_same_again = _base(before) == _base(each) and (before.closed_by == "lost" or is_gone)
                moved += not is_same_again
            stays = each.gone_ns is None or each.gone_ns >= end
            is_inside = each.until_ns is not None and begin <= each.until_ns < end
            if each.closed_by in ("revoked", "lost") and stays and is_inside:
                stopped += 1
                kept += after is not None and after.owner == each.owner
    return Turnover(moved=moved, stopped=stopped, stopped_kept=kept) if moved or stopped else None


def begun_in(intervals: list[Interval], begin: int, end: int) -> Begun | None:
    """The partitions that somebody had for the first time within a window."""
    first = {each.key: each.from_ns for each in sorted(intervals, key=lambda each: -each.from_ns)}
    inside = [from_ns for from_ns in first.values() if begin <= from_ns < end]
    return Begun(partitions=len(inside), last_ns=max(inside)) if inside else None


def _base(interval: Interval) -> str:
    """The process regardless of its incarnation: m3, m3.2 and m3.3 are one."""
    return re.sub(r"\.\d+$", "", interval.owner.split("/")[0])
