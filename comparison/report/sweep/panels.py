"""How the cells of a sweep are laid out, for the terminal and the page alike.

Reads the plain mapping that sweep.json holds. A *panel* is one table of one figure. The last two axes that vary in a
design are its columns and rows, with a panel for each combination of the others; where at most one axis varies,
designs are the columns, so that they stand beside each other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.report.figures import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The version of sweep.json that the report knows.
SCHEMA_VERSION = 1
#: The axis of cells that are parts of others, by the size of the group.
GROUP_SIZE = "group-size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One table of one figure: `cells` by row and column, None where there is no such cell or it was not measured."""

    metric: str
    title: str
    row_axis: str  #: '' if no axis varies
    column_axis: str  #: `design`, or an axis
    rows: Sequence[Any]
    columns: Sequence[Any]
    cells: Sequence[Sequence[Mapping[str, Any] | None]]
    exponents: Sequence[Mapping[str, Any]]  #: of this panel's figures along its axes
    designs: Sequence[str]
    numeric: bool  #: whether both axes are numbers

    @property
    def crossed(self) -> bool:
        """Whether the columns are an axis, and not the designs."""
        return self.column_axis != "design"


def panels(data: Mapping[str, Any], metric: str) -> Iterator[Panel]:
    """The panels of a metric, scenario by scenario."""
    by_scenario: defaultdict[str, defaultdict[tuple[str, ...], list[Mapping[str, Any]]]]
    by_scenario = defaultdict(lambda: defaultdict(list))
    varying = _varying(data)
    for cell in data["cells"]:
        if metric in cell["figures"]:
            sized = GROUP_SIZE in cell["at"]
            axes = varying[cell["scenario"], cell["design"], sized]
            by_scenario[cell["scenario"]][axes].append(cell)
    for scenario, by_axes in by_scenario.items():
        for axes, cells in by_axes.items():
            if len(axes) < 2:
                yield _beside(data, metric, scenario, axes, cells)
            else:
                yield from _crossed(data, metric, scenario, axes, cells)


def _varying(data: Mapping[str, Any]) -> Mapping[tuple[str, str, bool], tuple[str, ...]]:
    """The axes with several values, by scenario, design, and whether cells are split by group size."""
    values: defaultdict[Any, dict[str, set[Any]]] = defaultdict(dict)
    for cell in data["cells"]:
        for name, value in cell["at"].items():
            if value is not None:
                place = (cell["scenario"], cell["design"], GROUP_SIZE in cell["at"])
                values[place].setdefault(name, set()).add(value)
    found = {place: tuple(name for name, each in axes.items() if len(each) > 1) for place, axes in values.items()}
    return defaultdict(tuple, found)


def _beside(
    data: Mapping[str, Any], metric: str, scenario: str, axes: tuple[str, ...], cells: Sequence[Mapping[str, Any]]
) -> Panel:
    """Designs as columns."""
    axis = axes[0] if axes else ""
    designs = list(dict.fromkeys(cell["design"] for cell in cells))
    rows = _ordered(data, axis, {cell["at"].get(axis) for cell in cells})
    by_place = {(cell["at"].get(axis), cell["design"]): cell for cell in cells}
    return Panel(
        metric=metric,
        title=scenario,
        row_axis=axis,
        column_axis="design",
        rows=rows,
        columns=designs,
        cells=_filled(by_place, rows, designs, metric),
        exponents=_exponents(data, metric, scenario, designs, axes, cells),
        designs=designs,
        numeric=False,
    )


def _crossed(
    data: Mapping[str, Any], metric: str, scenario: str, axes: tuple[str, ...], cells: Sequence[Mapping[str, Any]]
) -> Iterator[Panel]:
    """The last two axes as rows and columns, a panel for each design and combination of the others."""
    *others, row_axis, column_axis = axes
    groups: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for cell in cells:
        groups[cell["design"], tuple(cell["at"].get(name) for name in others)].append(cell)
    for (design, place), group in groups.items():
        rows = _ordered(data, row_axis, {cell["at"].get(row_axis) for cell in group})
        columns = _ordered(data, column_axis, {cell["at"].get(column_axis) for cell in group})
        by_place = {(cell["at"].get(row_axis), cell["at"].get(column_axis)): cell for cell in group}
        where = [f"{name} {value}" for name, value in zip(others, place, strict=True) if value is not None]
        yield Panel(
            metric=metric,
            title=" · ".join([scenario, design, *where]),
            row_axis=row_axis,
            column_axis=column_axis,
            rows=rows,
            columns=columns,
            cells=_filled(by_place, rows, columns, metric),
            exponents=_exponents(data, metric, scenario, [design], (row_axis, column_axis), group),
            designs=[design],
            numeric=_numeric(data, row_axis) and _numeric(data, column_axis),
        )


def _filled(
    by_place: Mapping[Any, Mapping[str, Any]], rows: Sequence[Any], columns: Sequence[Any], metric: str
) -> list[list[Mapping[str, Any] | None]]:
    return [
        [by_place[row, column]["figures"].get(metric) if (row, column) in by_place else None for column in columns]
        for row in rows
    ]


def _ordered(data: Mapping[str, Any], axis: str, values: set[Any]) -> list[Any]:
    order = next((each["values"] for each in data["axes"] if each["name"] == axis), [None])
    return [value for value in order if value in values] or [None]


def _numeric(data: Mapping[str, Any], axis: str) -> bool:
    return any(each["name"] == axis and each["numeric"] for each in data["axes"])


def _exponents(
    data: Mapping[str, Any],
    metric: str,
    scenario: str,
    designs: Sequence[str],
    axes: Sequence[str],
    cells: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Those of the figure along these axes, at the other axes' values in these cells."""
    places = [(cell["design"], cell["at"]) for cell in cells]
    return [
        each
        for each in data["exponents"]
        if (each["metric"], each["scenario"]) == (metric, scenario)
        and each["design"] in designs
        and each["axis"] in axes
        and any(
            design == each["design"] and {n: v for n, v in at.items() if n != each["axis"]} == each["at"]
            for design, at in places
        )
    ]


def figure_text(figure: Mapping[str, Any] | None) -> tuple[str, str]:
    """A figure's median, and its range where it has one."""
    if figure is None:
        return "-", ""
    if figure["low"] == figure["high"]:
        return number(figure["median"]), ""
    return number(figure["median"]), f"{number(figure['low'])}-{number(figure['high'])}"


def growths(panel: Panel) -> list[str]:
    """How a panel's figures grow, in words. Of two axes only what could be fitted: there are many."""
    others = [panel.row_axis, panel.column_axis] if panel.crossed else []
    return [
        growth_text(each, design=not panel.crossed, others=others)
        for each in panel.exponents
        if each["exponent"] is not None or not panel.crossed
    ]


def growth_text(exponent: Mapping[str, Any], *, design: bool, others: Sequence[str] = ()) -> str:
    """How a figure grows, in words."""
    where = [f"{name} {exponent['at'][name]}" for name in others if exponent["at"].get(name) is not None]
    of = " · ".join([*([exponent["design"]] if design else []), *where])
    before = f"{of}: " if of else ""
    if exponent["exponent"] is None:
        return f"{before}no exponent of {exponent['axis']} ({exponent['reason']})"
    if exponent["exponent"] == exponent["low"] == exponent["high"] == 0:
        return f"{before}the same at every value of {exponent['axis']} ({exponent['n']} runs)"
    if exponent["low"] is None:
        interval = f"{exponent['n']} runs: no interval"
    else:
        flat = ", 0 included" if exponent["low"] <= 0 <= exponent["high"] else ""
        interval = f"95%: {_rounded(exponent['low'])} to {_rounded(exponent['high'])}{flat}; {exponent['n']} runs"
    return f"{before}~ {exponent['axis']}^{_rounded(exponent['exponent'])} ({interval})"


def _rounded(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00")


def check_version(data: Mapping[str, Any]) -> None:
    """Raise ValueError if sweep.json has a version that the report does not know."""
    if data["schema_version"] != SCHEMA_VERSION:
        raise ValueError(
            f"the sweep has schema version {data['schema_version']}, this program knows {SCHEMA_VERSION}: analyse it "
            "again with --analyse-only"
        )
