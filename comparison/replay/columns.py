"""What stands side by side in a replay: a column for each group of each run, all on one clock. Pure.

Runs are aligned at their first change or fault, as in the report: each is shown so much later that all of these moments
coincide with the latest of them. So the page's clock is the run's own if there is only one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from comparison.ownership.groups import Memberships
from comparison.replay.steps import Event
from comparison.report.export.stream import Recorded
from comparison.results.keys import FORMING
from kernel.designs import DESIGNS
from kernel.errors import UserError
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from comparison.report.export.stream import Stream

#: So many columns can be told apart; a run of all designs has fewer.
COLUMNS_MAX = 8
_NS_PER_MS = 1_000_000
_CHANGES = ("change_started", "fault_started")


class Column(NamedTuple):
    """One group of one run."""

    label: str  #: its design; with more words if there are several of it
    design: str
    about: str  #: scenario, seed and run, in words
    rate: int
    change_ms: float  #: the first change or fault on the page's clock; that of the first event without any
    later_ms: float  #: so much later than in its own run
    events: Sequence[Event]


def columns_of(streams: Sequence[Stream]) -> list[Column]:
    """The columns of runs in this order. Raises `UserError` for runs of no design, and for too many groups."""
    if unknown := [each.run for each in streams if each.design not in DESIGNS]:
        raise UserError(f"no known design in the traces of {', '.join(unknown)}. Give runs of this version")
    changes = [_first_change_ms(each) for each in streams]
    latest_ms = max(changes)
    found = [
        (stream, group, change_ms, events)
        for stream, change_ms in zip(streams, changes, strict=True)
        for group, events in _groups(stream)
    ]
    if len(found) > COLUMNS_MAX:
        raise UserError(f"{len(found)} groups, and {COLUMNS_MAX} can stand side by side. {_fewer(streams)}")
    labels = _labels([(stream, group) for stream, group, _, _ in found])
    return [
        Column(
            label=label,
            design=stream.design,
            about=_about(stream, group),
            rate=_rate(stream),
            change_ms=latest_ms,
            later_ms=latest_ms - change_ms,
            events=[
                Event(max(0.0, each.t_ns / _NS_PER_MS) + latest_ms - change_ms, each.role, each.event)
                for each in events
            ],
        )
        for label, (stream, group, change_ms, events) in zip(labels, found, strict=True)
    ]


def _fewer(streams: Sequence[Stream]) -> str:
    """What shows fewer groups: of a whole result, first of all one scenario of it."""
    scenarios = {stream.scenario: None for stream in streams}
    if len(scenarios) > 1:
        return f"Give the folder of one scenario, such as RUN/{next(iter(scenarios))}, or fewer designs with --design"
    return "Give fewer runs, or choose with --design"


def _first_change_ms(stream: Stream) -> float:
    found = next((e.t_ns for e in stream.events if e.event["kind"] in _CHANGES and _is_later(e.event)), None)
    return max(0.0, (stream.events[0].t_ns if found is None else found) / _NS_PER_MS)


def _is_later(event: Any) -> bool:
    """Whether it is not the group's first members that come."""
    return bool(event.get("change") != FORMING)


def _groups(stream: Stream) -> list[tuple[str, list[Recorded]]]:
    """Each group's own events, and those of nobody's; a run of one group has all."""
    memberships = Memberships.of_events(each.event for each in stream.events)
    events = _with_starts(stream)
    if len(memberships.names) < 2:
        return [("", events)]
    members = {process for process, role in stream.roles.items() if role == Role.MEMBER}
    return [
        (name, [each for each in events if _concerns(each.event, name, memberships, members)])
        for name in memberships.names
    ]


def _with_starts(stream: Stream) -> list[Recorded]:
    """The events, and a start of each member whose start nobody traced: in a run by hand there is no runner."""
    started = {each.event["target"] for each in stream.events if each.event["kind"] == "process_started"}
    found = []
    for each in stream.events:
        process = each.event["process"]
        if each.role == Role.MEMBER and process not in started:
            started.add(process)
            event = {"kind": "process_started", "process": "", "member": None, "target": process}
            found.append(Recorded(each.t_ns, Role.RUNNER, event))
        found.append(each)
    return found


def _concerns(event: Any, group: str, memberships: Memberships, members: set[str]) -> bool:
    if event.get("group") in memberships.names:
        return bool(event["group"] == group)
    if event["process"] in members:
        return memberships.group(event["process"], event["member"]) == group
    if event.get("target") in members:
        return memberships.group(event["target"], None) == group
    return event["kind"] != "records_acked" or group in memberships.readers(event["topic"])


def _labels(columns: Sequence[tuple[Stream, str]]) -> list[str]:
    """The designs; of one that is there more than once with scenario, group or a number, whatever tells them apart."""
    scenarios = {stream.scenario for stream, _ in columns}
    found = []
    for stream, group in columns:
        words = [stream.design, *([stream.scenario] if len(scenarios) > 1 else []), *([group] if group else [])]
        found.append(", ".join(words))
    many, seen = Counter(found), Counter[str]()
    for place, label in enumerate(found):
        if many[label] > 1:
            seen[label] += 1
            found[place] = f"{label} ({seen[label]})"
    return found


def _about(stream: Stream, group: str) -> str:
    group_words = f", group {group}" if group else ""
    return f"{stream.scenario} in {stream.design}{group_words}, seed {stream.seed}, run {stream.run}"


def _rate(stream: Stream) -> int:
    started = next((each.event for each in stream.events if each.event["kind"] == "run_started"), None)
    rate = started["parameters"].get("rate") if started and isinstance(started["parameters"], dict) else 0
    return rate if isinstance(rate, int) else 0
