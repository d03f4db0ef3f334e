"""A timeline of traces as the values that the report's lanes are drawn from, without an analysis.

Who had what is folded from the events (`comparison.ownership`), as in the analysis: whom the authority names, who
delivers, and the gaps in what members believe. Commits are as they were answered: nobody has asked who was the owner
then.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from comparison.ownership.cover import gaps_of, held_until, overlaps_of, wanted_of
from comparison.ownership.fold import Key, ownership_of
from comparison.report.view.model import (
    ACCEPTED,
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
)
from comparison.report.view.naming import numbering
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING
from comparison.screen.natural_order import natural
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeVar

    from comparison.ownership.fold import Interval
    from comparison.report.history.group_history import Event, GroupHistory, MemberHistory
    from comparison.report.history.group_history import Round as HistoryRound

    _Stretch = TypeVar("_Stretch", bound=Stretch)

#: On both sides of a round, as a share of its length.
MARGIN = 0.05
_COMMITS = ("offset_written", "offset_refused")


def around(chosen: HistoryRound) -> tuple[int, int]:
    """A round with some margin."""
    margin = max(1_000_000, int((chosen.ended_ns - chosen.began_ns) * MARGIN))
    return chosen.began_ns - margin, chosen.ended_ns + margin


def timeline(
    history: GroupHistory,
    began_ns: int,
    ended_ns: int,
    only: Iterable[str] = (),
    *,
    scenario: str = "",
    seed: int = 0,
) -> RunView:
    """Everything between two moments, in milliseconds since the first event; with `only`, only these members' phases.

    Raises `UserError` if there is nothing.
    """
    assert began_ns < ended_ns, "a window ends after it begins"
    window = _Window(history, began_ns, ended_ns)
    there = [member for member in history.members if _lives(member, began_ns, ended_ns)]
    chosen = [member for member in there if not only or member.name in set(only)]
    phases = [phase for member in chosen for phase in window.cut(_phases(window, member))]
    partitions = tuple(_partitions(history, window))
    if not phases and not any(each.named or each.delivering for each in partitions):
        raise UserError(
            f"nothing happens between {history.seconds(began_ns):.3f} and {history.seconds(ended_ns):.3f} s: "
            f"the traces last from 0 to {history.seconds(history.events[-1]['ns']):.3f} s"
        )
    faults, changes = _disturbances(history, window)
    return RunView(
        scenario=scenario,
        design=history.design,
        seed=seed,
        numbered_by=numbering(history.design),
        authority="the coordinator" if history.coordinated else "ZooKeeper",
        members=tuple(member.name for member in there),
        places={member.name: member.place for member in there},
        full_names={},
        partitions=partitions,
        phases=tuple(phases),
        rounds=tuple(_rounds(history, window)),
        faults=tuple(faults),
        changes=tuple(changes),
        began_ms=window.began_ms,
        ended_ms=window.ended_ms,
        left_out={},
    )


class _Window:
    """What is drawn of a run's time."""

    def __init__(self, history: GroupHistory, began_ns: int, ended_ns: int) -> None:
        self._zero_ns = history.zero_ns
        self.began_ms, self.ended_ms = self.ms(began_ns), self.ms(ended_ns)

    def ms(self, ns: int) -> float:
        return (ns - self._zero_ns) / 1e6

    def cut(self, stretches: Iterable[_Stretch]) -> Iterator[_Stretch]:
        """The parts in the window."""
        for each in stretches:
            if each.from_ms < self.ended_ms and each.until_ms > self.began_ms:
                ends = {"from_ms": max(each.from_ms, self.began_ms), "until_ms": min(each.until_ms, self.ended_ms)}
                yield replace(each, **ends)

    def stretches(self, found: Iterable[tuple[int, int]]) -> tuple[Stretch, ...]:
        return tuple(self.cut(Stretch(self.ms(low), self.ms(high)) for low, high in found))


def _lives(member: MemberHistory, began_ns: int, ended_ns: int) -> bool:
    """The members without restarts, and those with an incarnation in the window."""
    return member.name == member.place or (
        bool(member.events) and member.events[0]["ns"] < ended_ns and member.events[-1]["ns"] > began_ns
    )


def _phases(window: _Window, member: MemberHistory) -> Iterator[Phase]:
    """A phase lasts until the next one or until the attempt ends."""
    phase: tuple[str, int] | None = None
    for event in member.events:
        if event["kind"] in ("phase_entered", "attempt_ended", "member_closed"):
            if phase is not None:
                yield Phase(window.ms(phase[1]), window.ms(event["ns"]), member.name, phase[0])
            phase = (str(event["phase"]), event["ns"]) if event["kind"] == "phase_entered" else None
    if phase is not None:
        yield Phase(window.ms(phase[1]), window.ms(member.events[-1]["ns"]), member.name, phase[0])


# -- partitions --------------------------------------------------------------------------------------------------------


def _partitions(history: GroupHistory, window: _Window) -> Iterator[PartitionView]:
    """The partitions of which something is seen in the window."""
    events = [(event["ns"], event) for event in history.events]
    end_ns = history.events[-1]["ns"]
    lines: defaultdict[Key, defaultdict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for each in ownership_of(events).intervals:
        lines[each.key][each.view].append(each)
    names, commits = history.names(), _commits(history, window)
    wanted = wanted_of(events).stretches(end_ns + 1)
    keys = sorted(lines, key=lambda key: (key.group, natural(key.topic), key.partition))
    several = len({key.group for key in keys}) > 1
    for key in keys:
        held = {view: held_until(lines[key][view], end_ns) for view in (AUTHORITY, BELIEVED, DELIVERING)}
        named, believed, delivering = (
            _holdings(window, names, lines[key][view], end_ns) for view in (AUTHORITY, BELIEVED, DELIVERING)
        )
        if named or believed or delivering:
            overlaps = window.stretches(overlaps_of(held[DELIVERING], history.tolerance_ns))
            yield PartitionView(
                name=f"{key.group}/{key.topic}-{key.partition}" if several else f"{key.topic}-{key.partition}",
                named=named,
                delivering=delivering,
                overlaps=tuple(_overlap(each, delivering) for each in overlaps),
                unnamed=window.stretches(gaps_of(held[AUTHORITY], wanted.get(key, ()))),
                unclaimed=window.stretches(gaps_of(held[BELIEVED], wanted.get(key, ()))),
                commits=tuple(
                    each for each in commits.get(key, ()) if window.began_ms <= each.at_ms <= window.ended_ms
                ),
            )


def _holdings(
    window: _Window, names: Mapping[str, str], intervals: Iterable[Interval], end_ns: int
) -> tuple[Holding, ...]:
    ends = ((each, end_ns if each.until_ns is None else each.until_ns) for each in intervals)
    found = (Holding(window.ms(each.from_ns), window.ms(until_ns), _name(names, each)) for each, until_ns in ends)
    return tuple(sorted(window.cut(found), key=lambda each: (each.from_ms, each.until_ms, each.member)))


def _name(names: Mapping[str, str], interval: Interval) -> str:
    """The member of a stream, or of the coordinator's member id, or of a thread's id."""
    if interval.unit is not None:
        return names.get(interval.unit.member, interval.unit.process)
    consumer, _, _ = interval.owner.rpartition("-")
    return names.get(interval.owner) or names.get(consumer) or consumer or interval.owner


def _overlap(stretch: Stretch, delivering: Iterable[Holding]) -> Overlap:
    who = (e.member for e in delivering if e.from_ms < stretch.until_ms and e.until_ms > stretch.from_ms)
    return Overlap(stretch.from_ms, stretch.until_ms, tuple(dict.fromkeys(who)))


def _commits(history: GroupHistory, window: _Window) -> Mapping[Key, list[Commit]]:
    names = history.names()
    found: defaultdict[Key, list[Commit]] = defaultdict(list)
    committed: dict[Key, int] = {}
    for event in history.events:
        if event["kind"] in _COMMITS:
            key = Key(event["group"], event["topic"], event["partition"])
            is_accepted = event["kind"] == _COMMITS[0]
            back = max(0, committed.get(key, 0) - event["offset"]) if is_accepted else 0
            found[key].append(_commit(window, names, event, back))
            if is_accepted:
                committed[key] = event["offset"]
    return found


def _commit(window: _Window, names: Mapping[str, str], event: Event, moved_back_by: int) -> Commit:
    return Commit(
        at_ms=window.ms(event["ns"]),
        member=names.get(str(event["by"]), str(event["by"])),
        offset=event["offset"],
        outcome=str(event["error"]) if event["kind"] == "offset_refused" else ACCEPTED,
        is_stale=False,
        moved_back_by=moved_back_by,
    )


# -- the run -----------------------------------------------------------------------------------------------------------


def _disturbances(history: GroupHistory, window: _Window) -> tuple[list[Fault], list[Change]]:
    """The faults that were healed, cut; and as moments what the runner changed, and the faults that were not."""
    begun: dict[tuple[str, str], int] = {}
    faults: list[Fault] = []
    moments: list[tuple[int, str]] = []
    for event in history.events:
        if event["kind"] == "change_started":
            moments.append((event["ns"], str(event["change"])))
        elif event["kind"] == "fault_started":
            begun[event["fault"], event["target"]] = event["ns"]
        elif event["kind"] == "fault_ended":
            what = str(event["fault"]), str(event["target"])
            began_ms, healed_ms = window.ms(begun.pop(what, event["ns"])), window.ms(event["ns"])
            if began_ms < window.ended_ms and healed_ms >= window.began_ms:
                ends = max(began_ms, window.began_ms), min(healed_ms, window.ended_ms)
                faults.append(Fault(*what, *ends))
    moments += [(ns, f"{fault} {target}".strip()) for (fault, target), ns in begun.items()]
    changes = [Change(what, window.ms(ns)) for ns, what in sorted(moments)]
    faults.sort(key=lambda fault: fault.from_ms)
    return faults, [each for each in changes if window.began_ms <= each.at_ms < window.ended_ms]


def _rounds(history: GroupHistory, window: _Window) -> Iterator[Round]:
    for each in history.rounds:
        from_ms, until_ms = window.ms(each.began_ns), window.ms(each.ended_ns)
        if from_ms < window.ended_ms and until_ms > window.began_ms:
            known = [rebalance.generation() for rebalance in each.rebalances]
            generation = max((number for number in known if number is not None), default=None)
            yield Round(number=each.number, from_ms=from_ms, until_ms=until_ms, generation=generation)
