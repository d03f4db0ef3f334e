"""A chart below the lanes: the designs below each other in one block, all on one scale, and the same as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.layout import Curve, Curves, Label, Step
from comparison.report.drawing.panel import disturbances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from comparison.report.drawing.layout import Block
    from comparison.report.drawing.panel import Panel
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView, Stretch

#: The height of a curve's plot, and what is above it.
PLOT, ABOVE = 44, 3
#: Rows of a chart's table for each design, or for each stretch of time.
ROWS_MIN, ROWS_MAX = 10, 24
_ROUND_MS = tuple(factor * power for power in (100, 1_000, 10_000, 100_000, 1_000_000) for factor in (1, 2, 5))


class Entry(NamedTuple):
    """An entry of a chart's legend: what is drawn with these classes, and in which form."""

    name: str
    classes: str
    shape: str  #: `area`, `line`, `tick`, `phase` or `bar`; a sign stands for itself


class Chart(NamedTuple):
    """What the template draws. `is_timed`: its axis is that of the lanes, and zooms with them."""

    kind: str
    title: str
    note: str
    block: Block
    axis: Block
    legend: Sequence[Entry]
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()
    is_timed: bool = True
    length: int = 0  #: of its own axis


class Plot(NamedTuple):
    """A curve that is drawn for one design: its name, its classes, and its steps."""

    name: str
    classes: str
    steps: Sequence[Step]


def add_plot(
    block: Block,
    panel: Panel,
    values: tuple[int, int],
    plots: Sequence[Plot],
    beside: Sequence[str],
    height: int = PLOT,
) -> int:
    """Curves between two `values` at the block's foot, with the design and some words beside them; its top."""
    low, high = values
    y = block.height + ABOVE
    block.name(panel.view.design, y + 11)
    block.names += [Label("sc", 0, y + 24 + 13 * place, text) for place, text in enumerate(beside)]
    curves = [Curve(each.name, each.classes, steps_of(each.steps, panel.scale), low) for each in plots]
    block.curves.append(Curves(panel.view.design, y, height, high - low, curves, list(disturbances(panel))))
    block.edges.append(y + height)
    block.height = y + height + 3
    return y


def steps_of(steps: Iterable[Step], scale: Scale) -> list[Step]:
    """Steps on the run's clock, in order, as steps on the axis; neighbours of the same value are one."""
    found: list[Step] = []
    for each in steps:
        from_, until = scale.unit(each.from_ms), scale.unit(each.until_ms)
        if found and (found[-1].until_ms, found[-1].value) == (from_, each.value):
            found[-1] = found[-1]._replace(until_ms=until)
        elif until > from_:
            found.append(Step(from_, until, each.value))
    return found


def round_of(view: RunView, stretch: Stretch) -> tuple[int, str]:
    """The rebalance of the group that a stretch belongs to: its place, and how the lanes call it."""
    begun = [each for each in view.rounds if each.from_ms <= stretch.until_ms]
    if not begun:
        return 0, "-"
    last = begun[-1]
    return last.number, last.shown


def common_scale(panels: Sequence[Panel]) -> Scale:
    """The axis of all designs, for moments as distances from its 0."""
    return replace(panels[0].scale, zero_ms=0.0)


def rows_max(panels: Sequence[Panel]) -> int:
    """Rows of a chart's table, fewer on a page that draws fewer bars."""
    return max(ROWS_MIN, min(ROWS_MAX, min(panel.marks_max for panel in panels) // 10))


def in_designs(drawn: Iterable[tuple[Panel, object]]) -> str:
    """How the title of a block ends."""
    return f"in {', '.join(panel.view.design for panel, _ in drawn)}. The table below says the same."


def rows_of_windows(panels: Sequence[Panel], text: Callable[[Panel, int, int], str]) -> list[list[str]]:
    """A row for each of some stretches of the axis, with what `text` says of each run between two distances from its 0;
    '' where a run had not begun or had ended.
    """
    stretches = windows(panels, rows_max(panels)) if any(panel.view.course for panel in panels) else ()
    return [
        [f"{low / 1000:g} to {high / 1000:g}", *(text(panel, low, high) for panel in panels)] for low, high in stretches
    ]


def windows(panels: Sequence[Panel], most: int) -> list[tuple[int, int]]:
    """Round stretches of the common axis, in milliseconds from its 0, that cover what is known of the course."""
    moments = [
        moment - panel.scale.zero_ms
        for panel in panels
        if panel.view.course
        for moment in (panel.view.course[0].from_ms, panel.view.course[-1].until_ms)
    ]
    low, high = min(moments), max(moments)
    step = next((each for each in _ROUND_MS if (high - low) / each <= most), _ROUND_MS[-1])
    first, last = int(low // step), int(-(-high // step))
    return [(number * step, (number + 1) * step) for number in range(first, last)][: 2 * most]
