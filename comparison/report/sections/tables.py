"""The tables of a scenario: every figure of every design, each change, and why each run came to its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.failures import each_once
from comparison.report.summaries import additions, changeovers, restarts, strategies
from comparison.report.summaries.figures import (
    CHANGE_COLUMNS,
    SumTable,
    by_change,
    counted_noun,
    ending,
    evidence,
    figure,
    metric_rows,
    number,
    ratio,
    spread_of,
)
from comparison.report.summaries.repeats import repeat_summary
from comparison.report.summaries.two_verdicts import promised
from comparison.report.trace_files import FileTable, file_table
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.report.summaries.two_verdicts import Promised
    from comparison.results.promises import Outcome
    from comparison.results.run import Change, Counted, Run, Verdict


class Count(NamedTuple):
    """An exact count; `model` is what it should be, `=` where it is."""

    text: str
    agrees: bool
    model: str
    formula: str


class ChangeRow(NamedTuple):
    """One design's row of a change; `name` is empty in all rows of a change but the first."""

    name: str
    design: str
    figures: list[tuple[str, str]]  #: each with its range over the repeats
    counts: list[Count]
    failed: int


class FigureRow(NamedTuple):
    """One metric of all designs; each cell has its range over the repeats, and its ratio to the first design's."""

    name: str
    label: str
    meaning: str
    part: bool  #: of the metric above
    cells: list[tuple[str, tuple[str, str]]]


class RunReasons(NamedTuple):
    """Why one design's run came to its verdict."""

    design: str
    verdict: str
    promises: Promised
    repeats: str
    expected: Sequence[Verdict]
    others: Sequence[Verdict]
    overlap: str
    failures: Sequence[str]
    ending: str
    files: FileTable | None


class Tables(NamedTuple):
    """All tables of one scenario."""

    designs: Sequence[str]
    sums: SumTable | None
    changes: Sequence[ChangeRow]
    figures: Sequence[FigureRow]
    runs: Sequence[RunReasons]


def tables(runs: Sequence[Run], promises: Mapping[str, Sequence[Outcome]]) -> Tables:
    """The tables of one scenario's runs, one a design, and of their promises by design."""
    return Tables(
        designs=[run.design for run in runs],
        sums=_sums(runs),
        changes=[row for change, rows in by_change(runs) for row in _changes(change, rows)],
        figures=list(_figures(runs)),
        runs=[_reasons(run, promised(promises[run.design])) for run in runs],
    )


def _sums(runs: Sequence[Run]) -> SumTable | None:
    for of in (restarts.table, strategies.table, additions.table, changeovers.table):
        if found := of(runs):
            return found._replace(title=found.title[0].upper() + found.title[1:])
    return None


def _changes(name: str, rows: Sequence[tuple[str, Change]]) -> Iterator[ChangeRow]:
    for place, (design, change) in enumerate(rows):
        yield ChangeRow(
            name=name if place == 0 else "",
            design=design,
            figures=[
                (number(getattr(change, column), whole=column == "converge_ms"), spread_of(change, column))
                for column in CHANGE_COLUMNS
            ],
            counts=[_count(count) for count in change.counted],
            failed=change.attempts_failed,
        )


def _count(count: Counted) -> Count:
    agrees = count.measured == count.model
    return Count(counted_noun(count), agrees, "=" if agrees else number(count.model), count.formula)


def _figures(runs: Sequence[Run]) -> Iterator[FigureRow]:
    """Rows are metrics, columns designs."""
    for name, values in metric_rows(runs):
        cells = []
        for run, value in zip(runs, values, strict=True):
            beside = ratio(name, run, runs[0]) if value and run is not runs[0] else ""
            cells.append((figure(run, name), (spread_of(run, name), beside)))
        metric = METRICS[name]
        yield FigureRow(name, metric.label, f"{metric.meaning}; of the {metric.of.value}", metric.is_part, cells)


def _reasons(run: Run, promises: Promised) -> RunReasons:
    return RunReasons(
        design=run.design,
        verdict=run.verdict,
        promises=promises,
        repeats=repeat_summary(run),
        expected=[each for each in run.verdicts if each.outcome == VerdictOutcome.EXPECTED],
        others=[each for each in run.verdicts if each.outcome != VerdictOutcome.EXPECTED],
        overlap=evidence(run.overlaps[0]) if run.overlaps else "",
        failures=each_once(run.failures),
        ending=ending(run),
        files=file_table(run),
    )
