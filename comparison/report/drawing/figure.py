"""One run's picture: its blocks from top to bottom, and the same in words for a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.course import TICKS_FEW, TICKS_MAX, axis, course, phases
from comparison.report.drawing.lane_groups import in_words
from comparison.report.drawing.lanes import partition_lanes
from comparison.report.drawing.member_lanes import member_lanes
from comparison.report.drawing.panel import Panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.drawing.lane_groups import LaneGroup
    from comparison.report.drawing.layout import Block
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import PartitionView, RunView, Stretch

#: Entries of a cell of the table, fewer where fewer bars are drawn; all of them are in the analysis's tables.
CELL_MIN, CELL_MAX, MARKS_AN_ENTRY = 6, 40, 6
_FEW_MARKS = 300
HEADINGS = ("partition", "named", "delivers", "two deliver", "owned by nobody", "commits")


class Figure(NamedTuple):
    """A run's blocks and table; `remarks` say what was left out."""

    view: RunView
    blocks: Sequence[Block]
    rows: Sequence[Sequence[str]]
    order: str  #: of the lanes, in words; '' if it is the partitions'
    remarks: Sequence[str]


def figure(
    view: RunView, scale: Scale, styles: Mapping[str, str], marks_max: int, groups: Sequence[LaneGroup] = ()
) -> Figure:
    """`marks_max` bars at most are drawn in a block; the lanes are in these groups, or in the partitions' order."""
    panel = Panel(view, scale, styles, marks_max)
    lanes, joined = partition_lanes(panel, groups)
    members, _ = member_lanes(panel)
    phase_block, joined_phases = phases(panel)
    blocks = [
        course(panel),
        lanes,
        members,
        phase_block,
        axis(panel, TICKS_MAX if marks_max > _FEW_MARKS else TICKS_FEW),
    ]
    return Figure(
        view=view,
        blocks=[block for block in blocks if block.height],
        rows=[_row(lane, scale, max(CELL_MIN, min(CELL_MAX, marks_max // MARKS_AN_ENTRY))) for lane in view.partitions],
        order=in_words(groups),
        remarks=list(_remarks(view, joined, joined_phases)),
    )


def _remarks(view: RunView, joined: int, joined_phases: int) -> Iterable[str]:
    if joined:
        yield f"{joined:,} of the shortest stretches are drawn together in grey"
    if joined_phases:
        yield f"{joined_phases:,} of the shortest phases are drawn together in grey"
    if view.left_out:
        rows = ", ".join(f"{count:,} of {name}" for name, count in view.left_out.items())
        yield f"rows left out here, and kept in tables/: {rows}"
    if view.full_names:
        names = ", ".join(f"{short} is {name}" for short, name in view.full_names.items())
        yield f"names shortened: {names}"


def _row(lane: PartitionView, scale: Scale, most: int) -> list[str]:
    """`most` entries at most in a cell."""
    accepted = sum(each.is_accepted for each in lane.commits)
    commits = [f"{accepted} accepted"] if accepted else []
    for each in lane.commits:
        what = f"at {scale.seconds(each.at_ms):.2f} {each.member} commits {each.offset}"
        if not each.is_accepted:
            commits.append(f"{what}: refused, {each.outcome}")
        elif each.moved_back_by:
            commits.append(f"{what}: moved back by {each.moved_back_by}")
    return [
        lane.name,
        _cell((f"{each.member} {_span(each, scale)}" for each in lane.named), most),
        _cell((f"{each.member} {_span(each, scale)}" for each in lane.delivering), most),
        _cell((f"{' and '.join(each.members)} {_span(each, scale)}" for each in lane.overlaps), most),
        _cell((_span(each, scale) for each in lane.unclaimed), most),
        _cell(commits, most),
    ]


def _span(stretch: Stretch, scale: Scale) -> str:
    return f"{scale.seconds(stretch.from_ms):.2f}…{scale.seconds(stretch.until_ms):.2f}"


def _cell(entries: Iterable[str], most: int) -> str:
    entries = list(entries)
    more = [f"and {len(entries) - most} more"] if len(entries) > most else []
    return "; ".join(entries[:most] + more)
