"""How the cost of a change grows with the group: a chart for each figure, its fits in words, and a table of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.growth import GrowthLine, Measured, growth_chart
from comparison.report.summaries.exponents import power_text
from comparison.report.summaries.figures import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from comparison.results.result import Growth, GrowthPoint, Result

AXIS = "N"
#: What the figures of result.json are, in words.
MEANINGS: Mapping[str, str] = {
    "operations": "ZooKeeper operations and group requests",
    "notifications": "notifications",
}
#: An interval of fewer points has a quantile of Student's distribution above 4.
POINTS_FEW = 5


class Grown(NamedTuple):
    """The panels of a scenario, and what holds for all of them."""

    panels: Sequence[GrowthPanel]
    remark: str


class GrowthPanel(NamedTuple):
    """One figure of one change; `picture` is None where no design has two figures above 0."""

    title: str
    picture: Markup | None
    fits: Sequence[str]
    remarks: Sequence[str]
    designs: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, Sequence[str]]]]]  #: a size, and of each design what was measured


def grown(scenario: str, result: Result) -> Grown | None:
    """None if no change is repeated at several sizes."""
    panels: dict[tuple[str, str], dict[str, Growth]] = {}
    for each in result.growths:
        if each.scenario == scenario:
            # Of several results, the first that has the design is shown.
            panels.setdefault((each.change, each.figure), {}).setdefault(each.design, each)
    if not panels:
        return None
    return Grown(
        [_panel(change, figure, by_design) for (change, figure), by_design in panels.items()],
        _few([each for by_design in panels.values() for each in by_design.values()]),
    )


def _panel(change: str, figure: str, by_design: Mapping[str, Growth]) -> GrowthPanel:
    what = MEANINGS.get(figure, figure)
    sizes = sorted({point.members for each in by_design.values() for point in each.points})
    lines = [
        _line(design, place, each)
        for place, (design, each) in enumerate(by_design.items())
        if len(each.points) > 1 and all(_ends(point)[0] > 0 for point in each.points)
    ]
    without = [design for design in by_design if design not in {each.name for each in lines}]
    title = f"{what[0].upper()}{what[1:]} of one {change}"
    chart = f"{title} by the size of the group, both logarithmic; dashed: the model"
    axis = f"{AXIS}: members after the {change}"
    return GrowthPanel(
        title=title,
        picture=growth_chart(chart, axis, "count", sizes, lines) if lines and min(sizes) > 0 else None,
        fits=[f"{design}: {_fit(each)}" for design, each in by_design.items() if any(p.high for p in each.points)],
        remarks=_zeros(figure, without, by_design),
        designs=list(by_design),
        rows=[(number(size), [_cell(size, each) for each in by_design.values()]) for size in sizes],
    )


def _line(design: str, place: int, growth: Growth) -> GrowthLine:
    points = growth.points
    figures = [Measured(each.members, each.median, each.low, each.high, each.n) for each in points]
    model = [(each.members, each.model) for each in points if each.model is not None and each.model > 0]
    return GrowthLine(design, place, figures, model=model if len(model) > 1 else ())


def _ends(point: GrowthPoint) -> tuple[float, float]:
    return point.low, point.high


def _fit(growth: Growth) -> str:
    runs = len(growth.runs)
    return power_text(AXIS, growth, f"{growth.n} points" + (f" of {runs} runs" if runs > 1 else ""))


def _zeros(figure: str, without: Sequence[str], by_design: Mapping[str, Growth]) -> list[str]:
    """The designs without a line."""
    none = [design for design in without if not any(point.high for point in by_design[design].points)]
    others = [design for design in without if design not in none]
    found = [f"No {figure} in {', '.join(none)}: 0 has no logarithm."] if none else []
    return found + ([f"Not drawn, because a figure is 0 or missing: {', '.join(others)}."] if others else [])


def _few(growths: Sequence[Growth]) -> str:
    """What too few points mean for the intervals; '' where there are enough."""
    few = min((each.n for each in growths if each.exponent is not None), default=POINTS_FEW)
    if few >= POINTS_FEW:
        return ""
    says = f"{few} points have no interval" if few <= 2 else f"An interval of {few} points is wide"
    return f"{says}: --repeat adds runs, rebalance-lab sweep adds sizes."


def _cell(size: int, growth: Growth) -> tuple[str, list[str]]:
    """What was measured, its range, and the model's count."""
    point = next((each for each in growth.points if each.members == size), None)
    if point is None:
        return "-", ["not counted"]
    low, high = _ends(point)
    spread = f"{number(low)}-{number(high)}" if low != high else ""
    model = "no prediction" if point.model is None else f"model: {number(point.model)}"
    return number(point.median), [spread, model]
