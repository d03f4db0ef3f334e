"""One member's rebalance under a coordinator as a list of lines, with what the coordinator did meanwhile.

The steps are the phases in the member's own events. A trace has only the responses: a request that waits at the
coordinator is placed where the member could first have sent it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comparison.designs.table import PROFILES
from comparison.report.history.brokers import UNLOADED
from comparison.report.history.rebalance_context import TARGETING
from comparison.report.history.steps import (
    NOTICE_NS,
    SESSIONS,
    Line,
    line_at,
    lines_of,
    operations_line,
    partitions_text,
    same_kind,
    together,
)
from kernel.designs import RECONCILING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.history.group_history import Event, GroupHistory, MemberRebalance

#: Requests that may wait at the coordinator, and the phases in which they are sent.
_WAITING = MappingProxyType({"JoinGroup": "join", "SyncGroup": "claim", "AwaitCommand": "join"})
#: Requests of a rebalance that are answered at once.
_AT_ONCE = frozenset({"FindCoordinator", "OffsetFetch", "OffsetCommit", "CommitOwned", "ListOffsets", "Fetch"})
_STILL, _DELIVERS, _DONE = "still delivers ", "delivers ", "done"


def member_lines(history: GroupHistory, rebalance: MemberRebalance) -> list[Line]:
    """The lines of one member's rebalance, by its design."""
    return _Exchange(history, rebalance).lines() if history.coordinated else lines_of(history, rebalance)


def purpose(history: GroupHistory, step: str) -> str:
    """The purpose of a step; '' if it has none."""
    return PROFILES[history.design].purposes.get(step, "")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The place of an event in the rebalance."""

    phase: str
    started: bool  #: whether it may deliver what this rebalance assigned


class _Exchange:
    """The events of one rebalance, in their order."""

    def __init__(self, history: GroupHistory, rebalance: MemberRebalance) -> None:
        self._story = history
        self._name = rebalance.member.name
        self._events = rebalance.events
        self._asked_ns = rebalance.events[0]["ns"]  # the next request may have been sent from then on
        given = [e["partitions"] for e in rebalance.events if e["kind"] == "partitions_assigned"]
        self._given = {_key(each) for partitions in given for each in partitions}

    def lines(self) -> list[Line]:
        found: list[Line] = []
        run: list[Event] = []
        seen = _Seen("", started=False)
        for place, event in enumerate(self._events):
            if event["kind"] == "phase_entered":
                seen = replace(seen, phase=str(event["phase"]))
                self._asked_ns = event["ns"]
            if run and (event["kind"] != "zk_op" or not same_kind(run[-1], event)):
                found.append(self._operations(run))
                run = []
            if event["kind"] == "zk_op":
                run.append(event)
                self._asked_ns = event["ns"]
            else:
                found += self._lines(place, event, seen)
                seen = replace(seen, started=seen.started or event["kind"] == "partitions_assigned")
        if run:
            found.append(self._operations(run))
        return together(sorted(_kept_on(found), key=lambda line: line.began_ns))

    def _operations(self, run: Sequence[Event]) -> Line:
        return operations_line(self._story, self._name, self._story.names(), run)

    def _lines(self, place: int, event: Event, seen: _Seen) -> list[Line]:
        if event["kind"] == "request_answered":
            return self._answered(place, event, seen)
        if event["kind"] == "records_delivered":
            return [self._delivering(event, seen)]
        what = _happened(event)
        return [self._line(event, seen.phase if event["kind"] in _OF_A_PHASE else "", "did", what)] if what else []

    def _delivering(self, event: Event, seen: _Seen) -> Line:
        partition = f"{event['topic']} {event['partition']}"
        if seen.started and _key(event) in self._given:
            return self._line(event, "resume", "did", f"{_DELIVERS}{partition} from {event['first']} on")
        return self._line(event, seen.phase, "did", f"{_STILL}{partition}")

    def _answered(self, place: int, event: Event, seen: _Seen) -> list[Line]:
        api, broker = str(event["api"]), event["broker"]
        if event["error"] == "CANCELLED":
            return []
        if api == TARGETING:
            said = self._of_heartbeat(place, event)
            return [self._line(event, seen.phase, *said, broker)] if said else []
        if api == "Heartbeat" or (api == "AwaitCommand" and seen.phase == ""):
            reason = str(event["error"]) or ("stop" if self._triggers(place) else "")
            return [self._line(event, "", "answer", f"{api}: {reason}", broker)] if reason else []
        if api not in _WAITING:
            return self._answered_at_once(event, seen)
        if seen.phase != _WAITING[api]:
            return []
        asked = replace(self._line(event, seen.phase, "asks", api, broker), began_ns=self._asked_ns)
        self._asked_ns = event["ns"]
        return [asked, self._line(event, seen.phase, "answer", f"{api}: {self._answer(place, event)}", broker)]

    def _of_heartbeat(self, place: int, event: Event) -> tuple[str, str] | None:
        """Kind and text of a heartbeat that a target, or what a member has of it, goes with; None for others."""
        if event["error"]:
            return "answer", f"{TARGETING}: {event['error']}"
        later = [each["kind"] for each in self._events[place + 1 :]]
        if "rebalance_started" in later:
            return "answer", f"{TARGETING}: a new target"
        if later[:1] == ["member_started"]:
            epoch = str(self._events[place + 1]["cause"]).partition(":")[2]
            return "answer", f"{TARGETING}: member of epoch {epoch}"
        if "rebalance_ended" in later:
            return None
        given = [each["all"] for each in self._events if each["kind"] == "partitions_assigned"]
        return "asks", f"{TARGETING}: has {partitions_text(given[-1]) if given and given[-1] else 'nothing'}"

    def _answered_at_once(self, event: Event, seen: _Seen) -> list[Line]:
        """The lines without fetches of partitions that it still delivers."""
        api = str(event["api"])
        if api == "FindCoordinator":
            self._asked_ns = event["ns"]
        elif api == "Fetch" and not (seen.started and self._given):
            return []
        refused = f": {event['error']}" if event["error"] else ""
        step = "resume" if seen.started else seen.phase or ("commit" if "Commit" in api else "")
        return [self._line(event, step, "broker", f"{api}{refused}", event["broker"])] if api in _AT_ONCE else []

    def _triggers(self, place: int) -> bool:
        return any(event["kind"] == "rebalance_triggered" for event in self._events[place : place + 2])

    def _answer(self, place: int, event: Event) -> str:
        """The content of a response, as the events after it show it."""
        if event["error"]:
            return str(event["error"])
        later = self._events[place + 1 :]
        if event["api"] == "JoinGroup":
            generation = next((e["cause"] for e in later if str(e["cause"]).startswith("generation:")), "")
            phase = next((e["phase"] for e in later if e["kind"] == "phase_entered"), "")
            number = f"generation {generation.partition(':')[2]}" if generation else "a new generation"
            return f"{number}, lead it" if phase == "decide" else number
        given = next((e for e in later if e["kind"] == "partitions_assigned"), None)
        if event["api"] == "SyncGroup":
            return partitions_text(given["all"]) if given is not None else "an assignment"
        if given is None or next(e["kind"] for e in later) not in ("phase_entered", "member_started"):
            return "nothing"
        return f"start generation {given['generation']}: {partitions_text(given['all'])}"

    def _line(self, event: Event, step: str, kind: str, what: str, broker: int = -1) -> Line:
        return line_at(self._name, event, step, kind, what, broker)


def _kept_on(lines: Sequence[Line]) -> list[Line]:
    """Deliveries that continue, once per step."""
    partitions: dict[str, list[str]] = {}
    for line in lines:
        if line.what.startswith(_STILL):
            partitions.setdefault(line.step, []).append(line.what.removeprefix(_STILL))
    found: list[Line] = []
    for line in lines:
        if not line.what.startswith(_STILL):
            found.append(line)
        elif line.step in partitions:
            named = [each.rpartition(" ") for each in partitions.pop(line.step)]
            known = sorted({(topic, int(number)) for topic, _, number in named})
            continued = partitions_text({"topic": topic, "partition": number} for topic, number in known)
            found.append(replace(line, what=f"{_STILL}{continued}"))
    return found


#: What a member does in each phase.
_OF_A_PHASE = frozenset({"partitions_revoked", "partitions_assigned", "phase_entered", "position_reset"})


def _happened(event: Event) -> str:
    match event["kind"]:
        case "session_changed" if event["state"] in SESSIONS:
            return SESSIONS[str(event["state"])]
        case "rebalance_started":
            return f"begins a rebalance ({event['trigger']})"
        case "attempt_started" if event["attempt"] > 1:
            return f"attempt {event['attempt']}"
        case "phase_entered" if event["phase"] == "decide":
            return "computes everyone's assignment"
        case "phase_entered" if event["phase"] == "backoff":
            return "waits for its backoff"
        case "partitions_revoked":
            return f"stops delivering {partitions_text(event['partitions'])}{_and_keeps(event)}"
        case "partitions_lost":
            return f"has lost {partitions_text(event['partitions'])}{_and_keeps(event)}"
        case "partitions_assigned":
            return _given(event)
        case "attempt_ended" if event["outcome"] != "ok":
            error = f": {event['error']}" if event.get("error") else ""
            return f"attempt {event['attempt']} has failed ({event['outcome']}{error})"
        case "rebalance_ended":
            return _DONE if event["outcome"] == "ok" else f"the rebalance is void ({event['outcome']})"
        case "position_reset":
            return f"has no usable offset of {event['topic']} {event['partition']}: starts at {event['offset']}"
    return ""


def _and_keeps(event: Event) -> str:
    return f", keeps {partitions_text(event['all'])}" if event["all"] else ""


def _given(event: Event) -> str:
    new = {_key(each) for each in event["partitions"]}
    kept = [each for each in event["all"] if _key(each) not in new]
    if not event["all"]:
        return "has nothing to deliver"
    if not kept:
        return f"may deliver {partitions_text(event['partitions'])}"
    begins = f"may deliver {partitions_text(event['partitions'])}, " if new else ""
    return f"{begins}goes on with {partitions_text(kept)}"


def _key(partition: Mapping[str, Any]) -> tuple[str, int]:
    return partition["topic"], partition["partition"]


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordination(history: GroupHistory, rebalances: Sequence[MemberRebalance]) -> list[Line]:
    """What the brokers traced about the group meanwhile: its states, removed members, reads of ZooKeeper.

    Starts when the coordinator did; members learn of it later, from their heartbeats.
    """
    found: list[Line] = []
    ended_ns = max(each.ended_ns for each in rebalances)
    began_ns = min(each.events[0]["ns"] for each in rebalances)
    began_ns = min(began_ns, max(_prepared(history, began_ns), _settled(history, began_ns) + 1))
    run: list[Event] = []
    for event in history.events:
        node = history.broker_of(event)
        if node is None or not began_ns <= event["ns"] <= ended_ns or not _of_group(history, event):
            continue
        if event["kind"] == "zk_op" and (not run or same_kind(run[-1], event)):
            run.append(event)
            continue
        found += _read(history, run)
        run = [event] if event["kind"] == "zk_op" else []
        what, kind = _state(history, event)
        if what:
            found.append(line_at("", event, "", kind, what, node))
    return [*found, *_read(history, run)]


def _prepared(history: GroupHistory, ns: int) -> int:
    """When the coordinator last began a round; a little earlier, because the reason is traced before it."""
    states = "PreparingRebalance", "Assigning"
    begun = [e["ns"] for e in history.events if e["ns"] <= ns and any(_is_state(history, e, s) for s in states)]
    return begun[-1] - NOTICE_NS if begun else ns


def _settled(history: GroupHistory, ns: int) -> int:
    settled = [e["ns"] for e in history.events if e["ns"] <= ns and _is_state(history, e, "Stable")]
    return settled[-1] if settled else 0


def _is_state(history: GroupHistory, event: Event, state: str) -> bool:
    return event["kind"] == "group_changed" and (event["group"], event["state"]) == (history.group, state)


def _read(history: GroupHistory, run: Sequence[Event]) -> list[Line]:
    if not run:
        return []
    node = history.broker_of(run[0])
    assert node is not None, "only what brokers read is here"
    return [replace(operations_line(history, "", history.names(), run), step="", broker=node)]


def _state(history: GroupHistory, event: Event) -> tuple[str, str]:
    match event["kind"]:
        case "group_changed" if event["reason"] != UNLOADED:
            number = "epoch" if history.design in RECONCILING else "generation"
            return f"{number} {event['generation']} is {event['state']}: {event['reason']}", "state"
        case "group_member_left":
            who = history.names().get(str(event["id"]), str(event["id"]))
            return f"{who} is gone ({event['reason']})", "state"
        case "zk_notified":
            return f"the children of {str(event['path']).rpartition('/')[2]} have changed", "notified"
    return "", ""


def _of_group(history: GroupHistory, event: Event) -> bool:
    if event["kind"] in ("zk_op", "zk_notified"):
        return f"{event['path']}/".startswith(f"/consumers/{history.group}/")
    return bool(event.get("group") == history.group)


def without_details(lines: Iterable[Line]) -> list[Line]:
    """The requests, responses and their effects, without fetches and offsets."""
    return [
        line
        for line in lines
        if not line.what.startswith((_STILL, _DELIVERS, _DONE))
        and (line.kind != "broker" or line.what.startswith("FindCoordinator"))
    ]
