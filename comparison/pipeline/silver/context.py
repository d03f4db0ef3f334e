"""What the few events about a run as a whole say: its span, its changes, its group; plain Python.

Everything else is measured in this context, so it is made first. Its kinds are rare, however long the run: what the
runner did, what the coordinators traced of the group, and the phases of members' rebalances.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from comparison.ownership.cover import united
from comparison.ownership.groups import Memberships
from comparison.pipeline import measured
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.pipeline.bronze.tables import rows_of
from comparison.pipeline.measured_members import Refused
from comparison.pipeline.silver.leaders import appeared, existing, leaderless, takeovers
from comparison.pipeline.silver.readings import ReadingInterval, reading_intervals
from comparison.pipeline.silver.rounds import phases_of, rounds_of, whole_rounds
from comparison.pipeline.silver.windows import FOREVER_NS, changes_of, faults_of, rests_of, span_of
from comparison.results.keys import WHOLE_RUN, place_of
from kernel.designs import INCREMENTAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.ownership.groups import NamedGroups
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.bronze.tables import Tables

#: What the runner tells of the run, by the kind of event.
_RUNNER_EVENTS: Mapping[str, type[measured.RunnerEvent]] = MappingProxyType(
    {
        "run_started": measured.RunStarted,
        "run_ended": measured.RunEnded,
        "stage_entered": measured.StageEntered,
        "change_started": measured.ChangeStarted,
        "fault_started": measured.FaultStarted,
        "process_ended": measured.ProcessEnded,
        "counters_read": measured.CounterReading,
        "copies_read": measured.CopiesRead,
        "topic_wanted": measured.TopicWanted,
    }
)
_GROUP_EVENTS: Mapping[str, type[measured.GroupEvent]] = MappingProxyType(
    {"group_changed": measured.GroupChanged, "group_member_left": measured.GroupMemberLeft}
)
_OF_CHANGES = (*_RUNNER_EVENTS, "change_settled", "fault_ended")
_OF_GROUPS = ("group_changed", "group_member_joined", "group_member_left", "group_member_advanced")
_OF_MEMBERS = ("member_started", "member_closed", "member_failed", "member_refused")
_OF_PHASES = ("phase_entered", "attempt_ended", "rebalance_ended", "rebalance_started")
#: The kinds that a context is made of.
KINDS = (*_OF_CHANGES, *_OF_GROUPS, *_OF_MEMBERS, *_OF_PHASES, "leader_changed")
#: What is looked at of phases, of which there may be many.
_PHASE_COLUMNS = frozenset({"process", "member", "stream", "seq", "t_ns", "phase", "outcome"})
#: How many a run may have; ours have some tens.
_SIZES_MAX: Mapping[str, int] = MappingProxyType(
    {
        "changes": 2_000,
        "groups": 500,
        "rounds": 50_000,
        "events_of_topics_wanted": 1_000,
        "partitions_wanted": 2_000_000,
    }
)
#: Fields that hold JSON.
_JSON_FIELDS = ("parameters", "detail")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run in which things are counted; the end is not part of it."""

    number: int
    from_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """From `from_ns` until `until_ns` (None: to the end) the group should own partitions 0 to `count`-1 of a topic."""

    topic: str
    count: int
    from_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class GroupMoment:
    """A group moved to another state, or a member of it came (`member_is_known`), went, or got another epoch."""

    t_ns: int
    seq: int
    group: str
    generation: int | None = None
    state: str | None = None
    member: str | None = None
    member_is_known: bool = False
    process: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class MemberLife:
    """A process was a group's member under this id."""

    group: str
    member: str
    process: str
    from_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Context:
    """A run as a whole."""

    tolerance_ns: int
    span: measured.RunSpan
    changes: tuple[measured.ChangeWindow, ...]
    rests: tuple[int | None, ...]  #: since when the group was left alone for each change
    faults: tuple[measured.FaultPeriod, ...]
    runner: tuple[measured.RunnerEvent, ...]
    group: tuple[measured.GroupEvent, ...]
    failures: tuple[measured.MemberFailed, ...]
    refusals: tuple[Refused, ...]
    phases: tuple[measured.MemberPhase, ...]
    attempts: tuple[measured.AttemptEnded, ...]  #: of the members that a change is about
    whole_rounds: Mapping[str, tuple[tuple[int, int], ...]]  #: when those that have ended began and ended, by group
    rounds: tuple[measured.Round, ...]
    takeovers: tuple[measured.Takeover, ...]
    keeps: bool  #: the design promises that kept partitions go on in a rebalance
    memberships: Memberships
    lives: tuple[MemberLife, ...]
    moments: tuple[GroupMoment, ...]
    process_ends: Mapping[str, tuple[int, ...]]  #: when processes of that name ended, in order
    member_ends: Mapping[tuple[str, str | None], tuple[tuple[int, int], ...]]  #: (seq, t_ns) of each closing, in order
    wanted: tuple[Wanted, ...]
    readings: Mapping[str, ReadingInterval]  #: between two readings of the servers' counters, by label
    boots: Mapping[str, str]  #: of each process; empty if all are of one
    session_ends: Mapping[str, tuple[int, int]]  #: (t_ns, seq) at which ZooKeeper expired each session
    existing: Mapping[tuple[str, int], tuple[tuple[int, int], ...]]  #: when partitions did that did not always
    appeared: Mapping[tuple[str, int], int]  #: when partitions were first led that came behind the first member
    expired: tuple[tuple[str, int], ...]  #: each member whose session a coordinator ended, and when
    leaderless: Mapping[tuple[str, int], tuple[tuple[int, int], ...]]  #: since partitions were first led
    rebalancing: Mapping[tuple[str, str], tuple[tuple[int, int], ...]]  #: when each process of a group was in one

    def of_partitions(self) -> Context:
        """What partitions are measured in, without what only the run as a whole needs: it goes to every task."""
        rounds = self.rounds if self.keeps else ()
        return replace(
            self, runner=(), group=(), failures=(), refusals=(), phases=(), attempts=(), takeovers=(), rounds=rounds
        )

    @property
    def windows(self) -> list[Window]:
        """The whole run, from before its first event until its members are stopped, and each change."""
        whole = Window(WHOLE_RUN, -FOREVER_NS, self.span.end_ns)
        return [whole, *self.change_windows]

    @property
    def change_windows(self) -> list[Window]:
        return [Window(change.window, change.from_ns, change.until_ns) for change in self.changes]


def context_columns(kind: str) -> list[str]:
    """The columns of a table of events that a context needs."""
    names = EVENT_SCHEMAS[kind].names
    return [name for name in names if name in _PHASE_COLUMNS] if kind in _OF_PHASES else names


def bounds_of(tables: Tables) -> tuple[int, int] | None:
    """The first and the last moment of any event; None without events."""
    found = [pc.min_max(table["t_ns"]).as_py() for table in tables.values() if len(table)]
    return (min(each["min"] for each in found), max(each["max"] for each in found)) if found else None


def context_of(run: TraceRun, tables: Tables, bounds: tuple[int, int] | None, named: NamedGroups) -> Context:
    """The context of one run; `tables` needs KINDS only, `bounds` and `named` are those of all its tables."""
    by_runner = [row for row in rows_of(tables, *_OF_CHANGES) if row["role"] == "runner"]
    members = rows_of(tables, *_OF_MEMBERS)
    of_group = [row for row in rows_of(tables, *_OF_GROUPS) if row["role"] in ("broker", "observer")]
    started = [row for row in members if row["kind"] == "member_started"]
    group = tuple(
        msgspec.convert(row, _GROUP_EVENTS[row["kind"]])
        for row in of_group
        if row["kind"] in _GROUP_EVENTS and row["role"] == "broker"
    )
    runner = tuple(
        msgspec.convert(_parsed(row), _RUNNER_EVENTS[row["kind"]]) for row in by_runner if row["kind"] in _RUNNER_EVENTS
    )
    _check_sizes(
        changes=sum(row["kind"] in ("change_started", "fault_started") for row in by_runner), groups=len(named.groups)
    )
    memberships = Memberships.of(started, named)
    of_phases = {kind: tables[kind].select(context_columns(kind)) for kind in _OF_PHASES if kind in tables}
    phases = tuple(phases_of(rows_of(of_phases, *_OF_PHASES), memberships))
    changes, rounds = changes_of(by_runner), rounds_of(group, phases)
    wanted, led = rows_of(tables, "topic_wanted"), rows_of(tables, "leader_changed")
    _check_sizes(
        rounds=len(rounds) if run.design in INCREMENTAL else 0,  # others cost no pass over the deliveries
        events_of_topics_wanted=len(wanted),
        partitions_wanted=len(memberships.names) * sum(row["wanted"] for row in wanted),
    )
    process_ends = _process_ends(by_runner)
    member_ends, span = _member_ends(members), span_of(by_runner, [row["t_ns"] for row in started], bounds or (0, 0))
    return Context(
        tolerance_ns=run.tolerance_ns,
        span=span,
        changes=tuple(changes),
        rests=tuple(rests_of(by_runner, changes)),
        faults=tuple(faults_of(by_runner)),
        runner=runner,
        group=group,
        failures=_failures(members),
        refusals=_refusals(members, started),
        phases=phases,
        attempts=_attempts(of_phases.get("attempt_ended"), runner),
        rounds=tuple(rounds),
        takeovers=tuple(takeovers(led)),
        whole_rounds=whole_rounds(rounds),
        keeps=run.design in INCREMENTAL,
        memberships=memberships,
        lives=tuple(_life(row, process_ends, member_ends, span) for row in started if row["member"]),
        moments=tuple(map(_moment, rows_of(tables, *_OF_GROUPS))),
        process_ends={process: tuple(ends) for process, ends in process_ends.items()},
        member_ends={member: tuple(ends) for member, ends in member_ends.items()},
        wanted=tuple(_wanted(wanted)),
        readings=reading_intervals(runner),
        boots=run.boots,
        session_ends=_session_ends(of_group),
        appeared=appeared(led, min((row["t_ns"] for row in started), default=0)),
        existing=existing(led),
        expired=_expired(group),
        leaderless=leaderless(led, process_ends, span.end_ns),
        rebalancing=_rebalancing(phases),
    )


def _rebalancing(phases: Iterable[measured.MemberPhase]) -> dict[tuple[str, str], tuple[tuple[int, int], ...]]:
    found: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for each in phases:
        found[each.group, each.process].append((each.from_ns, each.until_ns))
    return {key: tuple(united(stretches)) for key, stretches in found.items()}


def _session_ends(of_group: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """When ZooKeeper expired each session in which a member was registered; a member may leave and keep its session."""
    left = [row for row in of_group if row["kind"] == "group_member_left" and row["reason"] == "session"]
    return {row["session"]: (row["t_ns"], row["seq"]) for row in left if row["session"] is not None}


def _expired(group: Iterable[measured.GroupEvent]) -> tuple[tuple[str, int], ...]:
    left = (each for each in group if isinstance(each, measured.GroupMemberLeft))
    return tuple((each.id, each.t_ns) for each in left if each.reason == "session")


def _process_ends(by_runner: Iterable[Mapping[str, Any]]) -> Mapping[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in by_runner:
        if row["kind"] == "process_ended":
            found[row["target"]].append(row["t_ns"])
    return found


def _failures(members: Iterable[Mapping[str, Any]]) -> tuple[measured.MemberFailed, ...]:
    return tuple(msgspec.convert(row, measured.MemberFailed) for row in members if row["kind"] == "member_failed")


def _refusals(members: Iterable[Mapping[str, Any]], started: Sequence[Mapping[str, Any]]) -> tuple[Refused, ...]:
    found = []
    for row in members:
        if row["kind"] == "member_refused":
            place, t_ns = place_of(row["process"]), row["t_ns"]
            there = [each for each in started if place_of(each["process"]) == place]
            was_in = any(each["t_ns"] < t_ns and each["group"] == row["group"] for each in there)
            admitted_ns = min((each["t_ns"] for each in there if each["t_ns"] > t_ns), default=None)
            found.append(msgspec.convert({**row, "was_in": was_in, "admitted_ns": admitted_ns}, Refused))
    return tuple(found)


def _member_ends(members: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str | None], list[tuple[int, int]]]:
    """(seq, t_ns) of each closing of each member, in order."""
    found: defaultdict[tuple[str, str | None], list[tuple[int, int]]] = defaultdict(list)
    for row in sorted(members, key=lambda row: row["seq"]):
        if row["kind"] == "member_closed":
            found[row["process"], row["member"]].append((row["seq"], row["t_ns"]))
    return found


def _attempts(ended: pa.Table | None, runner: Sequence[measured.RunnerEvent]) -> tuple[measured.AttemptEnded, ...]:
    """The attempts of members that a change is about, of which there are few."""
    details = [event.detail for event in runner if isinstance(event, measured.ChangeStarted) and event.detail]
    targets = sorted({target for detail in details if isinstance(target := detail.get("target"), str)})
    if ended is None or not targets:
        return ()
    rows = ended.filter(pc.is_in(ended["process"], pa.array(targets))).select(["process", "t_ns", "outcome"])
    return tuple(measured.AttemptEnded(**row) for row in rows.to_pylist())


def _life(
    started: Mapping[str, Any],
    process_ends: Mapping[str, Sequence[int]],
    member_ends: Mapping[tuple[str, str | None], Sequence[tuple[int, int]]],
    span: measured.RunSpan,
) -> MemberLife:
    """From a start of a member until it closes, its process ends, or the measured span does."""
    process, member, seq, from_ns = (started[name] for name in ("process", "member", "seq", "t_ns"))
    ends = [at_ns for closed, at_ns in member_ends.get((process, member), ()) if closed > seq]
    ends += [at_ns for at_ns in process_ends.get(process, ()) if at_ns >= from_ns]
    return MemberLife(started["group"], member, process, from_ns, min([*ends, span.end_ns]))


def _check_sizes(**sizes: int) -> None:
    """Whether the run can be measured at all. Raises ValueError: what costs a pass over it must not be without end."""
    for name, size in sizes.items():
        if size > _SIZES_MAX[name]:
            raise ValueError(f"{size} {name.replace('_', ' ')}: more than {_SIZES_MAX[name]}")


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its JSON read."""
    return row | {name: json.loads(row[name]) for name in _JSON_FIELDS if row.get(name) is not None}


def _moment(row: Mapping[str, Any]) -> GroupMoment:
    place = (row["t_ns"], row["seq"], row["group"])
    if row["kind"] == "group_changed":
        return GroupMoment(*place, generation=row["generation"], state=row["state"], process=row["process"])
    is_known, process = row["kind"] != "group_member_left", row["process"]
    return GroupMoment(*place, member=row["id"], member_is_known=is_known, process=process, epoch=row.get("epoch"))


def _wanted(rows: Sequence[Mapping[str, Any]]) -> list[Wanted]:
    found = []
    for place, row in enumerate(rows):
        later = (after["t_ns"] for after in rows[place + 1 :] if after["topic"] == row["topic"])
        found.append(Wanted(row["topic"], row["wanted"], row["t_ns"], next(later, None)))
    return found
