"""Committed offsets of one partition over time: accepted, refused, and moved back."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.report.drawing.chart import Chart, Entry, Plot, add_plot, rows_max
from comparison.report.drawing.course import TICKS_FEW, axis
from comparison.report.drawing.lanes import signed
from comparison.report.drawing.layout import COMMITS, LETTER, USUAL_WIDTH, Block, Label, Row, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import Commit, PartitionView

_PLOT, _TICKS = 58, 10


def committed(panels: Sequence[Panel]) -> Chart | None:
    """The most telling partition, the same in all designs; None if every commit was accepted and none moved back."""
    name = telling(panels)
    if name is None:
        return None
    drawn = [(panel, lane) for panel in panels for lane in panel.view.partitions if lane.name == name and lane.commits]
    offsets = [each.offset for _, lane in drawn for each in lane.commits]
    low, high = min(offsets), max(*offsets, min(offsets) + 1)
    went_back = [panel.view.design for panel, lane in drawn if any(each.moved_back_by for each in lane.commits)]
    where = f"It moved back in {', '.join(went_back)}." if went_back else "It never moved back."
    block = Block("committed", f"Committed offsets of {name} over time. {where} The table below says the same.")
    for panel, lane in drawn:
        _add(block, panel, lane, low, high)
    why = f", the one that {_why(drawn)}" if len(_names(panels)) > 1 else ""
    return Chart(
        kind="committed",
        title=f"Committed offsets of {name}",
        note=f"Partition {name}{why}. {where}",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=[
            Entry("committed offset", "line at", "line"),
            Entry("accepted", "ok", "tick"),
            Entry("accepted from a non-owner", "stale", "tick"),
            Entry("refused", "no", "×"),
            Entry("moved back", "back", "▼"),
        ],
        headings=("design", "seconds", "member", "offset", "answer"),
        rows=[row for panel, lane in drawn for row in _rows(panel, lane, rows_max(panels))],
    )


def _names(panels: Sequence[Panel]) -> set[str]:
    return {lane.name for panel in panels for lane in panel.view.partitions}


def telling(panels: Sequence[Panel]) -> str | None:
    """The partition whose offset moved back furthest in any design; else with most refusals, else with most commits
    from another than its owner.
    """
    scores: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for panel in panels:
        for lane in panel.view.partitions:
            if lane.commits:
                scores[lane.name].append(_score(lane))
    best = {name: tuple(map(max, zip(*found, strict=True))) for name, found in scores.items()}
    name = max(best, key=lambda name: best[name]) if best else None
    return name if name is not None and any(best[name]) else None


def _score(lane: PartitionView) -> tuple[int, int, int]:
    accepted = [each for each in lane.commits if each.is_accepted]
    return (
        max(each.moved_back_by for each in lane.commits),
        len(lane.commits) - len(accepted),
        sum(each.is_stale for each in accepted),
    )


def _why(drawn: Sequence[tuple[Panel, PartitionView]]) -> str:
    back, refused, _ = map(max, zip(*(_score(lane) for _, lane in drawn), strict=True))
    if back:
        return "moved back furthest"
    return "had most commits refused" if refused else "had most commits from another than its owner"


def _add(block: Block, panel: Panel, lane: PartitionView, low: int, high: int) -> None:
    accepted = _thinned([each for each in lane.commits if each.is_accepted], panel.marks_max)
    ends = [each.at_ms for each in accepted[1:]] + [panel.view.ended_ms]
    steps = [Step(each.at_ms, until_ms, each.offset) for each, until_ms in zip(accepted, ends, strict=True)]
    top = add_plot(
        block, panel, (low, high), [Plot("committed", "line at", steps)], [f"to {high:,}", f"from {low:,}"], _PLOT
    )
    y = top + _PLOT + 3
    for name in ("ok", "stale"):
        moments = dict.fromkeys(panel.scale.unit(each.at_ms) for each in accepted if each.is_stale == (name == "stale"))
        block.ticks.setdefault(name, []).extend((x, y) for x in moments)
    block.rows.append(Row(y - 1, _TICKS, f"{panel.view.design}, {lane.name}", COMMITS))
    block.labels += _signs(panel, lane, low, high, top)
    block.height += _TICKS


def _thinned(commits: Sequence[Commit], most: int) -> list[Commit]:
    """Those that say something, and as many of the others as may be drawn."""
    size = -(-len(commits) // max(1, most)) or 1
    return [each for place, each in enumerate(commits) if each.moved_back_by or each.is_stale or place % size == 0]


def _signs(panel: Panel, lane: PartitionView, low: int, high: int, top: int) -> Iterator[Label]:
    """Refused commits and those that moved the offset back, where they are on the scale; of those at one place one."""
    free, places = 0.0, set[tuple[str, int]]()
    for each in lane.commits:
        if each.is_accepted and not each.moved_back_by:
            continue
        at = panel.scale.unit(each.at_ms)
        x = panel.scale.share(each.at_ms) * USUAL_WIDTH
        y = round(top + min(_PLOT, 4 + _PLOT * (1 - (each.offset - low) / (high - low))))
        sign, what = signed(each, at, y)
        if (sign.kind, round(x / 4)) in places:
            continue
        places.add((sign.kind, round(x / 4)))
        yield sign
        label = f"{each.member} {what}"
        width = LETTER * len(label) + 20
        if x >= free and x + width < USUAL_WIDTH:
            free = x + width
            yield Label("mk bad", at, y, label, dx=8)
        elif x - width >= free:  # to the left of it
            free = x + 20
            yield Label("mk bad", at, y, label, dx=-8, ends_there=True)


def _rows(panel: Panel, lane: PartitionView, most: int) -> Iterator[list[str]]:
    """The commits that say something, between the first and the last accepted one."""
    accepted = [each for each in lane.commits if each.is_accepted]
    plain = [accepted[0], accepted[-1]] if accepted else []
    some = [each for each in lane.commits if not each.is_accepted or each.moved_back_by or each.is_stale]
    shown = sorted({id(each): each for each in [*plain, *some[:most]]}.values(), key=lambda each: each.at_ms)
    for each in shown:
        answer = each.outcome if not each.is_accepted else "accepted"
        answer += f", moved back by {each.moved_back_by:,}" if each.moved_back_by else ""
        answer += ", not from the owner" if each.is_stale and each.is_accepted else ""
        yield [panel.view.design, f"{panel.scale.seconds(each.at_ms):.2f}", each.member, f"{each.offset:,}", answer]
    usual = len(lane.commits) - len(shown)
    if usual:
        yield [panel.view.design, "", "", "", f"{usual:,} more{', accepted' if len(some) <= most else ''}"]
