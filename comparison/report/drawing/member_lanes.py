"""The same ownership the other way round: a lane a member, with the partitions that it is named for and delivers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.report.drawing.layout import DELIVERS, NAMED, Bars, Block, Row
from comparison.report.drawing.panel import disturbances
from comparison.report.view.naming import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import Holding, RunView

_BAR = 11


def member_lanes(panel: Panel) -> tuple[Block, int]:
    """The block, and how many stretches were too many to be drawn one by one."""
    view = panel.view
    title = (
        f"Partitions of each member in {view.design}: above, those that {view.authority} names it for; below, those "
        "that it delivers. The table below says the same."
    )
    block, bars = Block("members", title, behind=list(disturbances(panel))), Bars(panel.scale)
    rows: dict[str, tuple[Row, Row]] = {}
    for place in view.lanes:
        top = block.height + 2
        rows[place] = (
            Row(top, _BAR, place, NAMED),
            Row(top + _BAR + 1, _BAR, place, DELIVERS),
        )
        block.name(place, top + _BAR + 4)
        block.height = top + 2 * _BAR + 4
        block.rows += rows[place]
        block.edges.append(block.height)
    short = _topics(view) == 1
    above: defaultdict[str, list[tuple[float, float, frozenset[str]]]] = defaultdict(list)
    for which, holdings in enumerate(_by_place(view)):
        for place, mine in holdings.items():
            for from_ms, until_ms, partitions in _sets(mine):
                label = named(partitions, short=short)
                # Below the same partitions, they would stand twice.
                new = not any(low <= from_ms < high and each == partitions for low, high, each in above[place])
                bars.add(from_ms, until_ms, rows[place][which], panel.classes(place), label, is_labelled=new)
                if which == 0:
                    above[place].append((from_ms, until_ms, partitions))
    return block, bars.laid_into(block, panel.marks_max)


def _by_place(view: RunView) -> Iterator[dict[str, list[tuple[Holding, str]]]]:
    """First what the authority names, then what is delivered, by the place of the member."""
    for which in ("named", "delivering"):
        found: defaultdict[str, list[tuple[Holding, str]]] = defaultdict(list)
        for lane in view.partitions:
            for each in getattr(lane, which):
                found[view.places.get(each.member, each.member)].append((each, lane.name))
        yield {place: mine for place, mine in found.items() if place in view.lanes}


def _sets(holdings: Iterable[tuple[Holding, str]]) -> Iterator[tuple[float, float, frozenset[str]]]:
    """The partitions that a member has, from each change of them to the next; nothing while it has none."""
    moves: defaultdict[float, list[tuple[str, int]]] = defaultdict(list)
    for each, name in holdings:
        if each.until_ms > each.from_ms:
            moves[each.from_ms].append((name, 1))
            moves[each.until_ms].append((name, -1))
    count: defaultdict[str, int] = defaultdict(int)
    since, now = 0.0, frozenset[str]()
    for at_ms in sorted(moves):
        for name, step in moves[at_ms]:
            count[name] += step
        then = frozenset(name for name, held in count.items() if held)
        if then != now:
            if now:
                yield since, at_ms, now
            since, now = at_ms, then


def _topics(view: RunView) -> int:
    return len({lane.name.rpartition("-")[0] for lane in view.partitions})
