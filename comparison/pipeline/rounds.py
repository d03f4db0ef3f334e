"""The rounds of a whole group, the members that delayed them, and how long the members' phases took.

A *round* is one rebalance of the group. Under a coordinator it lasts from the moment that the coordinator prepares a
generation until that generation's assignment is stored. Without one, members' overlapping rebalances form a round, so
that a member that is notified a little later belongs to the same round.

In a coordinator's round all members wait until the last one has joined or been removed. Plain Python.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from comparison.pipeline.measured import GroupChanged, GroupMemberLeft, Round
from comparison.pipeline.rebalances import WHOLE
from comparison.pipeline.result import Phase, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.measured import GroupEvent, MemberPhase

_NS_PER_MS = 1_000_000
#: If a generation begins this long after the last join, the group was waiting for another member.
_LATE_NS = 200_000_000
#: The states of a group that a round goes through, by Kafka's names.
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


def phase_times(phases: Iterable[MemberPhase]) -> list[Phase]:
    """How long members spent in each phase."""
    lasted: defaultdict[str, list[int]] = defaultdict(list)
    for each in phases:
        lasted[each.phase].append(each.until_ns - each.from_ns)
    return [
        Phase(
            phase=phase,
            n=len(times),
            median_ms=round(median(times) / _NS_PER_MS, 3),
            max_ms=round(max(times) / _NS_PER_MS, 3),
            total_ms=round(sum(times) / _NS_PER_MS, 3),
        )
        for phase, times in sorted(lasted.items())
    ]


def rounds_of(group: Sequence[GroupEvent], phases: Sequence[MemberPhase]) -> list[Round]:
    """The rounds in order: a coordinator's generations, or overlapping rebalances of members without a coordinator."""
    changed = [event for event in group if isinstance(event, GroupChanged)]
    return _generations(changed) if changed else _stretches(phases)


def _generations(changed: Sequence[GroupChanged]) -> list[Round]:
    found: list[Round] = []
    open_: dict[str, Round] = {}
    for event in changed:
        now = open_.get(event.group)
        if event.state == PREPARING and (now is None or now.gathered_ns is not None):
            if now is not None:  # restarted before its assignment was stored
                found.append(replace(now, until_ns=event.t_ns))
            open_[event.group] = Round(event.t_ns, None)
        elif event.state == COMPLETING:
            begun = open_.get(event.group, Round(event.t_ns, None))
            open_[event.group] = replace(
                begun, gathered_ns=event.t_ns, generation=event.generation, members=event.members
            )
        elif event.state not in (PREPARING, COMPLETING) and now is not None:
            del open_[event.group]
            if now.gathered_ns is not None:
                found.append(replace(now, until_ns=event.t_ns if event.state == STABLE else None))
    found += [each for each in open_.values() if each.gathered_ns is not None]
    return sorted(found, key=lambda each: each.from_ns)


def _stretches(phases: Iterable[MemberPhase]) -> list[Round]:
    found: list[Round] = []
    for each in sorted((each for each in phases if each.phase == WHOLE), key=lambda each: each.from_ns):
        if found and each.from_ns <= (found[-1].until_ns or 0):
            found[-1] = replace(found[-1], until_ns=max(found[-1].until_ns or 0, each.until_ns))
        else:
            found.append(Round(each.from_ns, each.until_ns))
    return found


def waits_of(
    rounds: Iterable[Round], group: Iterable[GroupEvent], phases: Sequence[MemberPhase], ended: Mapping[str, int]
) -> list[Wait]:
    """Which member each generation waited for, and how long.

    That is the last one to enter the phase `join`; or one that left or was removed after all others had joined; or one
    that did not join before the rebalance timeout and stayed in the group (as static members do). `ended` has the end
    of each process that ended.
    """
    members = _Members(phases, [event for event in group if isinstance(event, GroupMemberLeft)], ended)
    return [wait for each in rounds if (wait := members.wait(each)) is not None]


class _Members:
    """What the trace shows about one run's members."""

    def __init__(
        self, phases: Sequence[MemberPhase], left: Sequence[GroupMemberLeft], ended: Mapping[str, int]
    ) -> None:
        self._joins = [each for each in phases if each.phase == "join"]
        self._left = left
        self._ended = ended
        self._process_of = {each.member: each.process for each in phases if each.member}
        self._first_ns: dict[str, int] = {}
        for each in phases:
            self._first_ns[each.process] = min(each.from_ns, self._first_ns.get(each.process, each.from_ns))

    def wait(self, each: Round) -> Wait | None:
        if each.gathered_ns is None:
            return None
        came = self._came(each, each.gathered_ns)
        if not came:
            return None
        last, last_ns = max(came.items(), key=lambda item: item[1])
        name, gone = last[0], False
        left = [event for event in self._left if max(last_ns, each.from_ns - 1) < event.t_ns <= each.gathered_ns]
        if left:
            name, gone, last_ns = self._process_of.get(left[-1].id, left[-1].id), True, left[-1].t_ns
        elif each.gathered_ns - last_ns > _LATE_NS and (missing := self._missing(each, came)):
            name, gone, last_ns = missing[0], True, each.gathered_ns
        waited = [max(0, last_ns - max(ns, each.from_ns)) for (process, _), ns in came.items() if process != name]
        # A removed member is not counted among the members; a static one still is.
        waiting = each.members - (0 if left else 1)
        if not waited or waiting < 1:
            return None
        return Wait(
            generation=each.generation,
            from_ms=round(each.from_ns / _NS_PER_MS, 3),
            waited_for=name,
            gone=gone,
            waiting=waiting,
            longest_ms=round(max(waited) / _NS_PER_MS, 3),
            total_ms=round(sum(waited) / _NS_PER_MS, 3),
        )

    def _came(self, each: Round, gathered_ns: int) -> dict[tuple[str, str], int]:
        """When each (process, member) joined; of two requests, the first."""
        came: dict[tuple[str, str], int] = {}
        for join in self._joins:
            if join.from_ns <= gathered_ns and join.until_ns >= each.from_ns:
                key = (join.process, join.member or "")
                came[key] = min(join.from_ns, came.get(key, join.from_ns))
        return came

    def _missing(self, each: Round, came: Iterable[tuple[str, str]]) -> list[str]:
        """Processes that had members before the round, none of which joined."""
        there = {
            process
            for process, first_ns in self._first_ns.items()
            if first_ns < each.from_ns < self._ended.get(process, each.from_ns + 1)
        }
        return sorted(there - {process for process, _ in came})


def deciders(phases: Iterable[MemberPhase]) -> list[tuple[int, str]]:
    """(when, process) of each computed assignment, in order; in the broker designs the process is the leader."""
    return sorted((each.from_ns, each.process) for each in phases if each.phase == "decide")
