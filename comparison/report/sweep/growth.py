"""A panel along one numeric axis as lines on logarithmic scales, one line a design, with the fit dashed."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from comparison.report.figures import number
from comparison.report.markup import Shape, drawing, line, path, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from comparison.report.sweep.panels import Panel

WIDTH, HEIGHT = 720, 340
LEFT, TOP, RIGHT, BOTTOM = 64, 16, 130, 44
#: Okabe and Ito's colours; each line also has a marker of its own and its name at its end.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9")
_MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-4,-4H4V4H-4Z",
    "M0,-5L5,4H-5Z",
    "M0,-5.5L5.5,0L0,5.5L-5.5,0Z",
    "M-4,-1.5H-1.5V-4H1.5V-1.5H4V1.5H1.5V4H-1.5V1.5H-4Z",
    "M-5,-4H5L0,5Z",
)
#: Names at the ends of lines are this far apart at least.
_NAME_PX = 15.0


class _Scales:
    """Figures to pixels, both axes logarithmic."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self._x = (log10(min(xs)), log10(max(xs)))
        low, high = log10(min(ys)), log10(max(ys))
        room = max(0.05 * (high - low), 0.15 if high - low < 0.3 else 0.0)
        self._y = (low - room, high + room)

    def x(self, value: float) -> float:
        low, high = self._x
        return LEFT + (WIDTH - LEFT - RIGHT) * (log10(value) - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self._y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(value) - low) / (high - low)

    def ticks(self) -> Iterator[float]:
        """1, 2 and 5 of every power of ten; powers alone where there are many."""
        low, high = self._y
        steps: Sequence[float] = (1, 2, 5) if high - low < 3 else (1,)
        if high - low < 0.7:
            steps = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
        for power in range(floor(low), ceil(high) + 1):
            for step in steps:
                value = step * 10.0**power
                if low <= log10(value) <= high:
                    yield value


def why_not_drawn(panel: Panel) -> str:
    """Why there is no chart; '' if there is one."""
    if panel.crossed or not all(isinstance(x, int | float) for x in panel.rows):
        return "no chart: the axis is no number"
    if len(panel.rows) < 2 or min(panel.rows) <= 0:
        return "no chart: fewer than two values above 0"
    return "" if _drawn(panel) else "no chart: no design has only figures above 0"


def growth_chart(panel: Panel, unit: str) -> Markup:
    """The chart; `why_not_drawn` must be ''."""
    drawn = _drawn(panel)
    figures = [cell for column in drawn for cell in _column(panel, column) if cell is not None]
    scales = _Scales(panel.rows, [cell[end] for cell in figures for end in ("low", "high")])
    shapes = list(_grid(panel, scales, unit))
    ends = []
    for column in drawn:
        colour, marker = (each[column % len(each)] for each in (_COLOURS, _MARKERS))
        points = [(x, cell) for x, cell in zip(panel.rows, _column(panel, column), strict=True) if cell is not None]
        shapes += _series(points, scales, colour, marker)
        shapes += _fit(panel, panel.columns[column], [x for x, _ in points], scales, colour)
        ends.append((scales.y(points[-1][1]["median"]), str(panel.columns[column]), colour))
    shapes += _names(ends)
    title = f"{panel.metric} by {panel.row_axis}, both logarithmic: {panel.title}"
    return drawing(title, shapes, (WIDTH, HEIGHT), class_="chart growth")


def left_off(panel: Panel) -> list[str]:
    """The designs without a line, because a figure is 0."""
    drawn = _drawn(panel)
    return [str(design) for place, design in enumerate(panel.columns) if place not in drawn]


def _drawn(panel: Panel) -> list[int]:
    """The columns whose figures all have logarithms, with at least two of them."""
    found = []
    for place in range(len(panel.columns)):
        cells = [cell for cell in _column(panel, place) if cell is not None]
        if len(cells) > 1 and all(cell["low"] > 0 for cell in cells):
            found.append(place)
    return found


def _column(panel: Panel, place: int) -> list[Mapping[str, Any] | None]:
    return [row[place] for row in panel.cells]


def _grid(panel: Panel, scales: _Scales, unit: str) -> Iterator[Shape]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for x in panel.rows:
        yield line(scales.x(x), TOP, scales.x(x), bottom, class_="grid")
        yield text(f"{x:,}", scales.x(x), bottom + 16, text_anchor="middle")
    for y in scales.ticks():
        yield line(LEFT, scales.y(y), right, scales.y(y), class_="grid")
        yield text(number(y), LEFT - 6, scales.y(y) + 4, text_anchor="end")
    yield line(LEFT, bottom, right, bottom, class_="base")
    yield text(panel.row_axis, (LEFT + right) / 2, HEIGHT - 8, text_anchor="middle", class_="legend")
    yield text(unit or "count", 4, TOP + 2, class_="legend")


def _series(
    points: Sequence[tuple[float, Mapping[str, Any]]], scales: _Scales, colour: str, marker: str
) -> Iterator[Shape]:
    data = "L".join(f"{scales.x(x):.1f},{scales.y(cell['median']):.1f}" for x, cell in points)
    yield path(f"M{data}", fill="none", stroke=colour, stroke_width=2)
    for x, cell in points:
        at = scales.x(x)
        if cell["low"] != cell["high"]:
            yield line(at, scales.y(cell["low"]), at, scales.y(cell["high"]), stroke=colour, stroke_width=1.2)
        hint = f"{number(cell['median'])} ({number(cell['low'])} to {number(cell['high'])}, {cell['n']} runs)"
        place = f"translate({at:.1f},{scales.y(cell['median']):.1f})"
        yield Shape("path", {"d": marker, "fill": colour, "transform": place}, hint=hint)


def _fit(panel: Panel, design: str, xs: Sequence[float], scales: _Scales, colour: str) -> Iterator[Shape]:
    for each in panel.exponents:
        if each["design"] != design or each["axis"] != panel.row_axis or each["exponent"] is None:
            continue
        ends = [(x, each["through_y"] * (x / each["through_x"]) ** each["exponent"]) for x in (min(xs), max(xs))]
        (x1, y1), (x2, y2) = ((scales.x(x), min(HEIGHT - BOTTOM, max(TOP, scales.y(y)))) for x, y in ends)
        yield line(x1, y1, x2, y2, stroke=colour, stroke_dasharray="6 5", stroke_opacity=0.8, hint=f"fit of {design}")


def _names(ends: Sequence[tuple[float, str, str]]) -> Iterator[Shape]:
    """The designs at the ends of their lines, moved apart."""
    below = -_NAME_PX
    for y, name, colour in sorted(ends):
        below = max(y, below + _NAME_PX)
        yield line(WIDTH - RIGHT + 4, y, WIDTH - RIGHT + 16, below, stroke=colour)
        yield text(name, WIDTH - RIGHT + 20, below + 4, class_="lane")
