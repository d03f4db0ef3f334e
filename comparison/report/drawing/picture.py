"""A run's lanes, or one chart, as an SVG file: the blocks of the report below each other, with a title and a legend."""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from comparison.report.drawing.chart import Entry
from comparison.report.drawing.course import axis, course, phases
from comparison.report.drawing.lanes import partition_lanes
from comparison.report.drawing.layout import LETTER
from comparison.report.drawing.palette import PALETTE, styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.svg import painted
from comparison.report.markup import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.report.drawing.chart import Chart
    from comparison.report.drawing.layout import Block
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

WIDTH, RIGHT, TOP, LINE = 1000, 14, 30, 18
MARKS_MAX = 4_000
_GUTTER = 80
_MEDIA = re.compile(r"@media [^{]*\{.*\}\n", re.MULTILINE)
_COLOUR = re.compile(r"--([\w-]+): (#\w+);")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
#: A declaration whose value is of the theme.
_THEMED = re.compile(r"[\w-]+: var\([^;]+;")
#: Of what is around the blocks.
_OWN = """:root { fill: var(--ink); } .paper { fill: var(--paper); } .note { fill: var(--faint); }
"""


def picture(view: RunView, scale: Scale, title: str) -> str:
    """The SVG text; the same for the same values."""
    panel = Panel(view, scale, styles([view]), MARKS_MAX)
    lanes, _ = partition_lanes(panel, names_cut=False)
    of_phases, _ = phases(panel)
    blocks = [block for block in (course(panel), lanes, of_phases, axis(panel)) if block.height]
    longest = max((len(name.text) for block in blocks for name in block.names), default=0)
    legend = [Entry(place, panel.classes(place), "bar") for place in view.lanes]
    legend += [Entry(name, f"p-{name}", "phase") for name in dict.fromkeys(each.phase for each in view.phases)]
    note = f"in each partition's lane: above, whom {view.authority} names; below, who delivers"
    return _drawn(title, note, blocks, scale.length_ms, legend, round(max(_GUTTER, LETTER * longest + 14)))


def chart_picture(chart: Chart, length: int) -> str:
    """The SVG text of a chart whose axis is so many milliseconds long."""
    return _drawn(chart.title, chart.note, [chart.block, chart.axis], chart.length or length, chart.legend, _GUTTER)


def _drawn(title: str, note: str, blocks: Sequence[Block], length: int, legend: Sequence[Entry], gutter: int) -> str:
    tops = accumulate((block.height for block in blocks), initial=TOP)
    below = TOP + sum(block.height for block in blocks) + 16
    placed = list(_placed(legend, gutter))
    return str(
        render(
            "drawing/picture.svg.j2",
            title=title,
            note=note,
            width=WIDTH,
            height=below + LINE * (placed[-1][1] + 2 if placed else 1),
            gutter=gutter,
            plot_width=WIDTH - gutter - RIGHT,
            blocks=[(y, painted(block, length)) for y, block in zip(tops, blocks, strict=False)],
            legend=[(x, below + LINE * row, entry) for x, row, entry in placed],
            style=_style(),
            **PALETTE,
        )
    )


def _placed(legend: Sequence[Entry], gutter: int) -> Iterator[tuple[float, int, Entry]]:
    """The entries with their places, in as many lines as they need; phases begin a line."""
    row, x = 0, float(gutter)
    for number, entry in enumerate(legend):
        width = LETTER * len(entry.name) + 32
        if x + width > WIDTH or (number and entry.shape == "phase" != legend[number - 1].shape):
            row, x = row + 1, float(gutter)
        yield x, row, entry
        x += width


@cache
def _style() -> Markup:
    """Our styles, with the colours of the theme instead of variables, which few readers of files know: the light ones,
    and those that differ in the dark.
    """
    theme, *texts = (
        Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("theme.css", "lanes.css", "charts.css")
    )
    light, dark = (dict(_COLOUR.findall(part)) for part in theme.split("@media"))
    text = _MEDIA.sub("", "".join([*texts, render("drawing/palette.css.j2", **PALETTE), _OWN]))
    in_the_dark = (f"{name.strip()} {{ {' '.join(_THEMED.findall(body))} }}" for name, body in _RULE.findall(text))
    themed = "\n".join(rule for rule in in_the_dark if "var(" in rule)
    return Markup(f"{_coloured(text, light)}@media (prefers-color-scheme: dark) {{\n{_coloured(themed, dark)} }}\n")


def _coloured(text: str, colours: Mapping[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], text)
