"""Which lanes stand opposite each other in several runs: first those of the partitions that a victim had.

A partition of the same name belongs to somebody else in another design. What a fault or a change did to its target is
compared with what it did to the target elsewhere: with the partitions that the target had when it began. Where several
members were targets in turn, each has a group: what it had when the first of it began.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.view.naming import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.report.view.model import PartitionView, RunView

#: Of so many targets each has a group.
TARGETS_MAX = 6
#: The group of the only target, whichever it is in each run, and that of the partitions that no target had.
VICTIM, OTHERS = "victim", "others"


class LaneGroup(NamedTuple):
    """Lanes below each other, headed by whose they were."""

    key: str  #: groups with the same key are opposite each other: VICTIM, OTHERS, or one of several targets
    heading: str
    what: str  #: the fault or change, when they were the heading's
    lanes: Sequence[PartitionView]
    heights: Sequence[int] = ()  #: of each lane and behind them, in pixels: as much as the run opposite needs


def lane_groups(view: RunView) -> list[LaneGroup]:
    """The partitions of the only target first, and then the others'; those of several targets by their owners."""
    targets = _targets(view)
    if not 1 <= len(targets) <= TARGETS_MAX:
        return [LaneGroup(OTHERS, "", "", view.partitions)]
    what, at_ms = next(iter(targets.values()))
    found = []
    for process in targets:
        mine = [lane for lane in view.partitions if _of_process(owner_at(lane, at_ms), view.places, process)]
        found.append(LaneGroup(process if len(targets) > 1 else VICTIM, f"{process}’s", what, mine))
    taken = {id(lane) for group in found for lane in group.lanes}
    others = [lane for lane in view.partitions if id(lane) not in taken]
    return [*found, LaneGroup(OTHERS, OTHERS, "", others)]


def opposite(runs: Sequence[Sequence[LaneGroup]], heights: Mapping[int, int]) -> list[list[LaneGroup]]:
    """The groups of each run with the heights that let the lanes of all runs stand opposite each other.

    `heights` has what each lane needs, by its identity.
    """
    keys = [key for key in dict.fromkeys(group.key for groups in runs for group in groups) if key != OTHERS]
    columns = [{group.key: group for group in groups} for groups in runs]
    found: list[list[LaneGroup]] = [[] for _ in runs]
    for key in (*keys, OTHERS):
        row = [groups.get(key, LaneGroup(key, "", "", ())) for groups in columns]
        tallest = [max(each) for each in zip_longest(*(_needed(group, heights) for group in row), fillvalue=0)]
        if tallest:
            for groups_so_far, group in zip(found, row, strict=True):
                groups_so_far.append(group._replace(heights=tallest))
    return found


def _needed(group: LaneGroup, heights: Mapping[int, int]) -> list[int]:
    return [heights[id(lane)] for lane in group.lanes]


def owner_at(lane: PartitionView, at_ms: float) -> str:
    """The member that the authority names at a moment, or, if it names nobody, that delivered last before it."""
    named = [each.member for each in lane.named if each.from_ms <= at_ms <= each.until_ms]
    delivered = [each.member for each in lane.delivering if each.from_ms <= at_ms]
    return next(iter(named), "") or (delivered[-1] if delivered else "")


def _targets(view: RunView) -> Mapping[str, tuple[str, float]]:
    """The processes of members to which something was done: what it was first, and when."""
    found: dict[str, tuple[str, float]] = {}
    for at_ms, target, what in sorted(_done(view)):
        process = place_of(target)
        if any(_is_of(place, process) for place in view.lanes):
            found.setdefault(process, (what, at_ms))
    return found


def _done(view: RunView) -> Iterator[tuple[float, str, str]]:
    yield from ((each.from_ms, each.target, each.fault) for each in view.faults)
    yield from ((each.at_ms, each.target, each.name) for each in view.changes)


def _of_process(member: str, places: Mapping[str, str], process: str) -> bool:
    return bool(member) and _is_of(places.get(member, member), process)


def _is_of(place: str, process: str) -> bool:
    """Whether a lane's member is of a process: m4, or m4-1 of its streams."""
    return place == process or place.startswith(f"{process}-")


def in_words(groups: Sequence[LaneGroup]) -> str:
    """`first the partitions that were m3’s when the kill began`; '' without a target."""
    targets = [group for group in groups if group.key != OTHERS]
    if not targets:
        return ""
    if targets[0].key == VICTIM:
        return f"first the partitions that were {targets[0].heading} when the {targets[0].what} began"
    return f"by whose the partitions were when the first {targets[0].what} began"
