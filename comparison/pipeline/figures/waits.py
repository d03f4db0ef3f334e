"""The members that delayed a coordinator's rounds, and how long members' phases took; plain Python.

In a coordinator's round all members wait until the last one has joined or been removed.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from comparison.pipeline.measured import GroupMemberLeft
from comparison.pipeline.result import Phase, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.measured import GroupEvent, MemberPhase, Round

_NS_PER_MS = 1_000_000
#: If a generation begins this long after the last join, the group was waiting for another member.
_LATE_NS = 200_000_000


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
        self._named = sorted((each.from_ns, each.member, each.process) for each in phases if each.member)
        self._first_ns: dict[tuple[str, str], int] = {}
        for each in phases:
            place = each.group, each.process
            self._first_ns[place] = min(each.from_ns, self._first_ns.get(place, each.from_ns))

    def wait(self, each: Round) -> Wait | None:
        if each.gathered_ns is None:
            return None
        came = self._came(each, each.gathered_ns)
        if not came:
            return None
        last, last_ns = max(came.items(), key=lambda item: item[1])
        name, gone = last[0], False
        left = [
            event
            for event in self._left
            if event.group == each.group and max(last_ns, each.from_ns - 1) < event.t_ns <= each.gathered_ns
        ]
        if left:
            name, gone, last_ns = self._process_of(left[-1]), True, left[-1].t_ns
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

    def _process_of(self, left: GroupMemberLeft) -> str:
        """Whose the member was; of several processes that had the id, the last one before."""
        had = [process for from_ns, member, process in self._named if member == left.id and from_ns <= left.t_ns]
        return had[-1] if had else left.id

    def _came(self, each: Round, gathered_ns: int) -> dict[tuple[str, str], int]:
        """When each (process, member) joined; of two requests, the first."""
        came: dict[tuple[str, str], int] = {}
        for join in self._joins:
            if join.group == each.group and join.from_ns <= gathered_ns and join.until_ns >= each.from_ns:
                key = (join.process, join.member or "")
                came[key] = min(join.from_ns, came.get(key, join.from_ns))
        return came

    def _missing(self, each: Round, came: Iterable[tuple[str, str]]) -> list[str]:
        """Processes that had members before the round, none of which joined."""
        there = {
            process
            for (group, process), first_ns in self._first_ns.items()
            if group == each.group and first_ns < each.from_ns < self._ended.get(process, each.from_ns + 1)
        }
        return sorted(there - {process for process, _ in came})


def deciders(phases: Iterable[MemberPhase]) -> list[tuple[int, str]]:
    """(when, process) of each computed assignment, in order; in the broker designs the process is the leader."""
    return sorted((each.from_ns, each.process) for each in phases if each.phase == "decide")
