"""Ownership lanes: a lane a partition, with two truths in it.

The upper bar is whom the authority names, the lower ones are who delivers: a gap is hatched, two members that deliver
at once are marked in red with both names. Below them are the commits as the authority answered them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.blocks import (
    COMMITS,
    DELIVERS,
    LETTER,
    NAMED,
    USUAL_WIDTH,
    Bars,
    Block,
    Row,
    packed,
    path_of,
)
from comparison.report.drawing.panel import disturbances
from comparison.report.drawing.scale import percent
from comparison.report.markup import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import Commit, Overlap, PartitionView, Stretch

#: More members than these at once share the last row.
ROWS_MAX = 3
#: A share of the width.
HATCHED_MIN = 0.012
_TICKS, _STRIP, _GAP = 8, 13, 3
#: With fewer bars than this, ticks are at least such a share of the width apart.
_FEW_MARKS, _TICKS_APART = 100, 0.005
#: Lanes become lower when there are more of them than this.
_MANY = 14


def partition_lanes(panel: Panel, *, names_cut: bool = True) -> tuple[Block, int]:
    """The block, and how many stretches were too many to be drawn one by one."""
    view, scale = panel.view, panel.scale
    overlaps = sum(len(lane.overlaps) for lane in view.partitions)
    title = (
        f"Ownership of {len(view.partitions)} partitions in {view.design}: above, whom {view.authority} names; below, "
        f"who delivers. {overlaps or 'No'} overlap{'' if overlaps == 1 else 's'} of two members delivering. "
        "The table below says the same."
    )
    block, bars = Block("partitions", title, under=list(disturbances(panel))), Bars(scale)
    short: list[tuple[int, int, int, int]] = []
    bar = 11 if len(view.partitions) <= _MANY else 9
    for lane in view.partitions:
        _Lane(panel, lane, bar).draw(block, bars, short, names_cut=names_cut)
    if short:
        block.bars.append(Shape("path", {"class": "gapped", "d": path_of(short)}))
    return block, bars.drawn_into(block, panel.marks_max)


class _Lane:
    """One partition's lane."""

    def __init__(self, panel: Panel, lane: PartitionView, bar: int) -> None:
        self._panel, self._scale, self._lane, self._bar = panel, panel.scale, lane, bar

    def draw(self, block: Block, bars: Bars, short: list[tuple[int, int, int, int]], *, names_cut: bool) -> None:
        """Add the lane at the block's foot; `short` collects those without an owner that are drawn with the bars."""
        lane, height, top = self._lane, self._bar, block.height + 2
        named = Row(top, height, lane.name, NAMED)
        y = top + height + 1
        rows = packed([(each.from_ms, each.until_ms) for each in lane.delivering], ROWS_MAX)
        count = 1 + max(rows, default=0)
        delivers = [Row(y + (height - 1) * n, height - (count > 1), lane.name, DELIVERS) for n in range(count)]
        ends = delivers[-1].y + delivers[-1].height
        block.rows += [named, *delivers]
        short += _hatch(block, self._scale, lane.unnamed, named, "named by nobody")
        short += _hatch(block, self._scale, lane.unclaimed, Row(y, ends - y, lane.name, DELIVERS), "owned by nobody")
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
            block.over += _overlaps(self._scale, lane.overlaps, delivers[0].y, y - delivers[0].y, lane.name)
            y += _STRIP
        if lane.commits:
            block.rows.append(Row(y, _TICKS, lane.name, COMMITS))
            _ticks(block, self._panel, lane.commits, y + 1)
            block.over += _refusals(self._scale, lane.commits, y + _TICKS)
            y += _TICKS
        y += _GAP
        block.edges.append(y)
        block.height = y


def _share(one: Stretch, other: Stretch) -> float:
    """How much of the other the one covers."""
    common = min(one.until_ms, other.until_ms) - max(one.from_ms, other.from_ms)
    return common / other.length_ms if other.length_ms else 0.0


def _hatch(
    block: Block, scale: Scale, stretches: Iterable[Stretch], row: Row, what: str
) -> Iterator[tuple[int, int, int, int]]:
    """Stretches without an owner; yields those too short for hatching, which are drawn stretched, with the bars."""
    for each in stretches:
        from_, until = scale.unit(each.from_ms), scale.unit(each.until_ms)
        if until - from_ > HATCHED_MIN * scale.length_ms:
            place = {"x": scale.percent(each.from_ms), "width": percent((until - from_) / scale.length_ms)}
            hint = f"{what} for {each.length_ms / 1000:.2f} s"
            block.under.append(Shape("rect", {"class": "gap", **place, "y": row.y, "height": row.height}, hint=hint))
        elif until > from_:
            yield from_, row.y, until - from_, row.height


def _overlaps(scale: Scale, overlaps: Iterable[Overlap], y: int, height: int, lane: str) -> Iterator[Shape]:
    """A red frame around the bars, and a strip below them with the members' names."""
    free = 0.0
    for each in overlaps:
        from_, until = scale.share(each.from_ms), scale.share(each.until_ms)
        who = " + ".join(each.members) if len(each.members) > 1 else "two members"
        all_ = {0: "", 1: "", 2: " both"}.get(len(each.members), " all")
        hint = f"{lane}: {who}{all_} deliver for {each.length_ms / 1000:.2f} s"
        place = {"x": f"{100 * from_:.3f}%", "width": f"{100 * (until - from_):.3f}%"}
        yield Shape("rect", {"class": "frame", **place, "y": y, "height": height})
        strip = {"data-l": lane, "data-w": who, "y": y + height, "height": _STRIP}
        yield Shape("rect", {"class": "both", **place, **strip}, hint=hint)
        room = (until - from_) * USUAL_WIDTH
        label = next((text for text in (f"two deliver: {who}", who) if LETTER * len(text) + 6 <= room), "")
        if label:
            yield Shape("text", {"class": "bl", "x": place["x"], "y": y + height + _STRIP - 3}, label)
        elif free <= until < 1 - LETTER * (len(who) + 2) / USUAL_WIDTH:  # beside it
            free = until + LETTER * (len(who) + 2) / USUAL_WIDTH
            yield Shape("text", {"class": "bo", "x": f"{100 * until:.3f}%", "y": y + height + _STRIP - 3}, who)


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


def _refusals(scale: Scale, commits: Sequence[Commit], y: int) -> Iterator[Shape]:
    """Refused commits, and those that moved the committed offset back; of those at one place the last."""
    found: dict[tuple[str, int], Shape] = {}
    for each in commits:
        if each.is_accepted and not each.moved_back_by:
            continue
        sign, name = ("×", "no") if not each.is_accepted else ("▼", "back")
        what = f"refused: {each.outcome}" if not each.is_accepted else f"moved back by {each.moved_back_by}"
        hint = f"{each.member} commits {each.offset}, {what}"
        place = round(scale.share(each.at_ms) * USUAL_WIDTH / 4)
        attributes = {"class": name, "x": scale.percent(each.at_ms), "y": y, "data-t": scale.unit(each.at_ms)}
        found[name, place] = Shape("text", attributes, sign, hint)
    yield from found.values()
