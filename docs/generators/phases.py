"""The four phases of a member in a recorded run: `four-phases.json`, one conversation for each design.

    python -m docs.generators.phases RUN      records it anew from a finished run of COMMAND

Only what the page shows is kept: the requests and ZooKeeper operations of the member that joins, those of the group's
leader (in the `consumer` design: of a member that gives something up), and the moves of the coordinator's machine.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

COMMAND = (
    "rebalance-lab run join --design all --seed 1 -c heartbeat.interval.ms=200 "
    "-c group.consumer.heartbeat.interval.ms=200"
)
RECORDING = Path(__file__).parents[1] / "four-phases.json"
#: Who takes part: the member that joins, the group's leader or another member, and the coordinator.
NEW, LEADER, OTHER, COORDINATOR = "new", "leader", "other", "coordinator"
#: The process of the member that joins.
_JOINS = "m5"
#: Milliseconds that are shown before it begins, for a heartbeat of the leader, and behind its first commit.
_BEFORE_MS, _AFTER_MS = 80, 80
FIND, JOIN, SYNC, WORK = 1, 2, 3, 4
#: A request that is not answered in the recording.
WAITS = "waits for the next command"
#: The phases as article 003 tells them, with a name for each.
PHASES: Mapping[int, str] = {FIND: "find the coordinator", JOIN: "join", SYNC: "sync", WORK: "heartbeat and commit"}
#: The one request of the `consumer` design; its phase is that of the member that sends it.
HEARTBEAT = "ConsumerGroupHeartbeat"
#: The phase of a request, and of an operation in ZooKeeper by its step (R1 to R12, or a name).
_REQUESTS = {
    "FindCoordinator": FIND,
    "JoinGroup": JOIN,
    "SyncGroup": SYNC,
    "AwaitCommand": SYNC,
    "OffsetFetch": SYNC,
    "Heartbeat": WORK,
    "OffsetCommit": WORK,
    "CommitOwned": WORK,
}
_STEPS = {"register": JOIN, "subscribe": JOIN, "R8": SYNC, "R11": SYNC, "R12": SYNC, "commit": WORK}
#: What belongs to no phase: reading on, and who leads the partitions.
_LEFT_OUT = frozenset({"ApiVersions", "Metadata", "Fetch", "ListOffsets", "Produce", "LeaveGroup"})
_STEPS_LEFT_OUT = frozenset({"leader-finder", "unregister"})


class Happened(NamedTuple):
    """One row of a conversation; `what` is an API, an operation, a state or a note."""

    ms: float  #: since the member began to join
    who: str
    kind: str  #: request, operation, state or note
    what: str
    detail: str = ""
    phase: int = 0  #: 0 for what belongs to none


def conversations() -> Mapping[str, tuple[Happened, ...]]:
    """The recorded ones, by design."""
    recorded = json.loads(RECORDING.read_text(encoding="utf-8"))
    return {design: tuple(Happened(*row) for row in rows) for design, rows in recorded.items()}


# -- recording ---------------------------------------------------------------------------------------------------------


def record(run: Path) -> Mapping[str, list[list[object]]]:
    """The conversations of a finished run."""
    return {design: [list(row) for row in _conversation(run / "join" / design / "trace")] for design in DESIGN_NAMES}


def _conversation(folder: Path) -> list[Happened]:
    events = {path.stem: list(_events(path)) for path in folder.glob("*.jsonl")}
    begins = next(event["ns"] for event in events[_JOINS] if event["kind"] in ("session_changed", "rebalance_started"))
    beside = {LEADER: _first(events, begins, _decides), OTHER: _first(events, begins, _gives_up)}
    number = "epoch" if beside[OTHER] else "generation"
    rows = [*_member_rows(events[_JOINS], NEW, begins)]
    for who, name in beside.items():
        rows += _member_rows(events.get(name, []), who, begins)
    for name, them in events.items():
        if name.startswith("broker"):
            rows += [_state(event, begins, number) for event in them if event["kind"] == "group_changed"]
    committed = next(row.ms for row in rows if row.who == NEW and _is_commit(row))
    return sorted(
        row
        for row in rows
        if -_BEFORE_MS <= row.ms <= committed + _AFTER_MS
        and (row.ms <= committed or row.kind in ("request", "operation"))
    )


def _first(events: Mapping[str, Sequence[Mapping[str, Any]]], begins: int, does: Callable[..., bool]) -> str:
    """The member that is the first to do something after the join has begun; "" if nobody does it."""
    found = [
        (each["ns"], name)
        for name, them in events.items()
        if name != _JOINS
        for each in them
        if each["ns"] > begins and does(each, them)
    ]
    return min(found, default=(0, ""))[1]


def _decides(event: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> bool:
    enters = event["kind"] == "phase_entered" and event["phase"] == "decide" and event["stream"] is not None
    return enters and _sends(others, "SyncGroup")


def _gives_up(event: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> bool:
    return event["kind"] == "partitions_revoked" and _sends(others, HEARTBEAT)


def _sends(events: Iterable[Mapping[str, Any]], api: str) -> bool:
    return any(event["kind"] == "request_answered" and event["api"] == api for event in events)


def _is_commit(row: Happened) -> bool:
    return row.phase == WORK and (row.what.endswith("Commit") or row.what in ("CommitOwned", "setData"))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if "kind" in event:
            yield event


def _member_rows(events: Sequence[Mapping[str, Any]], who: str, begins: int) -> Iterator[Happened]:
    commanded_ms: float | None = None
    reconciling = JOIN if who == NEW else WORK
    for event, following in pairwise([*events, {"kind": ""}]):
        ms = round((event["ns"] - begins) / 1e6, 1)
        match event["kind"]:
            case "request_answered" if event["api"] == "AwaitCommand" and commanded_ms is not None:
                # The next one was sent at once, and waits.
                yield Happened(round(commanded_ms + 0.5, 1), who, "request", "AwaitCommand", WAITS, WORK)
                commanded_ms = ms
            case "request_answered" if event["api"] == HEARTBEAT and event["error"] != "CANCELLED":
                yield Happened(ms, who, "request", HEARTBEAT, event["error"], reconciling)
                reconciling = max(reconciling, SYNC)
            case "request_answered" if event["api"] not in _LEFT_OUT and event["error"] != "CANCELLED":
                api = event["api"]
                if api == "AwaitCommand":
                    commanded_ms = ms
                yield Happened(ms, who, "request", api, event["error"], _REQUESTS[api])
            case "zk_op" if event["step"] not in _STEPS_LEFT_OUT:
                path = re.sub(r"^/consumers/\w+/", "", re.sub(r"ids/[\w-]+_[\w-]+$", "ids/<member>", event["path"]))
                yield Happened(ms, who, "operation", event["op"], path, _STEPS.get(event["step"], JOIN))
            case "phase_entered" if event["phase"] == "decide" and who == LEADER:
                yield Happened(ms, who, "note", "assigns partitions to all", "", JOIN)
            case "partitions_assigned" if event["partitions"] or who != OTHER:
                given = _partitions(event)
                yield Happened(ms, who, "note", f"may deliver {given}" if given else "gets nothing new", "", SYNC)
                reconciling = WORK if given else reconciling
            case "partitions_revoked" if following["kind"] != "member_closed":
                yield Happened(ms, who, "note", f"stops delivering {_partitions(event)}", "", WORK)


def _partitions(event: Mapping[str, Any]) -> str:
    numbers = sorted(each["partition"] for each in event["partitions"])
    return ", ".join(str(number) for number in numbers)


def _state(event: Mapping[str, Any], begins: int, number: str) -> Happened:
    ms = round((event["ns"] - begins) / 1e6, 1)
    return Happened(ms, COORDINATOR, "state", event["state"], f"{number} {event['generation']}: {event['reason']}")


if __name__ == "__main__":
    conversation_lines = [
        f'"{design}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        for design, rows in record(Path(sys.argv[1])).items()
    ]
    RECORDING.write_text("{\n" + ",\n".join(conversation_lines) + "\n}\n", encoding="utf-8")
