"""Apply an increment to a snapshot, as a page does. Pure.

What this gives for a game's first snapshot and all of its increments is the game's last snapshot.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from comparison.playground import messages as m

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def applied(snapshot: m.Snapshot, increment: m.Increment) -> m.Snapshot:
    """The snapshot after an increment, which must be the next one."""
    assert increment.seq == snapshot.seq + 1, f"increment {increment.seq} after {snapshot.seq}"
    groups = {group.design: group for group in snapshot.groups}
    status = {}
    for change in increment.changes:
        if isinstance(change, m.StatusChanged):
            status = {name: getattr(change, name) for name in change.__struct_fields__}
        else:
            groups[change.design] = changed(groups[change.design], change, snapshot.limits)
    kept = tuple(without_old_intervals(group, increment.at_ms, snapshot.limits) for group in groups.values())
    return replace(snapshot, seq=increment.seq, at_ms=increment.at_ms, groups=kept, **status)


def changed(group: m.Group, change: m.AnyChange, limits: m.Limits) -> m.Group:
    """A group after one change."""
    match change:
        case m.MemberChanged():
            return replace(group, members=_put(group.members, change.member, _name))
        case m.PartitionChanged():
            return replace(group, partitions=_put(group.partitions, change.partition, _name))
        case m.CountersChanged():
            return replace(group, counters=change.counters)
        case m.ZnodesChanged():
            tree = {node.path: node for node in group.znodes} | {node.path: node for node in change.put}
            kept = (node for path, node in sorted(tree.items()) if path not in change.gone)
            return replace(group, znodes=tuple(kept))
        case m.CoordinatorChanged():
            return replace(group, coordinator=change.coordinator)
        case m.WaitingChanged():
            return replace(group, waiting=change.waiting)
        case m.Said():
            return replace(group, feed=(*group.feed, change.sentence)[-limits.feed :])
        case m.IntervalChanged():
            return replace(group, intervals=_put(group.intervals, change.interval, lambda each: each.id))
        case m.RateChanged():
            return replace(group, rate=change.rate)
        case m.StatusChanged():
            return group


def without_old_intervals(group: m.Group, at_ms: int, limits: m.Limits) -> m.Group:
    """A group without the intervals that ended long ago."""
    oldest = at_ms - limits.lanes_ms
    if all(each.to_ms is None or each.to_ms >= oldest for each in group.intervals):
        return group
    return replace(group, intervals=tuple(i for i in group.intervals if i.to_ms is None or i.to_ms >= oldest))


def natural(name: str) -> list[tuple[str, int]]:
    """Sort m2 before m10, and orders-2 before orders-10."""
    return [(head, int(number or 0)) for head, number in re.findall(r"(\D*)(\d*)", name)]


def _name(each: m.Member | m.Partition) -> list[tuple[str, int]]:
    return natural(each.name)


def _put(known: Iterable[T], new: T, key: Callable[[T], object]) -> tuple[T, ...]:
    """Replace the element with the same key, or insert the new one in its place."""
    by_key = [(key(each), each) for each in known]
    others = [pair for pair in by_key if pair[0] != key(new)]
    return tuple(each for _, each in sorted([*others, (key(new), new)], key=lambda pair: pair[0]))  # type: ignore[arg-type,return-value]  # all keys of one call are of one type
