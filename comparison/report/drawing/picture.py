"""A run's lanes, or one chart, as an SVG file: the blocks of the report below each other, with a title and a legend."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from comparison.report.drawing.callouts import Callout, callouts, placed
from comparison.report.drawing.chart import Entry
from comparison.report.drawing.course import axis, course, disturbances_named, phases
from comparison.report.drawing.lanes import partition_lanes
from comparison.report.drawing.layout import LETTER
from comparison.report.drawing.palette import PALETTE, styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.svg import painted
from comparison.report.markup import Shape, line, render, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.report.drawing.callouts import Placed
    from comparison.report.drawing.chart import Chart
    from comparison.report.drawing.layout import Block
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

WIDTH, RIGHT, TOP, LINE = 1000, 14, 30, 18
#: The height of a row of callouts, and of half a name.
ROW, _NAME_MIDDLE = 16, 4
MARKS_MAX = 4_000
_GUTTER = 80
_MEDIA = re.compile(r"@media [^{]*\{.*\}\n", re.MULTILINE)
_COLOUR = re.compile(r"--([\w-]+): (#\w+);")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
#: A declaration whose value is of the theme.
_THEMED = re.compile(r"[\w-]+: var\([^;]+;")
#: Of what is around the blocks.
_OWN = """.lead { stroke: var(--ink); stroke-dasharray: 2 2; } .dot { fill: var(--ink); stroke: var(--paper); }
.say { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
:root { fill: var(--ink); } .paper { fill: var(--paper); } .note { fill: var(--faint); }
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
    page = _Page(title, note, scale.length_ms, round(max(_GUTTER, LETTER * longest + 14)))
    return page.drawn(blocks, legend, [(each, scale.share(each.at_ms)) for each in callouts(view)])


def chart_picture(chart: Chart, length: int, view: RunView | None = None, scale: Scale | None = None) -> str:
    """The SVG text of a chart whose axis is so many milliseconds long; with a run, it says what was done to it."""
    page = _Page(chart.title, chart.note, chart.length or length, _GUTTER)
    told: list[tuple[Callout, float]] = []
    if view is not None and scale is not None:
        told = [(Callout(at, view.design, says, 0), scale.share(at)) for at, says in disturbances_named(view)]
    return page.drawn([chart.block, chart.axis], chart.legend, told)


class _Page(NamedTuple):
    """What is around the blocks: from above the title, the blocks, the legend and a note; on the left the names."""

    title: str
    note: str
    length: int
    gutter: int

    def drawn(
        self, blocks: Sequence[Block], legend: Sequence[Entry], told: Sequence[tuple[Callout, float]] = ()
    ) -> str:
        """The blocks below each other; callouts have rows beside the block that has their lane."""
        y, tops, said = TOP, [], []
        for block in blocks:
            lanes = {name.text: name.y - _NAME_MIDDLE for name in block.names}
            here = placed(
                [(each, self._x(share)) for each, share in told if each.lane in lanes], self.gutter, WIDTH - RIGHT
            )
            rows = 1 + max((each.row for each in here), default=-1)
            is_above = block.kind != "phases"
            tops.append(y + ROW * rows if is_above else y)
            first = tops[-1] - ROW / 2 if is_above else y + block.height + ROW / 2
            for each in here:
                at = first + (-ROW if is_above else ROW) * each.row
                said += [*_called(each, at, tops[-1] + lanes[each.callout.lane])]
            y += block.height + ROW * rows
        below = y + 16
        rows_of_legend = list(_placed(legend, self.gutter))
        return str(
            render(
                "drawing/picture.svg.j2",
                **self._asdict(),
                width=WIDTH,
                height=below + LINE * (rows_of_legend[-1][1] + 2 if rows_of_legend else 1),
                plot_width=WIDTH - self.gutter - RIGHT,
                blocks=[(y, painted(block, self.length)) for y, block in zip(tops, blocks, strict=True)],
                said=said,
                legend=[(x, below + LINE * row, entry) for x, row, entry in rows_of_legend],
                style=_style(),
                **PALETTE,
            )
        )

    def _x(self, share: float) -> float:
        return self.gutter + share * (WIDTH - self.gutter - RIGHT)


def _called(each: Placed, at: float, lane: float) -> Iterator[Shape]:
    """The text, and a line to the lane that ends in a dot."""
    yield line(each.x, at, each.x, lane, class_="lead")
    yield Shape("circle", {"class": "dot", "cx": f"{each.x:.1f}", "cy": f"{lane:.1f}", "r": 3})
    anchor = {"text_anchor": "end"} if each.ends_there else {}
    yield text(each.callout.says, each.x + (-5 if each.ends_there else 5), at + 4, class_="say", **anchor)


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
