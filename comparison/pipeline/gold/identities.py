"""Whether the members of a run can be distinguished: who used which id, and when.

A member id that one process uses after another is no problem, because everything that members do is distinguished by
process as well. But the authority names ids only: while two processes use one in the same group, nobody can say whose a
commit or a partition is. Nor can anybody say what a member did that names no group in a run with several.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from comparison.ownership.groups import UNKNOWN
from comparison.pipeline.gold.cover import Ranges, overlaps_of, segments_of, united
from comparison.pipeline.silver.arrays import codes, integers, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from comparison.pipeline.silver.context import Context


class Use(NamedTuple):
    """A process used a member id in a group, in [from_ns, until_ns)."""

    group: str
    member: str
    process: str
    from_ns: int
    until_ns: int


def uses_of(intervals: pa.Table, context: Context) -> list[Use]:
    """Who used which id, as intervals of members' views show it (INTERVAL_SCHEMA), in as few pieces as possible."""
    end_ns = context.span.end_ns
    groups, group_names = codes(intervals["group"])
    owners, owner_names = codes(intervals["owner"])
    _, first, numbers = np.unique(together(groups, owners), return_index=True, return_inverse=True)
    highs = np.minimum(integers(intervals["until_ns"], null=end_ns), end_ns)
    pieces = united(Ranges(numbers, integers(intervals["from_ns"]), highs).not_empty())
    who = [(str(group_names[groups[row]]), *_member_of(str(owner_names[owners[row]]))) for row in first.tolist()]
    return [Use(*who[number], low, high) for number, low, high in _rows(pieces) if who[number][1]]


def _member_of(owner: str) -> tuple[str, str]:
    """Member and process of `process/member/stream`."""
    process, _, rest = owner.partition("/")
    return rest.rpartition("/")[0], process


def _rows(ranges: Ranges) -> Iterable[tuple[int, int, int]]:
    return zip(ranges.keys.tolist(), ranges.lows.tolist(), ranges.highs.tolist(), strict=True)


def mistakable(uses: Iterable[Use], groupless: Iterable[str], context: Context) -> list[str]:
    """Why nobody can say who did what; `groupless` are the processes that did something in no known group."""
    by_id: defaultdict[tuple[str, str], list[Use]] = defaultdict(list)
    for each in (*uses, *(Use(*astuple(life)) for life in context.lives)):
        by_id[each.group, each.member].append(each)
    found = []
    for (group, member), several in sorted(by_id.items()):
        if processes := _at_once(several, context.tolerance_ns):
            found.append(f"{_listed(processes)} used the member id {member} of the group {group} at the same time")
    several_groups = _listed(context.memberships.names)
    found += [f"{process} does not say in which of the groups {several_groups} it is" for process in sorted(groupless)]
    return found


def _at_once(uses: Sequence[Use], tolerance_ns: int) -> list[str]:
    """The processes that used an id while another one did, by more than the tolerance."""
    processes = sorted({each.process for each in uses})
    if len(processes) < 2:
        return []
    used = np.array([(processes.index(each.process), each.from_ns, each.until_ns) for each in uses], dtype=np.int64).T
    by_process = united(Ranges(*used).not_empty())
    held = Ranges(np.zeros_like(by_process.keys), by_process.lows, by_process.highs)
    overlaps = overlaps_of(segments_of(held, Ranges.none()), tolerance_ns)
    return [
        processes[number]
        for number in np.unique(by_process.keys).tolist()
        for mine in [by_process.keys == number]
        if any(
            ((by_process.lows[mine] < high) & (by_process.highs[mine] > low)).any()
            for low, high in zip(overlaps.lows[overlaps.counts], overlaps.highs[overlaps.counts], strict=True)
        )
    ]


def groupless(tables: Iterable[pa.Table], context: Context) -> set[str]:
    """The processes of rows in no known group, though there are several; tables have the group and the process."""
    if len(context.memberships.names) < 2:
        return set()
    unknown = [table["process"].filter(pc.equal(table["group"], UNKNOWN)) for table in tables]
    return {process for processes in unknown for process in pc.unique(processes).to_pylist()}


def _listed(names: Sequence[str]) -> str:
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last
