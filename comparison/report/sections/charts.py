"""The charts below the lanes of a scenario, in their order; each says something that its runs have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.barrier import barrier
from comparison.report.drawing.committed import committed
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.phase_bars import phase_bars
from comparison.report.drawing.records import again, delivered, lag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.drawing.chart import Chart
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

_CHARTS = (phase_bars, barrier, delivered, lag, again, committed)


def charts(views: Sequence[RunView], axes: Sequence[Scale], styles: Mapping[str, str], marks_max: int) -> list[Chart]:
    """The charts of a scenario's runs, on the axes of their lanes."""
    panels = [Panel(view, scale, styles, marks_max) for view, scale in zip(views, axes, strict=True)]
    return [chart for made in _CHARTS if (chart := made(panels)) is not None]
