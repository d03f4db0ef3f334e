"""How soon a crash is detected against what heartbeats cost: a line a design, where a sweep varies either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.growth import GrowthLine, Measured, growth_chart, round_values

if TYPE_CHECKING:
    from markupsafe import Markup

    from comparison.results.sweep import CellData, SweepData

DETECTED, COST = "crash.detect_ms", "crash.heartbeats_per_s"
TITLE = "time to detect a crash by heartbeats a second, both logarithmic"


def detection_chart(data: SweepData) -> Markup | None:
    """The chart; None if no design has two cells with both figures, of different costs."""
    by_design: dict[str, list[CellData]] = {}
    for cell in data.cells:
        if DETECTED in cell.figures and COST in cell.figures:
            by_design.setdefault(cell.design, []).append(cell)
    lines = [
        GrowthLine(design, place, sorted(_measured(cell) for cell in cells))
        for place, (design, cells) in enumerate(by_design.items())
    ]
    lines = [each for each in lines if len({point.x for point in each.figures}) > 1]
    costs = [point.x for each in lines for point in each.figures]
    if not costs or min(costs) <= 0 or any(point.low <= 0 for each in lines for point in each.figures):
        return None
    return growth_chart(TITLE, "heartbeats a second, of all members", "ms", round_values(costs), lines)


def _measured(cell: CellData) -> Measured:
    return Measured.of(cell.figures[COST].median, cell.figures[DETECTED])
