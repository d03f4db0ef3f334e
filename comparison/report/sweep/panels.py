"""How the cells of a sweep are laid out, for the terminal and the page alike.

A *panel* is one table of one figure. The last two axes that vary in a
design are its columns and rows, with a panel for each combination of the others; where at most one axis varies,
designs are the columns, so that they stand beside each other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.report.summaries.exponents import power_text
from comparison.report.summaries.figures import number
from comparison.results.sweep import GROUP_SIZE, is_of_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.results.result import Spread
    from comparison.results.sweep import CellData, Exponent, SweepData


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One table of one figure: `cells` by row and column, None where there is no such cell or it was not measured."""

    metric: str
    title: str
    row_axis: str  #: '' if no axis varies
    column_axis: str  #: `design`, or an axis
    rows: Sequence[Any]
    columns: Sequence[Any]
    cells: Sequence[Sequence[Spread | None]]
    exponents: Sequence[Exponent]  #: of this panel's figures along its axes
    designs: Sequence[str]
    numeric: bool  #: whether both axes are numbers

    @property
    def crossed(self) -> bool:
        """Whether the columns are an axis, and not the designs."""
        return self.column_axis != "design"


class Layout:
    """Lays out the figures of one sweep."""

    def __init__(self, data: SweepData) -> None:
        self._cells = data.cells
        self._axes = {each.name: each for each in data.axes}
        self._varying = _varying(self._cells)
        self._exponents: defaultdict[Any, list[Exponent]] = defaultdict(list)
        for each in data.exponents:
            self._exponents[each.metric, each.scenario, each.design, _key(each.axis, each.at)].append(each)

    def panels(self, metric: str) -> Iterator[Panel]:
        """The panels of a metric, scenario by scenario."""
        groups: defaultdict[tuple[str, tuple[str, ...]], list[CellData]] = defaultdict(list)
        for cell in self._cells:
            if metric in cell.figures:
                groups[cell.scenario, self._varying[_kind(cell)]].append(cell)
        for (scenario, axes), cells in groups.items():
            if len(axes) < 2:
                yield self._beside(metric, scenario, axes, cells)
            else:
                yield from self._crossed(metric, scenario, axes, cells)

    def _beside(self, metric: str, scenario: str, axes: tuple[str, ...], cells: Sequence[CellData]) -> Panel:
        """Designs as columns."""
        axis = axes[0] if axes else ""
        designs = list(dict.fromkeys(cell.design for cell in cells))
        rows = self._ordered(axis, cells)
        by_place = {(cell.at.get(axis), cell.design): cell for cell in cells}
        return Panel(
            metric=metric,
            title=scenario,
            row_axis=axis,
            column_axis="design",
            rows=rows,
            columns=designs,
            cells=_filled(by_place, rows, designs, metric),
            exponents=self._growing(metric, axes, cells),
            designs=designs,
            numeric=False,
        )

    def _crossed(self, metric: str, scenario: str, axes: tuple[str, ...], cells: Sequence[CellData]) -> Iterator[Panel]:
        """The last two axes as rows and columns, a panel for each design and combination of the others."""
        *others, row_axis, column_axis = axes
        groups: defaultdict[Any, list[CellData]] = defaultdict(list)
        for cell in cells:
            groups[cell.design, tuple(cell.at.get(name) for name in others)].append(cell)
        for (design, place), group in groups.items():
            rows, columns = self._ordered(row_axis, group), self._ordered(column_axis, group)
            by_place = {(cell.at.get(row_axis), cell.at.get(column_axis)): cell for cell in group}
            where = [f"{name} {value}" for name, value in zip(others, place, strict=True) if value is not None]
            yield Panel(
                metric=metric,
                title=" · ".join([scenario, design, *where]),
                row_axis=row_axis,
                column_axis=column_axis,
                rows=rows,
                columns=columns,
                cells=_filled(by_place, rows, columns, metric),
                exponents=self._growing(metric, (row_axis, column_axis), group),
                designs=[design],
                numeric=all(self._axes[name].numeric for name in (row_axis, column_axis)),
            )

    def _ordered(self, axis: str, cells: Sequence[CellData]) -> list[Any]:
        """The values of an axis that occur, in order; `[None]` without an axis."""
        values = {cell.at.get(axis) for cell in cells}
        known = self._axes[axis].values if axis in self._axes else []
        return [value for value in known if value in values] or [None]

    def _growing(self, metric: str, axes: Sequence[str], cells: Sequence[CellData]) -> list[Exponent]:
        """The exponents along these axes, at the other axes' values in these cells."""
        places = dict.fromkeys(
            (metric, cell.scenario, cell.design, _key(axis, cell.at)) for axis in axes for cell in cells
        )
        return [each for place in places for each in self._exponents.get(place, ())]


def _key(axis: str, at: Mapping[str, Any]) -> tuple[str, frozenset[tuple[str, Any]]]:
    """An axis, and the values of the others."""
    return axis, frozenset((name, value) for name, value in at.items() if name != axis)


def _kind(cell: CellData) -> tuple[str, str, bool]:
    """Cells with the same axes: of one scenario and design, by group size or whole."""
    return cell.scenario, cell.design, GROUP_SIZE in cell.at


def _varying(cells: Sequence[CellData]) -> Mapping[tuple[str, str, bool], tuple[str, ...]]:
    """The axes with several values, by kind of cell."""
    values: defaultdict[Any, dict[str, set[Any]]] = defaultdict(dict)
    for cell in cells:
        of_kind = values[_kind(cell)]
        for name, value in cell.at.items():
            if value is not None:
                of_kind.setdefault(name, set()).add(value)
    return {kind: tuple(name for name, each in axes.items() if len(each) > 1) for kind, axes in values.items()}


def _filled(
    by_place: Mapping[Any, CellData], rows: Sequence[Any], columns: Sequence[Any], metric: str
) -> list[list[Spread | None]]:
    return [
        [by_place[row, column].figures.get(metric) if (row, column) in by_place else None for column in columns]
        for row in rows
    ]


def figure_text(figure: Spread | None) -> tuple[str, str]:
    """A figure's median, and its range where it has one."""
    if figure is None:
        return "-", ""
    if figure.low == figure.high:
        return number(figure.median), ""
    return number(figure.median), f"{number(figure.low)}-{number(figure.high)}"


def growths(panel: Panel) -> list[str]:
    """How a panel's figures grow, in words. Of two axes only what could be fitted: there are many."""
    others = [panel.row_axis, panel.column_axis] if panel.crossed else []
    return [
        growth_text(each, design=not panel.crossed, others=others)
        for each in panel.exponents
        if each.exponent is not None or not panel.crossed
    ]


def growth_text(exponent: Exponent, *, design: bool, others: Sequence[str] = ()) -> str:
    """How a figure grows, in words."""
    where = [f"{name} {exponent.at[name]}" for name in others if exponent.at.get(name) is not None]
    of = " · ".join([*([exponent.design] if design else []), *where])
    before = f"{of}: " if of else ""
    return before + power_text(exponent.axis, exponent, f"{exponent.n} runs")


def computed_otherwise(data: SweepData) -> list[str]:
    """Which cells come from no run of everything, by how they were computed."""
    cells: defaultdict[str, list[str]] = defaultdict(list)
    for cell in data.cells:
        if not is_of_runs(cell.by) and GROUP_SIZE not in cell.at:
            where = [f"{name} {value}" for name, value in cell.at.items() if value is not None]
            cells[cell.by].append(" ".join((cell.design, *where)))
    return [f"by the {by}: {', '.join(found)}" for by, found in cells.items()]
