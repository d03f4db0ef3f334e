"""A panel of two numeric axes as a heat map. Every cell has its number, so that colour is never alone."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.report.markup import drawing, line, rect, text
from comparison.report.sweep.panels import figure_text
from comparison.results.result import Spread

if TYPE_CHECKING:
    from markupsafe import Markup

    from comparison.report.markup import Shape
    from comparison.report.sweep.panels import Panel
    from comparison.results.sweep import SweepData

CELL_WIDTH, CELL_HEIGHT = 104, 52
LEFT, TOP, RIGHT = 150, 34, 16
_LEGEND = 40
_WIDTH_MIN = 520  #: for the legend
#: From light to dark, one hue: it reads without colour vision and in grey.
_LIGHT, _DARK = (239, 246, 252), (8, 64, 129)
#: Above this ratio of the largest to the smallest figure, colours follow the logarithm.
_LOGARITHMIC = 20.0
#: White text has more contrast than black above this share of the darkest colour.
_WHITE_FROM = 0.68
#: Axes whose product has to be longer than the session timeout, and the axes that name it.
RETRIES, BACKOFF = "rebalance.max.retries", "rebalance.backoff.ms"
SESSIONS = ("zookeeper.session.timeout.ms", "session-timeout")


class Scale(NamedTuple):
    """Figures to shares of the darkest colour."""

    low: float
    high: float

    @property
    def logarithmic(self) -> bool:
        return self.low > 0 and self.high / self.low > _LOGARITHMIC

    def share(self, value: float) -> float:
        if self.high <= self.low:
            return 0.0
        if self.logarithmic:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def heat_map(panel: Panel, unit: str, session_ms: float | None = None) -> Markup:
    """The panel's medians, with their ranges below. `session_ms` marks what does not outlast a session."""
    medians = [cell.median for row in panel.cells for cell in row if cell is not None]
    scale = Scale(min(medians, default=0.0), max(medians, default=0.0))
    width = LEFT + CELL_WIDTH * len(panel.columns) + RIGHT
    bottom = TOP + CELL_HEIGHT * len(panel.rows)
    shapes = [text(f"{panel.column_axis} →", LEFT, 12, class_="legend")]
    shapes += [text(f"{panel.row_axis} ↓", 4, TOP - 8, class_="legend")]
    for place, column in enumerate(panel.columns):
        shapes.append(_label(f"{column}", LEFT + CELL_WIDTH * (place + 0.5), TOP - 8, "middle"))
    short = _too_short(panel, session_ms)
    for number, row in enumerate(panel.rows):
        top = TOP + CELL_HEIGHT * number
        shapes.append(_label(f"{row}", LEFT - 10, top + CELL_HEIGHT / 2 + 4, "end"))
        for place, column in enumerate(panel.columns):
            dashed = (row, column) in short
            shapes += _cell(panel.cells[number][place], LEFT + CELL_WIDTH * place, top, scale, dashed=dashed)
    shapes += _legend(scale, unit, bottom, marked=session_ms if short else None)
    height = bottom + _LEGEND + (18 if short else 0)
    title = f"{panel.metric} by {panel.row_axis} and {panel.column_axis}: {panel.title}"
    width = max(width, _WIDTH_MIN)
    return drawing(title, shapes, (width, height), class_="heat", width=width)


def why_flat(panel: Panel) -> str:
    """Why there is nothing to see in a heat map; '' if there is."""
    medians = {cell.median for row in panel.cells for cell in row if cell is not None}
    if len(medians) > 1:
        return ""
    return f"no heat map: the median is {figure_text(_exact(*medians))[0]} everywhere" if medians else "not measured"


def _exact(value: float) -> Spread:
    return Spread(n=1, median=value, low=value, high=value)


def session_of(data: SweepData) -> float | None:
    """The sweep's session timeout in ms, if it is one axis with one value."""
    values = [axis.values for axis in data.axes if axis.name in SESSIONS and axis.numeric]
    return float(values[0][0]) if len(values) == 1 and len(values[0]) == 1 else None


def _too_short(panel: Panel, session_ms: float | None) -> set[tuple[Any, Any]]:
    """Where a member gives up rebalancing before a dead member's session ends; empty if that is so nowhere else."""
    if session_ms is None or {panel.row_axis, panel.column_axis} != {RETRIES, BACKOFF}:
        return set()
    places = {(row, column) for row in panel.rows for column in panel.columns}
    found = {(row, column) for row, column in places if float(row) * float(column) <= session_ms}
    return found if found != places else set()


def _cell(cell: Spread | None, x: float, y: float, scale: Scale, *, dashed: bool) -> list[Shape]:
    if cell is None:
        empty = rect(x + 1, y + 1, CELL_WIDTH - 2, CELL_HEIGHT - 2, class_="nothing", hint="not run, or not measured")
        return [empty, text("-", x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, text_anchor="middle")]
    share = scale.share(cell.median)
    median, spread = figure_text(cell)
    colours = zip(_LIGHT, _DARK, strict=True)
    fill = "#" + "".join(f"{round(light + share * (dark - light)):02x}" for light, dark in colours)
    ink = "#ffffff" if share > _WHITE_FROM else "#101418"
    hint = f"median {median}" + (f", {spread}" if spread else "") + f", {cell.n} runs"
    shapes = [rect(x + 1, y + 1, CELL_WIDTH - 2, CELL_HEIGHT - 2, fill=fill, hint=hint)]
    if dashed:
        shapes.append(
            rect(x + 4, y + 4, CELL_WIDTH - 8, CELL_HEIGHT - 8, fill="none", stroke=ink, stroke_dasharray="4 3")
        )
    middle = x + CELL_WIDTH / 2
    height = y + CELL_HEIGHT / 2 + (-1 if spread else 5)
    shapes.append(
        text(median, middle, height, text_anchor="middle", style=f"fill:{ink}", font_weight=600, font_size=14)
    )
    if spread:
        shapes.append(text(spread, middle, height + 16, text_anchor="middle", style=f"fill:{ink}", font_size=10.5))
    return shapes


def _legend(scale: Scale, unit: str, top: float, *, marked: float | None) -> list[Shape]:
    kind = "logarithmic" if scale.logarithmic else "linear"
    low, high = (figure_text(_exact(value))[0] for value in scale)
    said = f"light {low}, dark {high}{' ' if unit else ''}{unit} ({kind}); median, range below"
    shapes = [text(said, LEFT, top + 22, class_="legend")]
    if marked is not None:
        shapes.append(line(LEFT, top + 36, LEFT + 24, top + 36, stroke="currentColor", stroke_dasharray="4 3"))
        shapes.append(
            text(
                f"retries × backoff is at most the session timeout, {marked:g} ms", LEFT + 30, top + 40, class_="legend"
            )
        )
    return shapes


def _label(shown: str, x: float, y: float, anchor: str) -> Shape:
    return text(shown, x, y, text_anchor=anchor, class_="lane")
