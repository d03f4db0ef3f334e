"""The members that delayed a coordinator's rounds, and how long members' phases took; plain Python.

In a coordinator's round all members wait until the last one has joined or been removed.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from comparison.pipeline.measured import GroupMemberLeft, ProcessEnded
from comparison.results.run import Phase, Wait
from kernel.clock import in_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.pipeline.measured import Measured, MemberPhase, Round

#: If a generation begins this long after the last join, the group was waiting for another member.
_LATE_NS = 200_000_000

#: One row a member at the barrier of a coordinator's round; whoever never came has no `joined_ns`.
WAIT_SCHEMA = pa.schema(
    [
        ("round", pa.int64()),
        ("group", pa.string()),
        ("process", pa.string()),
        ("member", pa.string()),
        ("joined_ns", pa.int64()),
        ("waited_ns", pa.int64()),
        ("is_waited_for", pa.bool_()),
    ]
)


def phase_times(phases: Iterable[MemberPhase]) -> list[Phase]:
    """How long members spent in each phase."""
    lasted: defaultdict[str, list[int]] = defaultdict(list)
    for each in phases:
        lasted[each.phase].append(each.until_ns - each.from_ns)
    return [
        Phase(
            phase=phase,
            n=len(times),
            median_ms=in_ms(median(times)),
            max_ms=in_ms(max(times)),
            total_ms=in_ms(sum(times)),
        )
        for phase, times in sorted(lasted.items())
    ]


def waits_of(measured: Measured) -> list[Wait]:
    """Which member each generation waited for, and how long.

    That is the last one to enter the phase `join`; or one that left or was removed after all others had joined; or one
    that did not join before the rebalance timeout and stayed in the group (as static members do).
    """
    return [wait for _, barrier in _barriers(measured) if (wait := _wait(barrier))]


def wait_table(measured: Measured) -> pa.Table:
    """Every member at every barrier: WAIT_SCHEMA."""
    rows: list[dict[str, Any]] = []
    for number, barrier in _barriers(measured):
        of_round = {"round": number, "group": barrier.of.group}
        for (process, member), joined_ns in barrier.came.items():
            waited = 0 if process == barrier.waited_for else barrier.waited_ns(joined_ns)
            rows.append(
                {
                    **of_round,
                    "process": process,
                    "member": member or None,
                    "joined_ns": joined_ns,
                    "waited_ns": waited,
                    "is_waited_for": process == barrier.waited_for,
                }
            )
        if barrier.waited_for not in {process for process, _ in barrier.came}:
            absent = {"process": barrier.waited_for, "member": None, "joined_ns": None, "waited_ns": 0}
            rows.append({**of_round, **absent, "is_waited_for": True})
    return pa.Table.from_pylist(rows, WAIT_SCHEMA)


class _Barrier(NamedTuple):
    """A coordinator's round, from its begin until all had joined or been removed."""

    of: Round
    came: Mapping[tuple[str, str], int]  #: when each (process, member) joined
    waited_for: str
    gone: bool  #: who never joined
    last_ns: int  #: when nobody had to be waited for any more
    waiting: int

    def waited_ns(self, joined_ns: int) -> int:
        return max(0, self.last_ns - max(joined_ns, self.of.from_ns))


def _barriers(measured: Measured) -> Iterator[tuple[int, _Barrier]]:
    """The numbers of the rounds that have a barrier, with it."""
    ended = {event.target: event.t_ns for event in measured.runner if isinstance(event, ProcessEnded)}
    left = [event for event in measured.group if isinstance(event, GroupMemberLeft)]
    has_barriers = any(each.gathered_ns is not None for each in measured.rounds)
    members = _Members(measured.phases if has_barriers else (), left, ended)
    for number, each in enumerate(measured.rounds):
        if (barrier := members.barrier(each)) is not None:
            yield number, barrier


def _wait(barrier: _Barrier) -> Wait | None:
    waited = [barrier.waited_ns(ns) for (process, _), ns in barrier.came.items() if process != barrier.waited_for]
    if not waited or barrier.waiting < 1:
        return None
    return Wait(
        generation=barrier.of.generation,
        from_ms=in_ms(barrier.of.from_ns),
        waited_for=barrier.waited_for,
        gone=barrier.gone,
        waiting=barrier.waiting,
        longest_ms=in_ms(max(waited)),
        total_ms=in_ms(sum(waited)),
    )


class _Members:
    """What the trace shows about one run's members; `ended` has the end of each process that ended."""

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

    def barrier(self, each: Round) -> _Barrier | None:
        """None without a coordinator, and where nobody joined."""
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
        # A removed member is not counted among the members; a static one still is.
        return _Barrier(each, came, name, gone, last_ns, each.members - (0 if left else 1))

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
