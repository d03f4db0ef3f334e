"""Draw the pictures of `docs/large-groups.md`, and fill its places, from `docs/large-groups.json`.

`docs.generators.large_records` makes that file. Points are medians over seeds, and bars their ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.growth import GrowthLine, Measured
from comparison.report.summaries.figures import number
from comparison.report.sweep.detection import COST, DETECTED
from comparison.sweep.large import Method
from docs.generators.growth_picture import Chart, picture
from docs.generators.large_records import read_records
from docs.generators.pages import DOCS, FIGURES, filled, markdown_table, with_range
from kernel.designs import DESIGN_NAMES, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from comparison.results.result import Spread
    from docs.generators.large_records import CellRecord

    Records = Mapping[str, Sequence[CellRecord]]

PAGE = DOCS / "large-groups.md"
_TIMEOUT, _MEMBERS, _LINK = "session-timeout", "members", "link"
LINKS = ("loopback", "zone", "region")
_SIZES = ("sizes", "larger", "largest", "zookeeper")
_CHANGES = ("join", "crash")
#: Columns of each change, and their figures.
_TABULATED: Mapping[str, str] = {
    "stable, ms": "converge_ms",
    "unowned, partition-s": "unowned_partition_s",
    "requests": "authority_requests",
    "moved": "moved",
}
_CPU = "join.authority_cpu_s"
#: From so many members on, a cost for each of them is more than a few microseconds of noise.
_MANY = 100
#: Pings of a ZooKeeper session in its timeout.
_PINGS = 3


def _of_design(cells: Sequence[CellRecord], design: str) -> Iterator[CellRecord]:
    return (cell for cell in cells if cell.design == design)


def _measured(x: float, cell: CellRecord, metric: str) -> Measured:
    return Measured.of(x, cell.figures[metric])


def _by_size(records: Records, metric: str) -> Iterator[GrowthLine]:
    """A line a design, over the size of the group; what follows from the formula is a model's."""
    cells = [cell for name in _SIZES for cell in records[name] if metric in cell.figures]
    for place, design in enumerate(DESIGN_NAMES):
        points, predicted = [], []
        for cell in _of_design(cells, design):
            measured = _measured(_size(cell), cell, metric)
            if cell.by != Method.FORMULA:
                points.append(measured)
            if cell.by == Method.FORMULA or predicted or cell.by == Method.FULL_STACK:
                predicted.append((measured.x, measured.median))
        if points:
            is_predicted = len(predicted) > len(points)
            yield GrowthLine(design, place, points, model=predicted[len(points) - 1 :] if is_predicted else ())


def _sized(title: str, metric: str, unit: str) -> Callable[[Records], Chart]:
    def chart(records: Records) -> Chart:
        lines = list(_by_size(records, metric))
        xs = sorted({x for each in lines for x in [*(at.x for at in each.figures), *(x for x, _ in each.model)]})
        return Chart(title, "members", unit, lines, xs)

    return chart


def _detection(records: Records) -> Chart:
    lines = []
    for place, design in enumerate(DESIGN_NAMES):
        cells = _of_design([*records["detection"], *records["sessions"]], design)
        points = [_of_session(cell) if design == ZOOKEEPER else _of_heartbeats(cell) for cell in cells]
        if points:
            lines.append(GrowthLine(design, place, sorted(points)))
    return Chart(
        "time to detect a crash, by what heartbeats cost",
        "heartbeats a second, of 100 members",
        "s",
        lines,
        (5, 10, 20, 50, 100, 200),
    )


def _of_heartbeats(cell: CellRecord) -> Measured:
    return _seconds(cell.figures[COST].median, cell, DETECTED)


def _of_session(cell: CellRecord) -> Measured:
    """The client pings thrice in its timeout; the first new owner comes some milliseconds after the session's end."""
    timeout = cell.at[_TIMEOUT]
    assert isinstance(timeout, int)
    return _seconds(100 * _PINGS * 1_000 / timeout, cell, "crash.takeover_ms")


def _seconds(x: float, cell: CellRecord, metric: str) -> Measured:
    _, *spread, n = _measured(x, cell, metric)
    median, low, high = (value / 1_000 for value in spread)
    return Measured(x, median, low, high, n)


def _starting(title: str, sweep: str, metric: str) -> Callable[[Records], Chart]:
    def chart(records: Records) -> Chart:
        cells = records[sweep]
        lines = []
        for place, link in enumerate(LINKS):
            of_link = [cell for cell in cells if cell.at[_LINK] == link]
            lines.append(GrowthLine(link, place, [_measured(_size(cell), cell, metric) for cell in of_link]))
        return Chart(title, "members that start at once", "", lines, sorted({_size(cell) for cell in cells}))

    return chart


def _size(cell: CellRecord) -> int:
    size = cell.at[_MEMBERS]
    assert isinstance(size, int)
    return size


#: By the name of its file.
CHARTS: Mapping[str, Callable[[Records], Chart]] = {
    "large-stable": _sized("time to stable after a crash", "crash.converge_ms", "ms"),
    "large-stable-join": _sized("time to stable after a join", "join.converge_ms", "ms"),
    "large-unowned": _sized(
        "partition-seconds without owner after a crash", "crash.unowned_partition_s", "partition-s"
    ),
    "large-requests": _sized("requests at the authority of one join", "join.authority_requests", "requests"),
    "large-cpu": _sized("CPU time of deciding one join, at the coordinator", _CPU, "s"),
    "large-detection": _detection,
    "large-conflicts": _starting("attempts that failed on conflicts, zookeeper", "conflicts", "attempts_failed"),
    "large-exhausted": _starting("rebalances given up after one attempt, zookeeper", "retries", "rebalances_failed"),
}


def files() -> dict[Path, str]:
    records = read_records()
    pictures = {FIGURES / f"{name}.svg": picture(chart(records)) for name, chart in CHARTS.items()}
    return pictures | {PAGE: filled(PAGE, {"sizes": _table(records), "cpu": _cpu(records)})}


def _cpu(records: Records) -> str:
    """What a join costs the coordinator for each member."""
    cells = [cell for name in _SIZES for cell in records[name] if _CPU in cell.figures and _size(cell) >= _MANY]
    ms = [1_000 * cell.figures[_CPU].median / _size(cell) for cell in cells]
    return (
        f"What the coordinator computes for a join grows with the group and no faster: from {_MANY} members on "
        f"{min(ms):.2f} to {max(ms):.2f} ms for each member (medians), in all designs."
    )


def _table(records: Records) -> str:
    """The figures of a join and a crash, by design and size."""
    rows = []
    for design in DESIGN_NAMES:
        sizes: dict[int, dict[str, Spread]] = {}
        for cell in _of_design([cell for name in _SIZES for cell in records[name]], design):
            sizes.setdefault(_size(cell), {}).update(cell.figures)
        rows += [(f"`{design}`", f"{size:,}", *_cells(figures)) for size, figures in sizes.items()]
    headings = [f"{change}: {what}" for change in _CHANGES for what in _TABULATED]
    return markdown_table(("design", "members", *headings), rows, ("---", *["---:"] * (1 + len(headings))))


def _cells(figures: Mapping[str, Spread]) -> Iterator[str]:
    for change in _CHANGES:
        for name in _TABULATED.values():
            yield with_range(figures.get(f"{change}.{name}"), _short)


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else number(value, whole=True)
