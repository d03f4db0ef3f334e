"""Figures that grow with a number, as lines on logarithmic scales: one line a design, and another dashed beside it.

Sweeps draw the fitted power dashed, in the line's colour. A page of runs draws the model's, which may lie exactly on
the measured one: so it is drawn over it, in the colour of text.
"""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, drawing, line, path, text
from comparison.report.summaries.figures import number
from comparison.screen.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from comparison.results.result import Spread

#: Okabe and Ito's colours, and a grey; each line also has a marker of its own and its name at its end.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A7A7A")
_MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-4,-4H4V4H-4Z",
    "M0,-5L5,4H-5Z",
    "M0,-5.5L5.5,0L0,5.5L-5.5,0Z",
    "M-4,-1.5H-1.5V-4H1.5V-1.5H4V1.5H1.5V4H-1.5V1.5H-4Z",
    "M-5,-4H5L0,5Z",
    "M-4.5,-3L-3,-4.5L0,-1.5L3,-4.5L4.5,-3L1.5,0L4.5,3L3,4.5L0,1.5L-3,4.5L-4.5,3L-1.5,0Z",
)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Names at the ends of lines are this far apart at least.
_NAME_PX = 15.0
#: And so wide, with the lines to them.
_NAMES_PX = 90.0


class Measured(NamedTuple):
    """A figure at one place of the axis: median and range over `n` runs."""

    x: float
    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, x: float, spread: Spread) -> Measured:
        return cls(x, spread.median, spread.low, spread.high, spread.n)


class GrowthLine(NamedTuple):
    """One design's figures, all above 0; `number` gives it its colour and marker."""

    name: str
    number: int
    figures: Sequence[Measured]
    fit: Sequence[tuple[float, float]] = ()  #: dashed beside it, cut off where it leaves the chart
    model: Sequence[tuple[float, float]] = ()  #: dashed over it


class Frame(NamedTuple):
    """The size of a chart in pixels, and what of it is for titles of axes and for names."""

    width: int
    height: int
    left: int
    top: int
    right: int
    bottom: int


#: Of a page's charts.
WIDE = Frame(720, 340, left=64, top=20, right=130, bottom=44)


class LogScales:
    """Figures to pixels, both axes logarithmic; counts that may be 0 are drawn one higher."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float], frame: Frame) -> None:
        self.frame = frame
        self._x = (log10(min(xs)), log10(max(xs)))
        self._shift = 0 if min(ys) > 0 else 1
        low, high = self._log(min(ys)), self._log(max(ys))
        room = max(0.05 * (high - low), 0.15 if high - low < 0.3 else 0.0)
        self._y = (low - room, high + room)

    def _log(self, y: float) -> float:
        return log10(y + self._shift)

    def x(self, value: float) -> float:
        (low, high), frame = self._x, self.frame
        return frame.left + (frame.width - frame.left - frame.right) * (log10(value) - low) / (high - low)

    def y(self, value: float) -> float:
        (low, high), frame = self._y, self.frame
        height = frame.height - frame.top - frame.bottom
        return frame.height - frame.bottom - height * (self._log(value) - low) / (high - low)

    def ticks(self) -> Iterator[float]:
        if not self._shift:
            yield from log_ticks(*self._y)
            return
        yield 0
        low, high = self._y
        yield from (each for each in log_ticks(0, high) if low <= self._log(each) <= high)


def log_ticks(low: float, high: float) -> Iterator[float]:
    """1, 2 and 5 of every power of ten between two logarithms; powers alone where there are many."""
    steps: Sequence[float] = (1, 2, 5) if high - low < 3 else (1,)
    if high - low < 0.7:
        steps = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    for power in range(floor(low), ceil(high) + 1):
        for step in steps:
            value = step * 10.0**power
            if low <= log10(value) <= high:
                yield value


def round_values(values: Sequence[float]) -> list[float]:
    """Places to name on an axis of these values: round ones between them, and one beyond them at each end."""
    low, high = log10(min(values)), log10(max(values))
    found = list(log_ticks(floor(low), ceil(high)))
    below = [each for each in found if log10(each) <= low][-1:]
    above = [each for each in found if log10(each) >= high][:1]
    return sorted({*below, *(each for each in found if low < log10(each) < high), *above})


def growth_chart(
    title: str,
    axis: str,
    unit: str,
    xs: Sequence[float],
    lines: Sequence[GrowthLine],
    *,
    frame: Frame = WIDE,
    **attributes: str,
) -> Markup:
    """The chart over these places of the axis, at least two; `attributes` are those of `markup.drawing`."""
    ys = [end for each in lines for figure in each.figures for end in (figure.low, figure.high)]
    scales = LogScales(xs, [*ys, *(y for each in lines for _, y in each.model)], frame)
    shapes = list(_grid(xs, scales, axis, unit))
    ends = []
    for each in lines:
        colour = COLOURS[each.number % len(COLOURS)]
        shapes += _series(each, scales, colour)
        last_x, last_y = each.model[-1] if each.model else (each.figures[-1].x, each.figures[-1].median)
        ends.append(_End(scales.x(last_x), scales.y(last_y), each.name, colour))
    for each in lines:
        shapes += _model(each, scales)
    shapes += _names(ends, frame)
    return drawing(title, shapes, (frame.width, frame.height), class_="chart growth", **attributes)


def _grid(xs: Sequence[float], scales: LogScales, axis: str, unit: str) -> Iterator[Shape]:
    frame = scales.frame
    bottom, right = frame.height - frame.bottom, frame.width - frame.right
    for x in xs:
        yield line(scales.x(x), frame.top, scales.x(x), bottom, class_="grid")
        yield text(number(x), scales.x(x), bottom + 16, text_anchor="middle")
    for y in scales.ticks():
        yield line(frame.left, scales.y(y), right, scales.y(y), class_="grid")
        yield text(_tick(y), frame.left - 6, scales.y(y) + 4, text_anchor="end")
    yield line(frame.left, bottom, right, bottom, class_="base")
    yield text(axis, (frame.left + right) / 2, frame.height - 8, text_anchor="middle", class_="legend")
    yield text(unit or "count", frame.left, frame.top - 5, class_="legend")


def _tick(y: float) -> str:
    """A figure on the axis: short, and never rounded, so that no two are alike."""
    if y >= 100_000 and (power := log10(y)) == round(power):
        return "10" + f"{power:.0f}".translate(_RAISED)
    return f"{y:g}" if y < 0.1 else number(y)


def _series(drawn: GrowthLine, scales: LogScales, colour: str) -> Iterator[Shape]:
    data = "L".join(f"{scales.x(each.x):.1f},{scales.y(each.median):.1f}" for each in drawn.figures)
    under = {"stroke_width": 4, "stroke_opacity": 0.45} if drawn.model else {"stroke_width": 2}
    yield path(f"M{data}", fill="none", stroke=colour, **under)
    for each in drawn.figures:
        at = scales.x(each.x)
        if each.low != each.high:
            yield line(at, scales.y(each.low), at, scales.y(each.high), stroke=colour, stroke_width=1.2)
        hint = f"{number(each.median)} ({number(each.low)} to {number(each.high)}, {counted(each.n, 'run')})"
        place = f"translate({at:.1f},{scales.y(each.median):.1f})"
        marker = _MARKERS[drawn.number % len(_MARKERS)]
        yield Shape("path", {"d": marker, "fill": colour, "transform": place}, hint=hint)
    if drawn.fit:
        top, bottom = scales.frame.top, scales.frame.height - scales.frame.bottom
        (x1, y1), (x2, y2) = ((scales.x(x), min(bottom, max(top, scales.y(y)))) for x, y in drawn.fit)
        hint = f"fit of {drawn.name}"
        yield line(x1, y1, x2, y2, stroke=colour, stroke_dasharray="6 5", stroke_opacity=0.8, hint=hint)


def _model(drawn: GrowthLine, scales: LogScales) -> Iterator[Shape]:
    if drawn.model:
        data = "L".join(f"{scales.x(x):.1f},{scales.y(y):.1f}" for x, y in drawn.model)
        yield Shape("path", {"d": f"M{data}", "class": "model"}, hint=f"the model of {drawn.name}")


class _End(NamedTuple):
    """Where a line ends, with its name."""

    x: float
    y: float
    name: str
    colour: str


def _names(ends: Sequence[_End], frame: Frame) -> Iterator[Shape]:
    """The designs at the ends of their lines; those that end near each other one below the other."""
    left = sorted(ends, reverse=True)
    while left:
        edge = left[0].x
        near = [each for each in left if each.x > edge - _NAMES_PX]
        left = left[len(near) :]
        yield from _column_of_names(edge, sorted(near, key=lambda end: end.y), frame)


def _column_of_names(edge: float, ends: Sequence[_End], frame: Frame) -> Iterator[Shape]:
    """Right of this place, moved apart, and up from the axis."""
    at: list[float] = []
    for end in ends:
        at.append(max(end.y, at[-1] + _NAME_PX) if at else end.y)
    above = frame.height - frame.bottom + _NAME_PX
    for place in reversed(range(len(at))):
        above = at[place] = min(at[place], above - _NAME_PX)
    for end, beside in zip(ends, at, strict=True):
        yield line(end.x + 4, end.y, edge + 16, beside, stroke=end.colour)
        yield text(end.name, edge + 20, beside + 4, class_="lane")
