"""Ownership lanes: a lane a partition, with two truths in it.

The upper bar is whom the authority names, the lower ones are who delivers: a gap is hatched, two members that deliver
at once are marked in red with both names. Below them are the commits as the authority answered them.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from comparison.report.drawing.lane_groups import OTHERS, LaneGroup
from comparison.report.drawing.layout import (
    COMMITS,
    DELIVERS,
    HEADING,
    NAMED,
    OVERLAP,
    USUAL_WIDTH,
    Area,
    Bar,
    Bars,
    Block,
    Group,
    Label,
    Row,
    Strip,
    packed,
)
from comparison.report.drawing.panel import disturbances

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import Commit, Overlap, PartitionView, RunView, Stretch

#: More members than these at once share the last row.
ROWS_MAX = 3
#: A share of the width.
HATCHED_MIN = 0.012
_TICKS, _GAP = 8, 3
#: With fewer bars than this, ticks are at least such a share of the width apart.
_FEW_MARKS, _TICKS_APART = 100, 0.005
#: Lanes become lower when there are more of them than this.
_MANY = 14


def partition_lanes(panel: Panel, groups: Sequence[LaneGroup] = (), *, names_cut: bool = True) -> tuple[Block, int]:
    """The block, and how many stretches were too many to be drawn one by one; in these groups, or in their order."""
    view, scale = panel.view, panel.scale
    overlaps = sum(len(lane.overlaps) for lane in view.partitions)
    title = (
        f"Ownership of {len(view.partitions)} partitions in {view.design}: above, whom {view.authority} names; below, "
        f"who delivers. {overlaps or 'No'} overlap{'' if overlaps == 1 else 's'} of two members delivering. "
        "The table below says the same."
    )
    block, bars = Block("partitions", title, behind=list(disturbances(panel))), Bars(scale)
    for group in groups or [LaneGroup(OTHERS, "", "", view.partitions)]:
        if len(groups) > 1:
            block.groups.append(Group(group.heading if group.lanes else "", block.height))
            block.height += HEADING
        for lane, height in zip_longest(group.lanes, group.heights):
            top = block.height
            if lane is not None:
                _Lane(panel, lane, _bar_height(view)).lay(block, bars, names_cut=names_cut)
            block.height = max(block.height, top + (height or 0))
            block.edges.append(block.height)
    return block, bars.laid_into(block, panel.marks_max)


def lane_heights(view: RunView) -> dict[int, int]:
    """How many pixels the lane of each partition needs, by its identity."""
    return {id(lane): _height(lane, _bar_height(view)) for lane in view.partitions}


def _height(lane: PartitionView, bar: int) -> int:
    rows = 1 + max(packed(_times(lane.delivering), ROWS_MAX), default=0)
    delivers = bar + (bar - 1) * (rows - 1) - (rows > 1)
    return 2 + bar + 1 + delivers + OVERLAP * bool(lane.overlaps) + _TICKS * bool(lane.commits) + _GAP


def _times(stretches: Iterable[Stretch]) -> list[tuple[float, float]]:
    return [(each.from_ms, each.until_ms) for each in stretches]


def _bar_height(view: RunView) -> int:
    return 11 if len(view.partitions) <= _MANY else 9


class _Lane:
    """One partition's lane."""

    def __init__(self, panel: Panel, lane: PartitionView, bar: int) -> None:
        self._panel, self._scale, self._lane, self._bar = panel, panel.scale, lane, bar

    def lay(self, block: Block, bars: Bars, *, names_cut: bool) -> None:
        """Add the lane at the block's foot."""
        lane, height, top = self._lane, self._bar, block.height + 2
        named = Row(top, height, lane.name, NAMED)
        y = top + height + 1
        rows = packed(_times(lane.delivering), ROWS_MAX)
        count = 1 + max(rows, default=0)
        delivers = [Row(y + (height - 1) * n, height - (count > 1), lane.name, DELIVERS) for n in range(count)]
        ends = delivers[-1].y + delivers[-1].height
        block.rows += [named, *delivers]
        _hatch(block, self._scale, lane.unnamed, named, "named by nobody")
        _hatch(block, self._scale, lane.unclaimed, Row(y, ends - y, lane.name, DELIVERS), "owned by nobody")
        for each in lane.named:
            bars.add(each.from_ms, each.until_ms, named, self._panel.classes(each.member), each.member)
        for each, row in zip(lane.delivering, rows, strict=True):
            # Below a bar of the same member, its name would stand twice.
            new = not any(other.member == each.member and _share(other, each) > 0.5 for other in lane.named)
            classes = self._panel.classes(each.member)
            bars.add(each.from_ms, each.until_ms, delivers[row], classes, each.member, is_labelled=new)
        block.name(lane.name, named.y + height + 3, is_cut=names_cut)
        y = ends
        if lane.overlaps:
            block.overlaps += _overlaps(self._scale, lane.overlaps, delivers[0].y, y - delivers[0].y, lane.name)
            y += OVERLAP
        if lane.commits:
            block.rows.append(Row(y, _TICKS, lane.name, COMMITS))
            _ticks(block, self._panel, lane.commits, y + 1)
            block.labels += _refusals(self._scale, lane.commits, y + _TICKS)
            y += _TICKS
        block.height = y + _GAP


def _share(one: Stretch, other: Stretch) -> float:
    """How much of the other the one covers."""
    common = min(one.until_ms, other.until_ms) - max(one.from_ms, other.from_ms)
    return common / other.length_ms if other.length_ms else 0.0


def _hatch(block: Block, scale: Scale, stretches: Iterable[Stretch], row: Row, what: str) -> None:
    """Stretches without an owner; those that are too short for hatching are laid with the bars."""
    for each in stretches:
        from_, until = scale.unit(each.from_ms), scale.unit(each.until_ms)
        if until - from_ > HATCHED_MIN * scale.length_ms:
            hint = f"{what} for {each.length_ms / 1000:.2f} s"
            block.behind.append(Area("gap", from_, until, hint, row.y, row.height))
        elif until > from_:
            block.bars.append(Bar(from_, until, row, "gapped", "", is_labelled=False))


def _overlaps(scale: Scale, overlaps: Iterable[Overlap], y: int, height: int, lane: str) -> Iterator[Strip]:
    for each in overlaps:
        who = " + ".join(each.members) if len(each.members) > 1 else "two members"
        all_ = {0: "", 1: "", 2: " both"}.get(len(each.members), " all")
        hint = f"{lane}: {who}{all_} deliver for {each.length_ms / 1000:.2f} s"
        yield Strip(scale.unit(each.from_ms), scale.unit(each.until_ms), y, height, lane, who, hint)


def _ticks(block: Block, panel: Panel, commits: Iterable[Commit], y: int) -> None:
    """Accepted commits; those of a member that was not the owner stand out. Where few bars are drawn, of the others
    that are close together only the first is.
    """
    scale = panel.scale
    places: dict[str, dict[int, None]] = {"ok": {}, "stale": {}}
    near = round(scale.length_ms * _TICKS_APART) if panel.marks_max < _FEW_MARKS else 0
    last = -near
    for each in commits:
        at = scale.unit(each.at_ms)
        if each.is_accepted and (each.is_stale or at - last >= near):
            places["stale" if each.is_stale else "ok"][at] = None
            last = at
    for name, found in places.items():
        block.ticks.setdefault(name, []).extend((x, y) for x in found)


def _refusals(scale: Scale, commits: Sequence[Commit], y: int) -> Iterator[Label]:
    """Refused commits, and those that moved the committed offset back; of those at one place the last."""
    found: dict[tuple[str, int], Label] = {}
    for each in commits:
        if each.is_accepted and not each.moved_back_by:
            continue
        sign, _ = signed(each, scale.unit(each.at_ms), y)
        found[sign.kind, round(scale.share(each.at_ms) * USUAL_WIDTH / 4)] = sign
    yield from found.values()


def signed(commit: Commit, at: int, y: int) -> tuple[Label, str]:
    """The sign of a commit that was refused or moved the offset back, and what it stands for."""
    name, sign, what = "back", "▼", f"moved back by {commit.moved_back_by:,}"
    if not commit.is_accepted:
        name, sign, what = "no", "×", f"refused: {commit.outcome}"
    who = f"the runner, in the name of {commit.member}, which is frozen," if commit.is_by_runner else commit.member
    return Label(name, at, y, sign, f"{who} commits {commit.offset:,}, {what}"), what
