"""A slow and obvious twin of the pipeline: all its figures, in plain Python, directly from the events.

It shares only the types of `measured` with `comparison.pipeline`; who has what, and which group an event is about, is
what `comparison.ownership` folds step by step. Constants are repeated, so that a changed one is noticed. An event is a
mapping as `tests.support.trace.traces.e` makes it, of one run, with its own `seq` in its file (`numbered`). Events with
a `problem` are counted, but not used.

At equal times: the events of a process are in order of `seq`, those of several in order of (`t_ns`, `seq`, name); an
event of the authority at the moment of a poll counts as before it; the end of a process at the moment of an assignment
counts as after it, so that the assignment has no duration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from comparison.ownership.cover import wanted_of
from comparison.ownership.groups import Memberships
from comparison.pipeline import measured
from comparison.pipeline.measured import Measured
from comparison.pipeline.measured_members import Refused
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING
from kernel.designs import INCREMENTAL
from kernel.trace.reader import Reason, header_of, lines_of
from tests.support.oracle import bystanders as oracle_bystanders
from tests.support.oracle import commits as oracle_commits
from tests.support.oracle import course as oracle_course
from tests.support.oracle import cover as oracle_cover
from tests.support.oracle import identities as oracle_identities
from tests.support.oracle import rebalances as oracle_rebalances
from tests.support.oracle import runs as oracle_runs
from tests.support.oracle.cover import OFFSETS, SERIALS, Overlap
from tests.support.oracle.intervals import Event, Key, in_time, intervals_of, of
from tests.support.oracle.lives import old_offsets_used, told_apart
from tests.support.oracle.pauses import pauses_of, silences_of
from tests.support.oracle.skips import skips_of
from tests.support.oracle.standstills import Standing

MS = 1_000_000
TOLERANCE_NS, TOLERANCE_ACROSS_BOOTS_NS = 1 * MS, 50 * MS

_RUNNER_EVENTS: Mapping[str, type[measured.RunnerEvent]] = MappingProxyType(
    {
        "run_started": measured.RunStarted,
        "run_ended": measured.RunEnded,
        "stage_entered": measured.StageEntered,
        "change_started": measured.ChangeStarted,
        "fault_started": measured.FaultStarted,
        "process_ended": measured.ProcessEnded,
        "counters_read": measured.CounterReading,
        "topic_wanted": measured.TopicWanted,
    }
)
_GROUP_EVENTS: Mapping[str, type[measured.GroupEvent]] = MappingProxyType(
    {"group_changed": measured.GroupChanged, "group_member_left": measured.GroupMemberLeft}
)


def measured_of(
    events: Iterable[Event],
    *,
    tolerance_ns: int = TOLERANCE_NS,
    design: str = "zookeeper",
    boots: Mapping[str, str] = MappingProxyType({}),
) -> Measured:
    """All measurements of one run. Only lists of events, rounds and changes have an order.

    `boots` has the boot of each process; without it, all are of one.
    """
    lines = list(events)
    usable = told_apart([event for event in lines if not event.get("problem")])
    found = Measured()
    if not usable:
        found.counts = oracle_runs.set_aside(lines, usable)
        return found
    _single_events(usable, found)
    found.span = span = oracle_runs.span_of(usable)
    found.changes = oracle_runs.changes_of(usable)
    found.faults = oracle_runs.faults_of(usable)
    changed = [(each.window, each.from_ns, each.until_ns) for each in found.changes]
    every_window = [oracle_cover.whole_run(span), *changed]
    found.counts = oracle_runs.counts_of(usable, every_window) + oracle_runs.set_aside(lines, usable)
    for view, pieces in (of_views := lines_of_views(usable)).items():
        for window in every_window:
            _covered(found, window[0], view, oracle_cover.coverage_over_time(pieces, window, tolerance_ns))
    found.left_unnamed = left_unnamed(of_views[AUTHORITY].values(), changed)
    for view in (SERIALS, OFFSETS):
        _covered(found, oracle_cover.WHOLE_RUN, view, oracle_cover.coverage_by_number(usable, view))
    believed, authority = intervals_of(usable, BELIEVED), intervals_of(usable, AUTHORITY)
    for number, begin, end in changed:
        if owners := oracle_runs.owners_around(authority, begin, end):
            found.owners[number] = owners
        if turnover := oracle_runs.turnover_of(believed, begin, end):
            found.turnover[number] = turnover
        for view, intervals in ((BELIEVED, believed), (DELIVERING, intervals_of(usable, DELIVERING))):
            if begun := oracle_runs.begun_in(intervals, begin, end):
                found.begun[number, view] = begun
    found.commits = oracle_commits.commit_totals(usable, tolerance_ns, boots)
    found.final_offsets = oracle_commits.final_offsets(usable)
    found.old_offsets_used, found.memberless_ns = old_offsets_used(usable), memberless_ns(usable)
    found.skips, _ = skips_of(usable)
    found.standstills = Standing(usable, span, believed, oracle_rebalances.phases_of(usable), found.faults).all(changed)
    found.silences = silences_of(usable, tolerance_ns)
    found.takeovers = oracle_commits.takeovers(usable)
    found.acting = oracle_commits.acting(usable)
    found.phases = oracle_rebalances.phases_of(usable)
    found.attempts = oracle_rebalances.attempts_of(usable)
    found.rounds = oracle_rebalances.rounds_of(usable, found.phases)
    found.pauses = pauses_of(usable, found.rounds, span)
    found.kept = oracle_rebalances.kept_through(usable, believed, found.rounds) if design in INCREMENTAL else {}
    found.delivered, found.out_of_order = oracle_runs.bins_of(usable, span)
    found.course = oracle_course.course_of(usable, span)
    found.members = oracle_identities.members_of(usable)
    found.groups = list(Memberships.of_events(usable).names)
    found.mistakable = oracle_identities.mistakable(usable, span, tolerance_ns)
    found.bystanders = oracle_bystanders.latencies_of(usable)
    found.operations = oracle_runs.operations_of(usable, oracle_runs.readings_of(usable))
    return found


def _covered(
    found: Measured, window: int, view: str, covered: tuple[measured.Coverage, measured.FirstOverlap | None] | None
) -> None:
    if covered is None:
        return
    found.coverage[window, view], first = covered
    if first is not None and window == oracle_cover.WHOLE_RUN:
        found.first_overlaps[view] = first


def _single_events(events: list[Event], found: Measured) -> None:
    for event in in_time(events):
        if event["role"] == "runner" and event["kind"] in _RUNNER_EVENTS:
            found.runner.append(msgspec.convert(event, _RUNNER_EVENTS[event["kind"]]))
        elif event["role"] == "broker" and event["kind"] in _GROUP_EVENTS:
            found.group.append(msgspec.convert(event, _GROUP_EVENTS[event["kind"]]))
        elif event["kind"] == "member_failed":
            found.failures.append(msgspec.convert(event, measured.MemberFailed))
        elif event["kind"] == "member_refused":
            about = {"was_in": _was_in(event, events), "admitted_ns": _admitted_ns(event, events)}
            found.refusals.append(msgspec.convert({**event, **about}, Refused))


def _was_in(refused: Event, events: list[Event]) -> bool:
    """Whether a process at its place had been in the group."""
    joined = [event for event in _joined_in_place(refused, events) if event["t_ns"] < refused["t_ns"]]
    return refused["group"] in {event["group"] for event in joined}


def _admitted_ns(refused: Event, events: list[Event]) -> int | None:
    """When a process at its place was next in a group."""
    for event in _joined_in_place(refused, events):
        if event["t_ns"] > refused["t_ns"]:
            return int(event["t_ns"])
    return None


def _joined_in_place(refused: Event, events: list[Event]) -> list[Event]:
    place = refused["process"].split(".")[0]
    joined = [event for event in in_time(events) if event["kind"] == "member_started"]
    return [event for event in joined if event["process"].split(".")[0] == place]


def left_unnamed(lines: Iterable[list[oracle_cover.Piece]], changed: list[tuple[int, int, int]]) -> int:
    """How many partitions should have had an owner at the end of the last change, and had none."""
    end_ns = changed[-1][2] if changed else None
    at_the_end = [each for line in lines for each in line if end_ns is not None and each.low < end_ns <= each.high]
    return sum(each.is_wanted and not each.holders for each in at_the_end)


def memberless_ns(events: list[Event]) -> int:
    """How long partitions were wanted by groups without members."""
    timed = [(event["t_ns"], event) for event in in_time(events)]
    wanted, end_ns = wanted_of(timed), max(t_ns for t_ns, _ in timed) + 1
    asked, due = wanted.asked(end_ns), wanted.stretches(end_ns)
    return sum(high - low for each in asked.values() for low, high in each) - sum(
        high - low for each in due.values() for low, high in each
    )


def lines_of_views(events: list[Event]) -> dict[str, dict[Key, list[oracle_cover.Piece]]]:
    """The pieces of each partition's timeline, in the views over time."""
    timed = [(event["t_ns"], event) for event in in_time(events)]
    span, wanted = oracle_runs.span_of(events), wanted_of(timed).stretches(max(t_ns for t_ns, _ in timed) + 1)
    return {
        view: oracle_cover.lines_over_time(intervals_of(events, view), {} if view == DELIVERING else wanted, span)
        for view in (BELIEVED, AUTHORITY, DELIVERING)
    }


def overlaps(events: Iterable[Event], view: str) -> list[Overlap]:
    """Every maximal overlap of a view over time, however short, with all holders of its first piece."""
    lines = lines_of_views([event for event in events if not event.get("problem")])[view]
    return [each for key, pieces in lines.items() for each in oracle_cover.overlaps_of(key, pieces)]


def numbered(events: Iterable[Event]) -> list[Event]:
    """The events with `seq` and `file` as in their processes' files; `seq` counts in the given order."""
    seqs: Counter[str] = Counter()
    files: dict[str, int] = {}
    found = []
    for event in events:
        process = event["process"]
        found.append({**event, "seq": seqs[process], "file": files.setdefault(process, len(files))})
        seqs[process] += 1
    return found


def differences(found: Measured, expected: Measured, *, leaving_out: Iterable[str] = ()) -> list[str]:
    """Descriptions of the differences between two measurements of one run; order within lists does not matter.

    `leaving_out` names fields of Measured, or pseudo kinds of its counts such as `missing`.
    """
    skipped = set(leaving_out)
    complaints = []
    for name in Measured.__slots__:
        if name in skipped:
            continue
        one, other = (_comparable(getattr(each, name), skipped) for each in (found, expected))
        if one != other:
            if isinstance(one, dict):
                keys = sorted({*one, *other}, key=repr)
                complaints += [
                    f"{name}[{key}]: {one.get(key)} instead of {other.get(key)}"
                    for key in keys
                    if one.get(key) != other.get(key)
                ]
            else:
                complaints.append(f"{name}: {one} instead of {other}")
    return complaints


def _comparable(value: Any, skipped: set[str]) -> Any:
    if isinstance(value, list):
        return Counter(repr(each) for each in value if getattr(each, "kind", None) not in skipped)
    if isinstance(value, dict):
        return {key: _comparable(each, skipped) for key, each in value.items()}
    return value


def events_of(folder: Path) -> tuple[list[Event], int]:
    """The events of a run's files on one clock, and the run's tolerance. Unusable lines become events with a `problem`.

    Handles only valid headers, and lines that are events or torn; `kernel.trace.reader` handles more.
    """
    paths = sorted((folder / "trace").glob("*.jsonl"))
    headers = [header_of(next(iter(lines_of(path))))[0] for path in paths]
    runner = next(header for header in headers if header is not None and header["role"] == "runner")
    events: list[Event] = []
    for number, (path, header) in enumerate(zip(paths, headers, strict=True)):
        assert header is not None
        is_here = header["boot_id"] == runner["boot_id"]
        offset_ns = (
            -runner["monotonic_ns"] if is_here else header["wall_ns"] - runner["wall_ns"] - header["monotonic_ns"]
        )
        for line in list(lines_of(path))[1:]:
            try:
                event = msgspec.json.decode(line)
            except msgspec.DecodeError:
                events.append({"file": number, "problem": Reason.TORN})
                continue
            if "kind" in event:
                events.append(
                    {**event, "t_ns": event["ns"] + offset_ns, "role": header["role"], "run": 0, "file": number}
                )
    boots = {header["boot_id"] for header in headers if header is not None}
    return events, TOLERANCE_NS if len(boots) == 1 else TOLERANCE_ACROSS_BOOTS_NS


__all__ = [
    "AUTHORITY",
    "BELIEVED",
    "DELIVERING",
    "OFFSETS",
    "SERIALS",
    "TOLERANCE_ACROSS_BOOTS_NS",
    "TOLERANCE_NS",
    "differences",
    "events_of",
    "measured_of",
    "numbered",
    "of",
    "overlaps",
]
