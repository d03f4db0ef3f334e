"""A panel along one numeric axis as lines on logarithmic scales, one line a design, with the fit dashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing import growth
from comparison.report.drawing.growth import GrowthLine, Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from comparison.report.sweep.panels import Panel
    from comparison.results.result import Spread


def why_not_drawn(panel: Panel) -> str:
    """Why there is no chart; '' if there is one."""
    if panel.crossed or not all(isinstance(x, int | float) for x in panel.rows):
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


def _drawn(panel: Panel) -> list[int]:
    """The columns whose figures all have logarithms, with at least two of them."""
    found = []
    for place in range(len(panel.columns)):
        cells = [cell for cell in _column(panel, place) if cell is not None]
        if len(cells) > 1 and all(cell.low > 0 for cell in cells):
            found.append(place)
    return found


def _column(panel: Panel, place: int) -> list[Spread | None]:
    return [row[place] for row in panel.cells]


def _line(panel: Panel, column: int) -> GrowthLine:
    figures = [
        Measured(x, cell.median, cell.low, cell.high, cell.n)
        for x, cell in zip(panel.rows, _column(panel, column), strict=True)
        if cell is not None
    ]
    design = panel.columns[column]
    return GrowthLine(str(design), column, figures, fit=_fit(panel, design, [each.x for each in figures]))


def _fit(panel: Panel, design: str, xs: Sequence[float]) -> Sequence[tuple[float, float]]:
    """Both ends of the fitted power; none if it could not be fitted."""
    for each in panel.exponents:
        if each.design == design and each.axis == panel.row_axis:
            return [(x, y) for x in (min(xs), max(xs)) if (y := each.fitted(x)) is not None]
    return ()
