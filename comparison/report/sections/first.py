"""What a page begins with, for each scenario: what it cost in each design, and where each cell is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.panel import Panel
from comparison.report.drawing.scale import scales
from comparison.report.drawing.strips import STEPS, strips
from comparison.report.sections.evidence import (
    Evidence,
    anchor_of,
    first_again,
    first_moved_back,
    first_overlap,
    first_stale,
    longest_unowned,
    of_change,
    stretch,
)
from comparison.report.sections.found import findings
from comparison.report.sections.words import by_design
from comparison.report.summaries.glance import glanced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from comparison.report.drawing.chart import Chart
    from comparison.report.sections.found import Finding
    from comparison.report.summaries.glance import Cell, Row
    from comparison.report.view.model import RunView
    from comparison.results.promises import Outcome
    from comparison.results.run import Run


class HeatCell(NamedTuple):
    """A cell, with what it is in words, and the link to where it is seen: in lanes, or else on the page."""

    cell: Cell
    words: str
    evidence: Evidence | None
    href: str


class HeatRow(NamedTuple):
    """A figure; `mark` leads from it to the reason why it is not compared."""

    row: Row
    cells: Sequence[HeatCell]
    mark: str


class Heat(NamedTuple):
    """The first table of a scenario; `missing` says why designs that it does not apply to have no figures."""

    designs: Sequence[str]
    rows: Sequence[HeatRow]
    missing: Mapping[str, str]
    notes: Sequence[str]


class First(NamedTuple):
    """Table and strips of a scenario, and what neither of them says; None if nothing can be drawn."""

    heat: Heat
    strips: Chart | None
    findings: Sequence[Finding]


def first(
    scenario: str,
    runs: Sequence[Run],
    views: Mapping[str, RunView],
    lanes: Mapping[str, RunView],
    missing: Mapping[str, str],
    promises: Mapping[str, Sequence[Outcome]],
) -> First:
    """Of the scenario's runs, one a design; `views` are those that can be drawn, and `lanes` those that have lanes.

    `missing` says of other designs why there is no run, and `promises` what became of each, by design.
    """
    drawn = [view for view in views.values() if view.partitions]
    panels = [Panel(view, scale, {}, STEPS) for view, scale in zip(drawn, scales(drawn) if drawn else (), strict=True)]
    return First(
        _heat(scenario, runs, lanes, missing),
        strips(panels) if panels else None,
        findings(scenario, runs, lanes, promises),
    )


def _heat(scenario: str, runs: Sequence[Run], lanes: Mapping[str, RunView], missing: Mapping[str, str]) -> Heat:
    found = glanced(runs)
    reasons = list(dict.fromkeys(row.not_compared for row in found.rows if row.not_compared))
    marks = {reason: "*" * place for place, reason in enumerate(reasons, start=1)}
    notes = [f"{mark} not compared: {reason}" for reason, mark in marks.items()]
    notes += [f"n/a: {by_design(list(missing.items()))}"] if missing else []
    notes += [f"0 in every design: {', '.join(found.zero)}"] if found.zero else []
    notes += [f"unknown in every design: {', '.join(found.unknown)}"] if found.unknown else []
    return Heat(
        [run.design for run in runs],
        [
            HeatRow(
                row,
                [
                    _cell(scenario, row, cell, run, lanes.get(run.design))
                    for cell, run in zip(row.cells, runs, strict=True)
                ],
                marks.get(row.not_compared, ""),
            )
            for row in found.rows
        ],
        missing,
        notes,
    )


def _cell(scenario: str, row: Row, cell: Cell, run: Run, view: RunView | None) -> HeatCell:
    seen = _SEEN.get(row.name)
    evidence = seen(run, view) if seen is not None and view is not None and view.partitions else None
    figures = [f"{cell.text} {row.unit}".strip() or "unknown", *([f"range {cell.spread}"] if cell.spread else [])]
    said = {"▼": "the worst", "!": "should be 0", "": "clearly worse than the best" if cell.shade else ""}
    words = ", ".join(
        filter(None, [f"{row.label} in {run.design}: {figures[0]}", *figures[1:], said.get(cell.sign, "")])
    )
    href = evidence.anchor if evidence is not None else f"#{anchor_of(scenario, row.name)}"
    return HeatCell(cell, words, evidence, href)


# -- where a figure is seen --------------------------------------------------------------------------------------------


def _slowest(run: Run, view: RunView) -> Evidence | None:
    """The change after which it took longest until every partition had one owner."""
    settled = [(each.converge_healed_ms, each) for each in run.changes if each.converge_healed_ms is not None]
    if not settled:
        return None
    _, change = max(settled, key=lambda each: each[0])
    return of_change(view, change.change, change.from_ms, change.from_ms + (change.converge_ms or 0))


def _standstill(run: Run, view: RunView) -> Evidence | None:
    if not run.standstills:
        return None
    longest = run.standstills[0]
    return stretch(view, f"{longest.topic}-{longest.partition}", longest.from_ms, longest.until_ms)


def _skip(run: Run, view: RunView) -> Evidence | None:
    if not run.skips:
        return None
    first = min(run.skips, key=lambda each: each.at_ms)
    return stretch(view, f"{first.topic}-{first.partition}", first.at_ms, first.at_ms + 1_000)


#: By figure. Other figures are seen in their row of the figures.
_SEEN: Mapping[str, Callable[[Run, RunView], Evidence | None]] = {
    "converge_ms": _slowest,
    "converge_healed_ms": _slowest,
    "standstill_s": _standstill,
    "unowned_partition_s": lambda _, view: longest_unowned(view),
    "two_delivering_partition_s": lambda _, view: first_overlap(view),
    "duplicates": lambda _, view: first_again(view),
    "skipped": _skip,
    "stale_writes": lambda _, view: first_stale(view),
    "moved_back": lambda _, view: first_moved_back(view),
}
