"""How long a client waited before changes and during them: design by design, size by size, on a logarithmic scale.

Each pair stands for one change: on the left before it, hollow; on the right during it, filled. The marker is the
median, the line above it ends at the 99th percentile.
"""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.growth import COLOURS, log_ticks
from comparison.report.markup import Shape, drawing, line, text
from comparison.report.summaries.figures import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

HEIGHT = 240
LEFT, TOP, RIGHT, BOTTOM = 64, 30, 12, 52
#: A pair, the two in it, and the gap between designs.
_PAIR_PX, _APART_PX, _GAP_PX = 46, 16, 26
_WIDTH_MIN = 520
_RADIUS = 4.0


class Waited(NamedTuple):
    """Median and 99th percentile, in ms; both above 0."""

    p50_ms: float
    p99_ms: float


class Pair(NamedTuple):
    """One change; None: nothing was measured."""

    name: str  #: below it
    before: Waited | None
    during: Waited | None


class LatencyColumn(NamedTuple):
    """The changes of one design."""

    name: str
    pairs: Sequence[Pair]


def latency_chart(title: str, columns: Sequence[LatencyColumn]) -> Markup:
    """The chart; there is at least one pair, in which something was measured."""
    known = [each for column in columns for pair in column.pairs for each in pair[1:] if isinstance(each, Waited)]
    low, high = log10(min(each.p50_ms for each in known)), log10(max(each.p99_ms for each in known))
    room = max(0.06 * (high - low), 0.15)
    scale = _Scale(low - room, high + room)
    widths = [_PAIR_PX * len(column.pairs) + _GAP_PX for column in columns]
    width = max(_WIDTH_MIN, LEFT + sum(widths) + RIGHT)
    shapes = [*_legend(), *_grid(scale, width)]
    x = LEFT + _GAP_PX / 2
    for place, (column, each) in enumerate(zip(columns, widths, strict=True)):
        shapes += _column(column, x, scale, COLOURS[place % len(COLOURS)])
        x += each
    return drawing(title, shapes, (width, HEIGHT), class_="chart latency", width=width)


class _Scale(NamedTuple):
    """Logarithms of milliseconds to pixels."""

    low: float
    high: float

    def y(self, ms: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(ms) - self.low) / (self.high - self.low)


def _legend() -> Iterator[Shape]:
    yield text("ms", LEFT - 6, 16, text_anchor="end", class_="legend")
    for x, name, is_filled in ((LEFT + 4, "before the change", False), (LEFT + 138, "during it", True)):
        yield _marker(x + 4, 12, "var(--ink)", is_filled=is_filled)
        yield text(name, x + 14, 16, class_="legend")
    yield text("marker: median; end of the line: p99", LEFT + 226, 16, class_="legend")


def _grid(scale: _Scale, width: float) -> Iterator[Shape]:
    for ms in log_ticks(scale.low, scale.high):
        yield line(LEFT, scale.y(ms), width - RIGHT, scale.y(ms), class_="grid")
        yield text(number(ms), LEFT - 6, scale.y(ms) + 4, text_anchor="end")
    yield line(LEFT, HEIGHT - BOTTOM, width - RIGHT, HEIGHT - BOTTOM, class_="base")


def _column(column: LatencyColumn, left: float, scale: _Scale, colour: str) -> Iterator[Shape]:
    for place, pair in enumerate(column.pairs):
        middle = left + _PAIR_PX * (place + 0.5)
        for waited, x, stage in ((pair.before, -_APART_PX / 2, "before"), (pair.during, _APART_PX / 2, "during")):
            if waited is not None:
                yield from _waited(waited, middle + x, scale, colour, f"{column.name}, {pair.name}, {stage}")
        yield text(pair.name, middle, HEIGHT - BOTTOM + 16, text_anchor="middle")
    middle = left + _PAIR_PX * len(column.pairs) / 2
    yield text(column.name, middle, HEIGHT - BOTTOM + 36, text_anchor="middle", class_="lane")


def _waited(waited: Waited, x: float, scale: _Scale, colour: str, what: str) -> Iterator[Shape]:
    is_filled = what.endswith("during")
    low, high = scale.y(waited.p50_ms), scale.y(waited.p99_ms)
    hint = f"{what}: median {number(waited.p50_ms)} ms, p99 {number(waited.p99_ms)} ms"
    yield line(x, low, x, high, stroke=colour, stroke_width=3 if is_filled else 1.2, hint=hint)
    yield line(x - 5, high, x + 5, high, stroke=colour, stroke_width=2)
    yield _marker(x, low, colour, is_filled=is_filled, hint=hint)


def _marker(x: float, y: float, colour: str, *, is_filled: bool, hint: str = "") -> Shape:
    attributes: dict[str, object] = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": _RADIUS}
    return Shape(
        "circle",
        {**attributes, "fill": colour if is_filled else "var(--paper)", "stroke": colour, "stroke-width": 1.6},
        hint=hint,
    )
