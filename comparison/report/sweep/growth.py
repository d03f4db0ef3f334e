"""A panel along one numeric axis as lines on logarithmic scales: one a design, with the fit dashed, or one a word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from comparison.report.drawing import growth
from comparison.report.drawing.growth import GrowthLine, Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from comparison.report.sweep.panels import Panel
    from comparison.results.result import Spread


def along_numbers(panel: Panel) -> Panel:
    """The panel, or if its rows are words and its columns numbers, the same with rows and columns exchanged."""
    if not panel.crossed or _are_numbers(panel.rows) or not _are_numbers(panel.columns):
        return panel
    return replace(
        panel,
        row_axis=panel.column_axis,
        column_axis=panel.row_axis,
        rows=panel.columns,
        columns=panel.rows,
        cells=list(zip(*panel.cells, strict=True)),
    )


def why_not_drawn(panel: Panel) -> str:
    """Why there is no chart; '' if there is one."""
    if not _are_numbers(panel.rows):
        return "no chart: the axis is no number"
    if len(panel.rows) < 2 or min(panel.rows) <= 0:
        return "no chart: fewer than two values above 0"
    return "" if _drawn(panel) else "no chart: no design has only figures above 0"


def growth_chart(panel: Panel, unit: str) -> Markup:
    """The chart; `why_not_drawn` must be ''."""
    title = f"{panel.metric} by {panel.row_axis}, both logarithmic: {panel.title}"
    lines = [_line(panel, column) for column in _drawn(panel)]
    return growth.growth_chart(title, panel.row_axis, unit, panel.rows, lines)


def left_off(panel: Panel) -> list[str]:
    """The designs without a line, because a figure is 0."""
    drawn = _drawn(panel)
    return [str(design) for place, design in enumerate(panel.columns) if place not in drawn]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _drawn(panel: Panel) -> list[int]:
    """The columns with two figures or more, which all have logarithms; words may also have 0, unless all have."""
    found = []
    for place in range(len(panel.columns)):
        cells = [cell for cell in _column(panel, place) if cell is not None]
        if len(cells) > 1 and (panel.crossed or all(cell.low > 0 for cell in cells)):
            found.append(place)
    has_any = any(cell.high > 0 for place in found for cell in _column(panel, place) if cell is not None)
    return found if has_any else []


def _column(panel: Panel, place: int) -> list[Spread | None]:
    return [row[place] for row in panel.cells]


def _line(panel: Panel, column: int) -> GrowthLine:
    figures = [
        Measured.of(x, cell) for x, cell in zip(panel.rows, _column(panel, column), strict=True) if cell is not None
    ]
    name = panel.columns[column]
    fit = () if panel.crossed else _fit(panel, name, [each.x for each in figures])
    return GrowthLine(str(name), column, figures, fit=fit)


def _fit(panel: Panel, design: str, xs: Sequence[float]) -> Sequence[tuple[float, float]]:
    """Both ends of the fitted power; none if it could not be fitted."""
    for each in panel.exponents:
        if each.design == design and each.axis == panel.row_axis:
            return [(x, y) for x in (min(xs), max(xs)) if (y := each.fitted(x)) is not None]
    return ()
