"""Draw how a figure grows, a line for each of several designs or links, as a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.growth import Frame, growth_chart
from comparison.report.summaries.figures import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.drawing.growth import GrowthLine

#: As wide as the other figures of the docs, which fit a telephone.
_FRAME = Frame(410, 290, left=46, top=20, right=94, bottom=38)
_SHOWN = {"width": "620", "height": "439"}
_STYLE = """
svg { background: #FFFFFF; } text { font: 11px system-ui, sans-serif; fill: #1b1b1b; }
.legend { fill: #5f5f5f; } .grid { stroke: #dddddd; } .base { stroke: #808080; }
.model { fill: none; stroke: #1b1b1b; stroke-width: 1.2px; stroke-dasharray: 5 4; }
.lane { paint-order: stroke; stroke: #FFFFFF; stroke-width: 4px; }
@media (prefers-color-scheme: dark) {
svg { background: #16191d; } text { fill: #e8e8e8; } .legend { fill: #a8a8a8; } .grid { stroke: #33383e; }
.base { stroke: #808080; } .model { stroke: #e8e8e8; } .lane { stroke: #16191d; } }
"""


class Chart(NamedTuple):
    """What one picture shows."""

    title: str
    axis: str
    unit: str
    lines: Sequence[GrowthLine]
    xs: Sequence[float]


def picture(chart: Chart) -> str:
    """A picture as a file of its own."""
    title, axis, unit, lines, xs = chart
    says = "; ".join(f"{each.name}: {_said(each)}" for each in lines)
    return str(
        growth_chart(title, axis, unit, xs, lines, frame=_FRAME, style=_STYLE, says=f"{title}. {says}", **_SHOWN)
    )


def _said(drawn: GrowthLine) -> str:
    return ", ".join(f"{number(at.median)} at {number(at.x)}" for at in drawn.figures)
