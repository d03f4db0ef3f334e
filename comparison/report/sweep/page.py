"""A sweep as one HTML file: heat maps, lines, tables; no script, nothing fetched.

`sweep.html.j2` says how it is shown, and escapes
every text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import render
from comparison.report.summaries.figures import MARKS, SIMULATED
from comparison.report.sweep.choice import POLICY, chosen_by
from comparison.report.sweep.choice_words import CLASSES
from comparison.report.sweep.detection import detection_chart
from comparison.report.sweep.growth import along_numbers, growth_chart, left_off, why_not_drawn
from comparison.report.sweep.heat_map import heat_map, session_of, why_flat
from comparison.report.sweep.panels import Layout, figure_text, growths
from comparison.results.sweep import GROUP_SIZE

if TYPE_CHECKING:
    from markupsafe import Markup

    from comparison.report.sweep.panels import Panel
    from comparison.results.meanings import Meaning
    from comparison.results.sweep import AxisData, CellData, SweepData

#: Metrics that were not asked for have tables only, and no more panels than this.
_OTHER_PANELS_MAX = 24
#: Axes with columns of their own in the list of combinations, or none there.
_OWN_COLUMNS = ("scenario", "design", GROUP_SIZE)


class _Table(NamedTuple):
    """A panel: its picture if it has one, its figures with their ranges, and how they grow."""

    title: str
    picture: Markup | None
    remark: str
    caption: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]
    growth: list[str]
    growth_open: bool  #: shown without a click


class _Figures(NamedTuple):
    """A metric's section."""

    name: str
    unit: str
    meaning: str
    tables: list[_Table]
    left_off: int


class _Cell(NamedTuple):
    """A cell's row in the list of all."""

    scenario: str
    design: str
    at: list[str]
    by: str
    runs: str
    verdicts: list[tuple[str, int]]
    broken: list[tuple[str, int]]


def sweep_page(data: SweepData) -> str:
    """The whole file."""
    shown, session_ms, layout = set(data.shown), session_of(data), Layout(data)
    lively = {name for cell in data.cells for name, figure in cell.figures.items() if figure.high}
    varied = [each for each in data.axes if each.name not in _OWN_COLUMNS and len(each.values) > 1]
    return str(
        render(
            "sweep/sweep.html.j2",
            policy=POLICY,
            marks=MARKS,
            classes=CLASSES,
            data=data,
            clock=SIMULATED if data.simulated else "",
            axes=varied,
            detection=detection_chart(data),
            chosen=chosen_by(data),
            shown=[_figures(data.metrics[name], name, layout, session_ms) for name in data.shown],
            others=[_others(data.metrics[name], name, layout) for name in data.metrics if name in lively - shown],
            cells=[_cell(cell, varied) for cell in data.cells if GROUP_SIZE not in cell.at],
        )
    )


def _figures(about: Meaning, name: str, layout: Layout, session_ms: float | None) -> _Figures:
    tables = [_table(panel, about.unit, session_ms, drawn=True) for panel in layout.panels(name)]
    return _Figures(name, about.unit, about.meaning, tables, 0)


def _others(about: Meaning, name: str, layout: Layout) -> _Figures:
    found = list(layout.panels(name))
    tables = [_table(panel, about.unit, None, drawn=False) for panel in found[:_OTHER_PANELS_MAX]]
    return _Figures(name, about.unit, about.meaning, tables, len(found) - len(tables))


def _table(panel: Panel, unit: str, session_ms: float | None, *, drawn: bool) -> _Table:
    picture, remark = _picture(panel, unit, session_ms) if drawn else (None, "")
    return _Table(
        title=panel.title,
        picture=picture,
        remark=remark,
        caption=f"Rows: {panel.row_axis}, columns: {panel.column_axis}" if panel.crossed else "Median and range",
        corner="" if panel.crossed else panel.row_axis,
        columns=[str(column) for column in panel.columns],
        rows=[
            ("" if row is None else str(row), [figure_text(cell) for cell in cells])
            for row, cells in zip(panel.rows, panel.cells, strict=True)
        ],
        growth=growths(panel),
        growth_open=not panel.crossed,
    )


def _picture(panel: Panel, unit: str, session_ms: float | None) -> tuple[Markup | None, str]:
    """A heat map, or lines; and what is not in it."""
    if panel.numeric:
        flat = why_flat(panel)
        return (None, flat) if flat else (heat_map(panel, unit, session_ms), "")
    if not panel.row_axis:
        return None, ""
    panel = along_numbers(panel)
    if reason := why_not_drawn(panel):
        return None, "" if panel.crossed else reason
    without = left_off(panel)
    remark = f"not drawn, because a figure is 0 or missing: {', '.join(without)}" if without else ""
    return growth_chart(panel, unit), remark


def _cell(cell: CellData, axes: list[AxisData]) -> _Cell:
    return _Cell(
        scenario=cell.scenario,
        design=cell.design,
        at=["-" if cell.at.get(axis.name) is None else str(cell.at[axis.name]) for axis in axes],
        by=cell.by,
        runs=f"{cell.runs}" + (f", {cell.failed} failed" if cell.failed else ""),
        verdicts=sorted(cell.verdicts.items()),
        broken=list(cell.broken.items()),
    )
