"""One member's rebalance as a list of steps, with consecutive operations of the same kind combined.

The steps are those of the specification, R1 to R12, as the member's own `zk_op` events name them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comparison.report.history.group_history import is_read
from comparison.screen.number_ranges import number_ranges
from kernel.decimals import decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.history.group_history import GroupHistory, MemberRebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a history: operations of one kind (`what` names and counts them), or an event.

    `kind` is read, write, refused, notified (by a watch), broker (a request), did (it stopped, started, failed...),
    left (ZooKeeper forgot a member), asks and answer (a request that may wait at the broker, from `began_ns` on), or
    state (the group's, at a broker). An empty `member` means that the broker acts.
    """

    member: str
    step: str
    kind: str
    what: str
    count: int
    began_ns: int
    ended_ns: int
    broker: int = -1
    zxid: int = 0  #: of the change that was made or notified; 0 without one
    operations: tuple[tuple[str, int], ...] = ()  #: (operation, how often)


def lines_of(history: GroupHistory, rebalance: MemberRebalance) -> list[Line]:
    """The lines of one member's rebalance, one per run of operations of one kind."""
    name = rebalance.member.name
    names = history.names()
    found: list[Line] = []
    run: list[Mapping[str, Any]] = []
    started = False  # whether it has begun to deliver what this rebalance assigned

    def close() -> None:
        if run:
            found.append(operations_line(history, name, names, run))
            run.clear()

    for event in rebalance.events:
        if event["kind"] == "zk_op":
            if run and not same_kind(run[-1], event):
                close()
            run.append(event)
        else:
            started = started or event["kind"] == "partitions_assigned"
            line = _happened(history, name, event) or _delivering(name, event, started=started)
            if line is not None:
                close()
                found.append(line)
    close()
    return together(found)


def same_kind(before: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether two ZooKeeper requests belong to the same run."""
    return _kind_of(before) == _kind_of(event)


def _kind_of(event: Mapping[str, Any]) -> tuple[object, ...]:
    return event["step"], event["op"], event["ok"], event.get("error"), str(event["path"]).rpartition("/")[0]


def operations_line(
    history: GroupHistory, name: str, names: Mapping[str, str], run: Sequence[Mapping[str, Any]]
) -> Line:
    first, last = run[0], run[-1]
    folder = _short(history, str(first["path"]).rpartition("/")[0])
    leaves = [str(event["path"]).rpartition("/")[2] for event in run]
    leaves = [names.get(leaf, leaf) for leaf in leaves]
    where = f"{folder}/{ranges(leaves)}" if folder else ranges(leaves)
    refused = "" if first["ok"] else f" ({first['error']})"
    many = f" x {len(run)}" if len(run) > 1 else ""
    kind = "refused" if not first["ok"] else "read" if is_read(first["op"]) else "write"
    if first["op"] == "exists" and first.get("error") == "NoNode":
        kind = "read"
    return Line(
        member=name,
        step=str(first["step"]),
        kind=kind,
        what=f"{first['op']}{many} {where}{refused}",
        count=len(run),
        began_ns=first["ns"],
        ended_ns=last["ns"],
        zxid=(first.get("zxid") or 0) if kind == "write" else 0,
        operations=((str(first["op"]), len(run)),),
    )


def _short(history: GroupHistory, path: str) -> str:
    """The path without the group's own folder, which all paths start with."""
    own = f"/consumers/{history.group}"
    if path == own:
        return ""
    return path.removeprefix(f"{own}/")


def ranges(names: Iterable[str]) -> str:
    """0,1,2,5 as 0-2, 5; names as they are, each once."""
    read = {name: decimal(name) for name in names}
    numbers = number_ranges(number for number in read.values() if number is not None)
    return ", ".join([*([numbers] if numbers else []), *(name for name, number in read.items() if number is None)])


def partitions_text(partitions: Iterable[Mapping[str, Any]]) -> str:
    """`orders 0-2, 5; clicks 1`, `nothing` for none."""
    topics: dict[str, list[str]] = {}
    for each in partitions:
        topics.setdefault(str(each["topic"]), []).append(str(each["partition"]))
    return "; ".join(f"{topic} {ranges(numbers)}" for topic, numbers in topics.items()) or "nothing"


def _happened(history: GroupHistory, name: str, event: Mapping[str, Any]) -> Line | None:
    kind, step, what = "did", "", ""
    match event["kind"]:
        case "zk_notified":
            kind, step = "notified", "delivery"
            change = "the children of " if event["event"] == "children" else ""
            what = f"{change}{_short(history, str(event['path']))} {_EVENTS[str(event['event'])]}"
        case "session_changed" if event["state"] in ("suspended", "lost", "connected"):
            step, what = "register", SESSIONS[str(event["state"])]
        case "rebalance_started":
            what = f"begins a rebalance ({event['trigger']})"
        case "attempt_started" if event["attempt"] > 1:
            what = f"attempt {event['attempt']}"
        case "partitions_revoked":
            step, what = "R4", f"stops delivering {partitions_text(event['partitions'])}"
        case "partitions_assigned":
            step, what = "R12", f"may deliver {partitions_text(event['partitions'])}"
        case "phase_entered" if event["phase"] == "decide":
            step, what = "R7", "computes its own assignment"
        case "phase_entered" if event["phase"] == "backoff":
            what = "waits for its backoff, owning nothing"
        case "attempt_ended" if event["outcome"] != "ok":
            error = f": {event['error']}" if event.get("error") else ""
            what = f"attempt {event['attempt']} has failed ({event['outcome']}{error})"
        case "rebalance_ended":
            what = "done" if event["outcome"] == "ok" else "gives up: stays registered, but idle"
        case "position_reset":
            partition = f"{event['topic']} {event['partition']}"
            step, what = "R12", f"has no usable offset of {partition}: starts at {event['offset']}"
    return line_at(name, event, step, kind, what) if what else None


def _delivering(name: str, event: Mapping[str, Any], *, started: bool) -> Line | None:
    """Requests to brokers and deliveries: by fetchers that kept running, or by those that were started."""
    step = "R12" if started else ""
    match event["kind"]:
        case "records_delivered":
            partition = f"{event['topic']} {event['partition']}"
            what = f"delivers {partition} from {event['first']} on" if started else f"still delivers {partition}"
            return line_at(name, event, step, "did", what)
        case "request_answered" if event["api"] in _REQUESTS and event["error"] != "CANCELLED":
            refused = f": {event['error']}" if event["error"] else ""
            return line_at(name, event, step, "broker", f"{event['api']}{refused}", event["broker"])
    return None


def line_at(name: str, event: Mapping[str, Any], step: str, kind: str, what: str, broker: int = -1) -> Line:
    ns, zxid = event["ns"], event.get("zxid") or 0
    return Line(
        member=name, step=step, kind=kind, what=what, count=1, began_ns=ns, ended_ns=ns, broker=broker, zxid=zxid
    )


_EVENTS = {
    "children": "have changed",
    "changed": "has changed",
    "created": "was created",
    "deleted": "was deleted",
    "none": "is no longer watched: the connection broke",
}
SESSIONS = {
    "connected": "has a session",
    "suspended": "loses its connection to ZooKeeper",
    "lost": "finds that its session has expired",
}
#: A member's end may be traced this long before its first notification: the transaction log has milliseconds only.
NOTICE_NS = 50_000_000
#: Requests to brokers that are part of a rebalance.
_REQUESTS = frozenset({"Metadata", "ListOffsets", "FindCoordinator", "OffsetFetch", "OffsetCommit", "Fetch"})


def together(lines: Sequence[Line]) -> list[Line]:
    """Merge what fetchers repeat (requests of one kind to one broker, deliveries) into the first of each."""
    kept: list[Line] = []
    seen: dict[tuple[str, str, int], int] = {}
    for line in lines:
        key = (line.step, line.what, line.broker)
        repeats = line.kind == "broker" or line.what.startswith("still ")
        if repeats and key in seen:
            before = kept[seen[key]]
            kept[seen[key]] = replace(before, count=before.count + 1, ended_ns=line.ended_ns)
            continue
        if repeats:
            seen[key] = len(kept)
        kept.append(line)
    return kept


def departures(history: GroupHistory, rebalances: Sequence[MemberRebalance]) -> list[Line]:
    """The members that ZooKeeper removed and why, by the observer's trace; a round may begin with one.

    For a coordinator's see `exchanges.coordination`.
    """
    names = history.names()
    began = min(each.events[0]["ns"] for each in rebalances) - NOTICE_NS
    ended = max(each.ended_ns for each in rebalances)
    found = []
    for event in history.events:
        of_zookeeper = event["kind"] == "group_member_left" and not str(event["process"]).startswith("broker")
        if of_zookeeper and began <= event["ns"] <= ended:
            who = names.get(str(event["id"]), str(event["id"]))
            found.append(line_at("", event, "", "left", f"{who} is gone ({event['reason']})"))
    return found


def briefly(lines: Iterable[Line]) -> list[Line]:
    """One line for all reads of a step, without what the fetchers do meanwhile."""
    kept: list[Line] = []
    for line in lines:
        if line.what.startswith("still ") or (line.kind == "broker" and not line.step):
            continue
        before = kept[-1] if kept else None
        if before is not None and before.step == line.step and before.kind == line.kind == "read":
            kept[-1] = _both(before, line)
        else:
            kept.append(line)
    return kept


def _both(before: Line, line: Line) -> Line:
    operations = dict(before.operations)
    for operation, number in line.operations:
        operations[operation] = operations.get(operation, 0) + number
    what = ", ".join(f"{operation} x {number}" if number > 1 else operation for operation, number in operations.items())
    return replace(
        before,
        what=what,
        count=before.count + line.count,
        ended_ns=line.ended_ns,
        operations=tuple(operations.items()),
    )


def merged(lines_by_member: Iterable[Iterable[Line]]) -> list[Line]:
    """Lines of several members by time, a change before its notifications.

    A request is traced when it is answered, and the server notifies others before it answers the client that made the
    change; the zxid says what came first.
    """
    everything = [line for lines in lines_by_member for line in lines]
    notified_ns: dict[int, int] = {}
    for line in everything:
        if line.kind == "notified" and line.zxid:
            notified_ns[line.zxid] = min(line.began_ns, notified_ns.get(line.zxid, line.began_ns))

    def when(line: Line) -> int:
        return (
            min(line.began_ns, notified_ns.get(line.zxid, line.began_ns) - 1) if line.kind == "write" else line.began_ns
        )

    return sorted(everything, key=when)
