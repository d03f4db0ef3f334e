"""A result as one HTML file: no script, nothing fetched, every figure in a table.

Reads the plain mapping that result.json holds, and nothing else. This module decides what is shown; `page.html.j2`
says how, and escapes every text, because a trace may contain anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.report import restarts
from comparison.report.figures import (
    CHANGE_COLUMNS,
    EXPECTED,
    KINDS,
    MARKS,
    NOT_APPLICABLE,
    NOT_EXPECTED,
    UNKNOWN,
    by_change,
    check_version,
    circumstances,
    counted_noun,
    ending,
    evidence,
    inapplicable,
    metric_rows,
    number,
    ratio,
    warnings_of,
)
from comparison.report.markup import render
from comparison.report.repeats import columns_of, repeat_summary, spread_of
from comparison.report.throughput import SLOW, chart, describe_waits
from comparison.report.trace_files import FileTable, file_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from comparison.report.figures import Run

#: The file may not load anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CLASSES = {EXPECTED: "good", UNKNOWN: "doubt", NOT_EXPECTED: "bad", NOT_APPLICABLE: "faint"}
#: Scenarios whose chart is always open, because they are about it.
_CHART_OPEN = (SLOW, restarts.SCENARIO, "scale-out", "coordinator-failover")


class _Restarts(NamedTuple):
    """What a rolling restart cost, design by design."""

    title: str
    headings: list[str]
    costs: Sequence[restarts.Cost]
    remarks: list[str]


class _Count(NamedTuple):
    """An exact count; `model` is what it should be, `=` where it is."""

    text: str
    agrees: bool
    model: str
    formula: str


class _Change(NamedTuple):
    """One design's row of a change; `name` is empty in all rows of a change but the first."""

    name: str
    design: str
    figures: list[tuple[str, str]]  #: each with its range over the repeats
    counts: list[_Count]
    failed: int


class _Figure(NamedTuple):
    """One metric of all designs; each cell has its range over the repeats, and its ratio to the first design's."""

    label: str
    part: bool  #: of the metric above
    cells: list[tuple[str, tuple[str, str]]]


class _RunReasons(NamedTuple):
    """Why one design's run came to its verdict."""

    design: str
    verdict: str
    repeats: str
    verdicts: Sequence[Mapping[str, Any]]
    overlap: str
    failures: Sequence[str]
    ending: str
    files: FileTable | None


class _Scenario(NamedTuple):
    """One section of the page."""

    name: str
    verdict: str
    outcomes: dict[str, str]  #: by design; '' where it was not run
    designs: list[str]
    circumstances: str
    warnings: list[str]
    restarts: _Restarts | None
    chart: Markup | None
    chart_open: bool
    waits: list[tuple[str, str]]
    changes: list[_Change]
    figures: list[_Figure]
    runs: list[_RunReasons]


def page(result: Mapping[str, Any]) -> str:
    """The whole file; raises ValueError when the result is of another version than this report knows."""
    check_version(result)
    designs = list(dict.fromkeys(run["design"] for run in result["runs"]))
    shown = render(
        "page.html.j2",
        policy=_POLICY,
        classes=_CLASSES,
        marks=MARKS,
        kinds=KINDS,
        not_applicable=NOT_APPLICABLE,
        change_headings=[heading for _, heading in CHANGE_COLUMNS],
        outcome=result["verdict"],
        designs=designs,
        inapplicable=inapplicable(result),
        scenarios=[_scenario(scenario, result, designs) for scenario in result["scenarios"]],
    )
    return str(shown)


def _scenario(scenario: Mapping[str, Any], result: Mapping[str, Any], designs: Sequence[str]) -> _Scenario:
    runs, name = columns_of(scenario, result), scenario["scenario"]
    return _Scenario(
        name=name,
        verdict=scenario["verdict"],
        outcomes=_outcomes(name, runs, result, designs),
        designs=[run["design"] for run in runs],
        circumstances=circumstances(runs),
        warnings=warnings_of(runs),
        restarts=_restarts(runs),
        chart=chart(runs),
        chart_open=name in _CHART_OPEN,
        waits=[(run["design"], describe_waits(run)) for run in runs] if name == SLOW else [],
        changes=[row for change, rows in by_change(runs) for row in _changes(change, rows)],
        figures=list(_figures(runs)),
        runs=[_reasons(run) for run in runs],
    )


def _outcomes(scenario: str, runs: Sequence[Run], result: Mapping[str, Any], designs: Sequence[str]) -> dict[str, str]:
    verdicts = {run["design"]: str(run["verdict"]) for run in runs}
    why = inapplicable(result)
    return {design: verdicts.get(design, NOT_APPLICABLE if (scenario, design) in why else "") for design in designs}


def _restarts(runs: Sequence[Run]) -> _Restarts | None:
    costs = restarts.costs(runs)
    if not costs:
        return None
    title = restarts.title(costs)
    headings = [long for _, long in restarts.HEADINGS]
    return _Restarts(title[0].upper() + title[1:], headings, costs, restarts.remarks(costs))


def _changes(name: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[_Change]:
    for place, (design, change) in enumerate(rows):
        yield _Change(
            name=name if place == 0 else "",
            design=design,
            figures=[
                (number(change[column], whole=column == "converge_ms"), spread_of(change, column))
                for column, _ in CHANGE_COLUMNS
            ],
            counts=[_count(count) for count in change["counted"]],
            failed=change["attempts_failed"],
        )


def _count(count: Mapping[str, Any]) -> _Count:
    agrees = count["measured"] == count["model"]
    return _Count(counted_noun(count), agrees, "=" if agrees else number(count["model"]), count["formula"])


def _figures(runs: Sequence[Run]) -> Iterator[_Figure]:
    """Rows are metrics, columns designs."""
    for name, label, values in metric_rows(runs):
        cells = []
        for run, value in zip(runs, values, strict=True):
            beside = ratio(name, run, runs[0]) if value and run is not runs[0] else ""
            cells.append((number(value), (spread_of(run, name), beside)))
        yield _Figure(label.strip(), label.startswith(" "), cells)


def _reasons(run: Run) -> _RunReasons:
    return _RunReasons(
        design=run["design"],
        verdict=run["verdict"],
        repeats=repeat_summary(run),
        verdicts=run["verdicts"],
        overlap=evidence(run["overlaps"][0]) if run["overlaps"] else "",
        failures=run["failures"],
        ending=ending(run),
        files=file_table(run),
    )
