"""The four phases of a member in a recorded run: `four-phases.json`, one conversation for each design.

    python -m docs.generators.phases RUN      records it anew from a finished run of COMMAND

Only what the page shows is kept: the requests and ZooKeeper operations of the member that joins, those of the group's
leader, and the moves of the coordinator's state machine.
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COMMAND = (
    "rebalance-lab run join --design all --seed 1 -c heartbeat.interval.ms=200 "
    "-c group.consumer.heartbeat.interval.ms=200"
)
RECORDING = Path(__file__).parents[1] / "four-phases.json"
#: Who takes part: the member that joins, the group's leader, and the coordinator.
NEW, LEADER, COORDINATOR = "new", "leader", "coordinator"
#: The process of the member that joins.
_JOINS = "m5"
#: Milliseconds that are shown before it begins, for a heartbeat of the leader, and behind its first commit.
_BEFORE_MS, _AFTER_MS = 80, 80
FIND, JOIN, SYNC, WORK = 1, 2, 3, 4
#: A request that is not answered in the recording.
WAITS = "waits for the next command"
#: The phases as article 003 tells them, with a name for each.
PHASES: Mapping[int, str] = {
    FIND: "find the coordinator",
    JOIN: "join",
    SYNC: "sync",
    WORK: "heartbeat and commit",
}
#: The phase of a request, and of an operation in ZooKeeper by its step (R1 to R12, or a name).
_REQUESTS = {
    "FindCoordinator": FIND,
    "JoinGroup": JOIN,
    "SyncGroup": SYNC,
    "AwaitCommand": SYNC,
    "ConsumerGroupHeartbeat": JOIN,  # it joins, brings the assignment, and is the heartbeat
    "OffsetFetch": SYNC,
    "Heartbeat": WORK,
    "OffsetCommit": WORK,
    "CommitOwned": WORK,
}
_STEPS = {"register": JOIN, "subscribe": JOIN, "R8": SYNC, "R11": SYNC, "R12": SYNC, "commit": WORK}
#: What is no part of any phase: reading on, and who leads the partitions.
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
    return {design: tuple(Happened(*row) for row in recorded[design]) for design in DESIGN_NAMES}


# -- recording ---------------------------------------------------------------------------------------------------------


def record(run: Path) -> Mapping[str, list[list[object]]]:
    """The conversations of a finished run."""
    return {design: [list(row) for row in _conversation(run / "join" / design / "trace")] for design in DESIGN_NAMES}


def _conversation(folder: Path) -> list[Happened]:
    events = {path.stem: list(_events(path)) for path in folder.glob("*.jsonl")}
    begins = next(event["ns"] for event in events[_JOINS] if event["kind"] in ("session_changed", "rebalance_started"))
    leader = next(
        (
            name
            for name, them in events.items()
            for event in them
            if event["kind"] == "phase_entered" and event["phase"] == "decide" and event["ns"] > begins
            if name != _JOINS and event["stream"] is not None and _is_classic(them)
        ),
        "",
    )
    rows = [*_member_rows(events[_JOINS], NEW, begins), *_member_rows(events.get(leader, []), LEADER, begins)]
    for name, them in events.items():
        if name.startswith("broker"):
            rows += [_state(event, begins) for event in them if event["kind"] == "group_changed"]
    committed = next(row.ms for row in rows if row.who == NEW and _is_commit(row))
    return sorted(
        row
        for row in rows
        if -_BEFORE_MS <= row.ms <= committed + _AFTER_MS
        and (row.ms <= committed or row.kind in ("request", "operation"))
    )


def _is_classic(events: Iterable[Mapping[str, Any]]) -> bool:
    return any(event["kind"] == "request_answered" and event["api"] == "SyncGroup" for event in events)


def _is_commit(row: Happened) -> bool:
    return row.phase == WORK and (row.what.endswith("Commit") or row.what in ("CommitOwned", "setData"))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if "kind" in event:
            yield event


def _member_rows(events: Sequence[Mapping[str, Any]], who: str, begins: int) -> Iterator[Happened]:
    commanded_ms: float | None = None
    for event, following in pairwise([*events, {"kind": ""}]):
        ms = round((event["ns"] - begins) / 1e6, 1)
        match event["kind"]:
            case "request_answered" if event["api"] == "AwaitCommand" and commanded_ms is not None:
                # The next one was sent at once, and waits.
                yield Happened(round(commanded_ms + 0.5, 1), who, "request", "AwaitCommand", WAITS, WORK)
                commanded_ms = ms
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
            case "partitions_assigned":
                given = _partitions(event)
                yield Happened(ms, who, "note", f"may deliver {given}" if given else "gets nothing new", "", SYNC)
            case "partitions_revoked" if following["kind"] != "member_closed":
                yield Happened(ms, who, "note", f"stops delivering {_partitions(event)}", "", WORK)


def _partitions(event: Mapping[str, Any]) -> str:
    numbers = sorted(each["partition"] for each in event["partitions"])
    return ", ".join(str(number) for number in numbers)


def _state(event: Mapping[str, Any], begins: int) -> Happened:
    ms = round((event["ns"] - begins) / 1e6, 1)
    return Happened(ms, COORDINATOR, "state", event["state"], f"generation {event['generation']}: {event['reason']}")


if __name__ == "__main__":
    conversation_lines = [
        f'"{design}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        for design, rows in record(Path(sys.argv[1])).items()
    ]
    RECORDING.write_text("{\n" + ",\n".join(conversation_lines) + "\n}\n", encoding="utf-8")
