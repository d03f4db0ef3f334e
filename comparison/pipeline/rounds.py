"""What the group did as a whole: its rounds, who was waited for in each, and how long members' phases took.

A *round* is one rebalance of the group. A coordinator counts them itself: from the moment it begins to prepare a
generation until that generation's assignment is stored. Where nobody coordinates, a round is a stretch in which
members rebalance without a break between them: whoever was told a little later belongs to the same one.

In a coordinator's round everybody waits until the last member has come, or has been given up. Plain Python.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from comparison.pipeline.rebalances import WHOLE
from comparison.pipeline.result import Phase, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Row

_NS_PER_MS = 1_000_000
#: The states of a group that a round goes through, by Kafka's names.
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


@dataclass(frozen=True, slots=True)
class Round:
    """One rebalance of the group; `gathered_ns` is when its generation began, with everybody who had come by then."""

    from_ns: int
    until_ns: int | None
    gathered_ns: int | None = None
    generation: int | None = None


def phase_times(phases: Iterable[Row]) -> list[Phase]:
    """How long members were in each phase, by its name."""
    lasted: defaultdict[str, list[int]] = defaultdict(list)
    for row in phases:
        lasted[row.phase].append(row.until_ns - row.from_ns)
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


def rounds_of(group: Sequence[Row], phases: Sequence[Row]) -> list[Round]:
    """The rounds, in order: the coordinator's generations if there is one, stretches of members' rebalances if not.

    `group`: what a coordinator told of the group, in order.
    """
    changed = [row for row in group if row.kind == "group_changed"]
    return _generations(changed) if changed else _stretches(phases)


def _generations(changed: Sequence[Row]) -> list[Round]:
    found: list[Round] = []
    open_: dict[str, Round] = {}
    for row in changed:
        now = open_.get(row.group)
        if row.state == PREPARING and (now is None or now.gathered_ns is not None):
            if now is not None:  # begun again before its assignment was stored
                found.append(replace(now, until_ns=row.t_ns))
            open_[row.group] = Round(row.t_ns, None)
        elif row.state == COMPLETING:
            begun = open_.get(row.group, Round(row.t_ns, None))
            open_[row.group] = replace(begun, gathered_ns=row.t_ns, generation=row.generation)
        elif row.state not in (PREPARING, COMPLETING) and now is not None:
            del open_[row.group]
            if now.gathered_ns is not None:
                found.append(replace(now, until_ns=row.t_ns if row.state == STABLE else None))
    found += [each for each in open_.values() if each.gathered_ns is not None]
    return sorted(found, key=lambda each: each.from_ns)


def _stretches(phases: Iterable[Row]) -> list[Round]:
    found: list[Round] = []
    for row in sorted((row for row in phases if row.phase == WHOLE), key=lambda row: row.from_ns):
        if found and row.from_ns <= (found[-1].until_ns or 0):
            found[-1] = replace(found[-1], until_ns=max(found[-1].until_ns or 0, row.until_ns))
        else:
            found.append(Round(row.from_ns, row.until_ns))
    return found


def waits_of(rounds: Iterable[Round], group: Iterable[Row], phases: Sequence[Row]) -> list[Wait]:
    """For every generation that others had to wait for: for whom, and how long.

    Whoever enters the phase `join` last is waited for; or whoever was given up, or left, after everybody else had
    come.
    """
    joins = [row for row in phases if row.phase == "join"]
    process_of = {row.member: row.process for row in phases if row.member}
    left = [row for row in group if row.kind == "group_member_left"]
    gathered = [each for each in rounds if each.gathered_ns is not None]
    return [wait for each in gathered if (wait := _wait(each, joins, left, process_of)) is not None]


def _wait(each: Round, joins: Iterable[Row], left: Iterable[Row], process_of: Mapping[str, str]) -> Wait | None:
    assert each.gathered_ns is not None
    came: dict[tuple[str, str], int] = {}
    for row in joins:
        if row.from_ns <= each.gathered_ns and row.until_ns >= each.from_ns:
            # One that asks twice (the first time it is handed its id) came when it asked first.
            key = (row.process, "" if row.member is None else row.member)
            came[key] = min(row.from_ns, came.get(key, row.from_ns))
    if not came:
        return None
    (last, _), last_ns = max(came.items(), key=lambda item: item[1])
    gone = [row for row in left if last_ns < row.t_ns <= each.gathered_ns and each.from_ns <= row.t_ns]
    if gone:
        last_ns, last = gone[-1].t_ns, process_of.get(gone[-1].id, gone[-1].id)
    waited = [last_ns - max(ns, each.from_ns) for (process, _), ns in came.items() if process != last]
    if not waited:
        return None
    return Wait(
        generation=each.generation,
        from_ms=round(each.from_ns / _NS_PER_MS, 3),
        waited_for=last,
        gone=bool(gone),
        waiting=len(waited),
        longest_ms=round(max(0, *waited) / _NS_PER_MS, 3),
        total_ms=round(sum(max(0, ns) for ns in waited) / _NS_PER_MS, 3),
    )


def deciders(phases: Iterable[Row]) -> list[tuple[int, str]]:
    """(when, process): who computed an assignment, in order; in the broker designs that is the group's leader."""
    return sorted((row.from_ns, row.process) for row in phases if row.phase == "decide")
