"""Apply an increment to a snapshot, as a page does. Pure.

What this gives for a game's first snapshot and all of its increments is the game's last snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground import messages
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable


def applied(snapshot: messages.Snapshot, increment: messages.Increment) -> messages.Snapshot:
    """The snapshot after an increment, which must be the next one."""
    assert increment.seq == snapshot.seq + 1, f"increment {increment.seq} after {snapshot.seq}"
    status: dict[str, object] = {}
    changes: dict[str, list[messages.AnyChange]] = {}
    for change in increment.changes:
        if isinstance(change, messages.StatusChanged | messages.SimulationChanged):
            status |= {name: getattr(change, name) for name in change.__struct_fields__}
        else:
            changes.setdefault(change.design, []).append(change)
    groups = tuple(
        changed(group, changes.get(group.design, ()), increment.at_ms, snapshot.limits) for group in snapshot.groups
    )
    return replace(snapshot, seq=increment.seq, at_ms=increment.at_ms, groups=groups, **status)


def changed(
    group: messages.Group, changes: Iterable[messages.AnyChange], at_ms: int, limits: messages.Limits
) -> messages.Group:
    """A group after its changes, without the intervals that ended long ago."""
    members = {each.name: each for each in group.members}
    partitions = {each.name: each for each in group.partitions}
    znodes = {each.path: each for each in group.znodes}
    intervals = {each.id: each for each in group.intervals}
    feed = list(group.feed)
    single: dict[str, object] = {}
    for change in changes:
        match change:
            case messages.MemberChanged():
                members[change.member.name] = change.member
            case messages.PartitionChanged():
                partitions[change.partition.name] = change.partition
            case messages.ZnodesChanged():
                znodes |= {each.path: each for each in change.put}
                for path in change.gone:
                    znodes.pop(path, None)
            case messages.Said():
                feed.append(change.sentence)
            case messages.IntervalChanged():
                intervals[change.interval.id] = change.interval
            case messages.StatusChanged() | messages.SimulationChanged():
                pass
            case _:
                single |= {name: getattr(change, name) for name in change.__struct_fields__ if name != "design"}
    oldest = at_ms - limits.lanes_ms
    return replace(
        group,
        members=tuple(members[name] for name in sorted(members, key=natural)),
        partitions=tuple(partitions[name] for name in sorted(partitions, key=natural)),
        znodes=tuple(znodes[path] for path in sorted(znodes)),
        intervals=tuple(each for _, each in sorted(intervals.items()) if each.to_ms is None or each.to_ms >= oldest),
        feed=tuple(feed[-limits.feed :]),
        **single,
    )
