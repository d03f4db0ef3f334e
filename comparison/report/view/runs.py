"""From the tables of an analysis to the values that are drawn."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from comparison.ownership.fold import Key
from comparison.report.history.causes import Causes, Waited
from comparison.report.view.conversations import conversations_of
from comparison.report.view.events import NO_EVENTS, read_events
from comparison.report.view.model import (
    Change,
    Commit,
    Fault,
    Holding,
    Overlap,
    PartitionView,
    Phase,
    Round,
    RunView,
    Stretch,
    joined,
)
from comparison.report.view.naming import MemberNames, numbering, place_of
from comparison.report.view.over_time import course_of, joined_of, rebalances_of
from comparison.report.view.raw_events import raw_events
from comparison.report.view.reasons import reasons_of
from comparison.report.view.tables import MEMBERS, SEVERAL, read_tables
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING, SIZING, WHOLE
from comparison.screen.natural_order import natural
from comparison.screen.printable import printable
from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.report.view.events import RunEvents
    from comparison.report.view.tables import RunTables

    Row = Mapping[str, Any]
    from comparison.results.result import Result
    from comparison.results.run import Run
    from kernel.platform.places import Place

_NS_PER_MS = 1e6
#: What a process had sent before it was frozen is answered within this.
_UNDER_WAY_MS = 1_000
#: Shorter waits for a member are not told.
WAIT_TOLD_MS_MIN = 200.0
#: Tables of what lanes show in more detail; their ends are no moments of their own.
_OVER_TIME = ("course", "waits")


def read_views(result: Result, folder: Place) -> list[RunView | None]:
    """One for each of the result's runs, from the tables beside it; None for a run without rows.

    Raises TablesMissing.
    """
    tables, events = read_tables(folder), read_events(folder)
    return [
        view_of(run, tables[run.run_id], events.get(run.run_id, NO_EVENTS))
        if run.run_id in tables
        else None  # nothing was traced
        for run in result.runs
    ]


def view_of(run: Run, tables: RunTables, events: RunEvents = NO_EVENTS) -> RunView:
    """One run."""
    ownership = tables.rows["ownership"]
    owners = {row["owner"] for row in ownership if row["view"] != AUTHORITY} - {SEVERAL}
    names = MemberNames(owners, tables.rows[MEMBERS])
    began_ms, ended_ms = _bounds(run, tables)
    faults = tuple(_fault(row, run) for row in tables.rows["faults"])
    lanes = dict(_partitions(tables, names, ended_ms, faults))
    phases = tuple(
        Phase(
            _ms(row["from_ns"]),
            _ms(row["until_ns"]),
            names.of_member(row["member"], row["process"]),
            printable(row["phase"]),
        )
        for row in tables.rows["phases"]
        if row["phase"] != WHOLE
    )
    members = sorted(names.members, key=natural)
    view = RunView(
        scenario=run.scenario,
        design=run.design,
        seed=run.seed,
        numbered_by=numbering(run.design),
        authority="ZooKeeper" if run.design == ZOOKEEPER else "the coordinator",
        members=tuple(members),
        places={member: place_of(member) for member in members},
        full_names=names.full,
        partitions=tuple(lanes.values()),
        phases=phases,
        rounds=tuple(_rounds(tables.rows["rounds"])),
        faults=faults,
        changes=tuple(
            Change(
                printable(change.change) + (f" {change.round}" if change.round > 1 else ""),
                change.from_ms,
                printable(change.target),
            )
            for change in run.changes
            if change.change not in SIZING and change.members is not None
        ),
        began_ms=began_ms,
        ended_ms=ended_ms,
        left_out=tables.left_out,
        path=printable(run.path),
        rebalances=tuple(rebalances_of(tables.rows["phases"], names)),
        course=tuple(course_of(tables.rows["course"])),
        joined=tuple(joined_of(tables.rows["waits"], names)),
    )
    causes = Causes(events.events, view.authority, names, tuple(_waits(view)))
    return replace(
        view,
        reasons=reasons_of(view, lanes, causes, run, _read_until_ms(events)) if events.events else (),
        conversations=conversations_of(events.events, run.design, view.zero_ms),
        events=tuple(raw_events(events.events, names)),
    )


def _read_until_ms(events: RunEvents) -> float:
    return _ms(events.events[-1]["ns"]) if events.left_out else math.inf


def _waits(view: RunView) -> Iterator[Waited]:
    """The members that others waited for, of rounds that ended."""
    for each in (each for each in view.joined if each.is_waited_for):
        longest_ms = max(other.waited_ms for other in view.joined if other.number == each.number)
        ended_ms = next((one.until_ms for one in view.rounds if one.number == each.number), None)
        if ended_ms is not None and longest_ms >= WAIT_TOLD_MS_MIN:
            from_ns, until_ns = (round(ms * _NS_PER_MS) for ms in (ended_ms - longest_ms, ended_ms))
            yield Waited(from_ns, until_ns, each.member, place_of(each.member).partition("-")[0])


def _fault(row: Row, run: Run) -> Fault:
    from_ms, healed_ms = _ms(row["from_ns"]), _ms_or_none(row["healed_ns"])
    others = (each.lasted for each in run.changes if each.has_other_length and each.from_ms == from_ms)
    return Fault(printable(row["fault"]), printable(row["target"]), from_ms, healed_ms, next(others, ""))


def _ms(ns: int) -> float:
    return ns / _NS_PER_MS


def _ms_or_none(ns: int | None) -> float | None:
    return None if ns is None else _ms(ns)


def _bounds(run: Run, tables: RunTables) -> tuple[float, float]:
    """The first and the last moment of anything that is drawn."""
    moments = [
        _ms(row[name])
        for table, rows in tables.rows.items()
        if table not in _OVER_TIME
        for row in rows
        for name in ("from_ns", "until_ns", "t_ns", "healed_ns", "high")
        if row.get(name) is not None
    ]
    moments += [change.from_ms for change in run.changes]
    return min(moments, default=0.0), max(moments, default=0.0) or 1.0


def _rounds(rows: Iterable[Row]) -> Iterator[Round]:
    for number, row in enumerate(sorted(rows, key=lambda row: (row["from_ns"], row["round"])), start=1):
        yield Round(
            number=number,
            from_ms=_ms(row["from_ns"]),
            until_ms=_ms_or_none(row["until_ns"]),
            generation=row["generation"],
        )


def _partitions(
    tables: RunTables, names: MemberNames, ended_ms: float, faults: Sequence[Fault]
) -> Iterator[tuple[Key, PartitionView]]:
    holdings: defaultdict[Key, defaultdict[str, list[Holding]]] = defaultdict(lambda: defaultdict(list))
    for row in tables.rows["ownership"]:
        owner, until_ms = row["owner"], ended_ms if row["until_ns"] is None else _ms(row["until_ns"])
        if owner != SEVERAL:
            owner = (names.of_authority if row["view"] == AUTHORITY else names.of_owner)(owner)
        holdings[_key(row)][row["view"]].append(Holding(_ms(row["from_ns"]), until_ms, owner))
    segments: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in tables.rows["segments"]:
        segments[_key(row)].append(row)
    commits: defaultdict[Key, list[Commit]] = defaultdict(list)
    for row in tables.rows["commits"]:
        commits[_key(row)].append(_commit(row, names, faults))
    keys = sorted({*holdings, *segments, *commits})
    several = len({group for group, _, _ in keys}) > 1
    for key in keys:
        group, topic, number = key
        delivering = _in_order(holdings[key][DELIVERING])
        yield (
            key,
            PartitionView(
                name=printable(f"{group}/{topic}-{number}" if several else f"{topic}-{number}"),
                named=_in_order(holdings[key][AUTHORITY]),
                delivering=delivering,
                overlaps=tuple(_overlaps(segments[key], delivering)),
                unnamed=_gaps(segments[key], AUTHORITY),
                unclaimed=_gaps(segments[key], BELIEVED),
                commits=tuple(sorted(commits[key], key=lambda each: each.at_ms)),
            ),
        )


def _key(row: Row) -> Key:
    return Key(row["group_id"] or "", row["topic"], row["partition"])


def _commit(row: Row, names: MemberNames, faults: Sequence[Fault]) -> Commit:
    at_ms, member = _ms(row["t_ns"]), names.of_member(row["by_member"])
    is_frozen = any(
        each.fault == "freeze"
        and each.target in (member, member.rpartition("-")[0])
        and each.from_ms + _UNDER_WAY_MS < at_ms < (each.healed_ms or math.inf)
        for each in faults
    )
    return Commit(
        at_ms=at_ms,
        member=member,
        offset=row["record_offset"],
        outcome=printable(row["outcome"] or "refused"),
        is_stale=row["is_stale"],
        moved_back_by=row["moved_back_by"],
        is_by_runner=is_frozen,
    )


def _in_order(holdings: Iterable[Holding]) -> tuple[Holding, ...]:
    return tuple(sorted(holdings, key=lambda each: (each.from_ms, each.until_ms, each.member)))


def _overlaps(segments: Iterable[Row], delivering: Sequence[Holding]) -> Iterator[Overlap]:
    """The stretches that count as an overlap, those that touch as one, with whoever delivers during any of it."""
    rows = [
        (_ms(row["low"]), _ms(row["high"]))
        for row in segments
        if row["view"] == DELIVERING and row["counts_as_overlap"]
    ]
    for low, high in joined(rows):
        members = (each.member for each in delivering if each.from_ms < high and each.until_ms > low)
        yield Overlap(low, high, tuple(dict.fromkeys(members)))


def _gaps(segments: Iterable[Row], view: str) -> tuple[Stretch, ...]:
    rows = (row for row in segments if row["view"] == view and row["is_wanted"] and row["holders"] == 0)
    return tuple(Stretch(_ms(row["low"]), _ms(row["high"])) for row in sorted(rows, key=lambda row: row["low"]))
