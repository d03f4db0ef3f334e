"""A run's lanes, or one chart, as an SVG file: the blocks of the report below each other, with a title and a legend."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from comparison.report.drawing.blocks import LETTER
from comparison.report.drawing.course import axis, course, phases
from comparison.report.drawing.lanes import partition_lanes
from comparison.report.drawing.members import COLOURS, styles
from comparison.report.drawing.panel import Panel
from comparison.report.markup import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.drawing.blocks import Block
    from comparison.report.drawing.chart import Chart, Entry
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

WIDTH, RIGHT, TOP, LINE = 1000, 14, 30, 18
MARKS_MAX = 4_000
#: A file has no theme: what the page's variables are in the light one.
_LIGHT = {
    "ink": "#1b1b1b",
    "faint": "#5f5f5f",
    "line": "#d0d0d0",
    "edge": "#404040",
    "band": "#f6e7b0",
    "bad": "#b3261e",
    "paper": "#ffffff",
    "got": "#0072b2",
    "again": "#c25a00",
}
_MEDIA = re.compile(r"@media [^{]*\{.*\}\n", re.MULTILINE)


class _Entry(NamedTuple):
    """An entry of the legend; `row` and `x` are its place."""

    name: str
    classes: str
    is_line: bool
    row: int
    x: float


def picture(view: RunView, scale: Scale, title: str) -> str:
    """The SVG text; the same for the same values."""
    panel = Panel(view, scale, styles([view]), MARKS_MAX)
    lanes, _ = partition_lanes(panel, names_cut=False)
    of_phases, _ = phases(panel)
    blocks = [block for block in (course(panel), lanes, of_phases, axis(panel)) if block.height]
    longest = max((len(shape.text) for block in blocks for shape in block.names), default=0)
    gutter = round(max(80, LETTER * longest + 14))
    legend = list(_legend(view, panel, gutter))
    below = sum(block.height for block in blocks) + TOP + 16
    height = below + LINE * (legend[-1].row + 2 if legend else 1)
    return str(
        render(
            "drawing/picture.svg.j2",
            title=title,
            width=WIDTH,
            height=height,
            gutter=gutter,
            plot_width=WIDTH - gutter - RIGHT,
            blocks=list(_placed(blocks)),
            length=scale.length_ms,
            legend=legend,
            below=below,
            line=LINE,
            note=f"in each partition's lane: above, whom {view.authority} names; below, who delivers",
            style=_style("lanes.css"),
            colours=COLOURS,
        )
    )


def _placed(blocks: Sequence[Block]) -> Iterable[tuple[int, Block]]:
    y = TOP
    for block in blocks:
        yield y, block
        y += block.height


def _legend(view: RunView, panel: Panel, gutter: int) -> Iterable[_Entry]:
    """The members, and the phases that occur, in as many lines as they need."""
    used = dict.fromkeys(each.phase for each in view.phases)
    entries = [(place, panel.classes(place), False) for place in view.lanes]
    entries += [(phase, f"p-{phase}", True) for phase in used]
    row, x = 0, float(gutter)
    for number, (name, classes, is_line) in enumerate(entries):
        width = LETTER * len(name) + 32
        if x + width > WIDTH or (number and is_line and not entries[number - 1][2]):
            row, x = row + 1, float(gutter)
        yield _Entry(name, classes, is_line, row, x)
        x += width


def chart_picture(chart: Chart, length: int) -> str:
    """The SVG text of a chart whose axis is so many milliseconds long."""
    gutter = 80
    legend: list[tuple[int, Entry]] = []
    x = gutter
    for entry in chart.legend:
        legend.append((x, entry))
        x += round(LETTER * len(entry.name)) + 44
    below = TOP + chart.block.height + chart.axis.height + 8
    return str(
        render(
            "drawing/chart.svg.j2",
            title=chart.title,
            note=chart.note,
            width=WIDTH,
            height=below + 2 * LINE + 6,
            gutter=gutter,
            plot_width=WIDTH - gutter - RIGHT,
            blocks=list(_placed([chart.block, chart.axis])),
            length=chart.length or length,
            legend=legend,
            below=below,
            style=_style("lanes.css", "charts.css"),
        )
    )


@cache
def _style(*names: str) -> Markup:
    """Our styles, with colours instead of variables."""
    texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names]
    text = _MEDIA.sub("", "".join(texts))
    return Markup(re.sub(r"var\(--(\w+)\)", lambda found: _LIGHT[found[1]], text))
