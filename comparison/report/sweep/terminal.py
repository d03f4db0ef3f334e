"""A sweep on a terminal: a table for each panel of the metrics that are shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from comparison.report.summaries.figures import SIMULATED
from comparison.report.sweep.panels import Layout, computed_otherwise, figure_text, growths
from comparison.screen.counted import counted
from comparison.screen.text_table import Column, TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from comparison.report.sweep.panels import Panel
    from comparison.results.sweep import SweepData

#: More lines of growth than these are left to the page and the tables.
_GROWTHS_MAX = 6


def render_sweep(data: SweepData, console: Console) -> None:
    """Print the tables of the metrics shown."""
    layout = Layout(data)
    if data.simulated:
        console.print(Text(SIMULATED))
    for metric in data.shown:
        about = data.metrics[metric]
        unit = f" ({about.unit})" if about.unit else ""
        console.print(Text(f"\n{metric}{unit}: {about.meaning}", style="bold"))
        for panel in layout.panels(metric):
            crossed = f"; rows: {panel.row_axis}, columns: {panel.column_axis}" if panel.crossed else ""
            console.print(Text(f"{panel.title}{crossed}"))
            console.print(_table(panel))
            for line in _growths(panel):
                console.print(Text(f"  {line}"))
    for line in computed_otherwise(data):
        console.print(Text(line))
    for line in _broken(data):
        console.print(Text(line))
    if missing := [cell for cell in data.cells if not cell.runs]:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        console.print(Text(f"\nwithout a complete run: {missing[0].cell}{others}"))


def _broken(data: SweepData) -> Iterator[str]:
    """Which designs broke a promise in how many runs."""
    promises: dict[str, Counter[str]] = {}
    for cell in {each.cell: each for each in data.cells}.values():
        for promise, runs in cell.broken.items():
            promises.setdefault(promise, Counter())[cell.design] += runs
    for promise, designs in promises.items():
        by = ", ".join(f"{design} in {counted(runs, 'run')}" for design, runs in designs.items())
        yield f"broken: {promise}: {by}"


def _table(panel: Panel) -> TextTable:
    # Two long names in a corner would take the room of the figures.
    corner = Column(heading="" if panel.crossed else panel.row_axis, is_label=True, wraps=True)
    columns = (Column(heading=str(column), is_right=True) for column in panel.columns)
    table = TextTable([corner, *columns], gaps=(2, 1), is_ruled=False)
    for row, cells in zip(panel.rows, panel.cells, strict=True):
        shown = []
        for cell in cells:
            median, spread = figure_text(cell)
            shown.append(f"{median} ({spread})" if spread else median)
        table.add("" if row is None else str(row), *shown)
    return table


def _growths(panel: Panel) -> list[str]:
    lines = growths(panel)
    if len(lines) > _GROWTHS_MAX:
        return [*lines[:_GROWTHS_MAX], f"... and {len(lines) - _GROWTHS_MAX} more in sweep.html"]
    return lines
