"""All of a result on the terminal: each scenario's tables with the designs side by side, and the reasons of verdicts.

What is read first is `comparison.report.brief`.
Works without a terminal, without colour and in 80 columns: colours only repeat what the words say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from comparison.failures import each_once
from comparison.report.summaries import additions, changeovers, restarts, strategies
from comparison.report.summaries.figures import (
    KINDS,
    MARKS,
    NOT_APPLICABLE,
    OF_WHAT,
    by_change,
    circumstances,
    counted_noun,
    ending,
    evidence,
    figure,
    inapplicable,
    metric_rows,
    number,
    ratio,
    spread_of,
    warnings_of,
)
from comparison.report.summaries.repeats import columns_of, repeat_summary
from comparison.report.summaries.throughput import SLOW, describe_waits, sparkline
from comparison.report.summaries.two_verdicts import BAD, CLASSES, DOUBT, LEGEND, STYLES, promised
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.promises import by_design, title
from comparison.results.wording import listed
from comparison.screen.text_table import Column, Heading, TextTable, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from comparison.report.summaries.figures import SumTable
    from comparison.report.summaries.two_verdicts import Promised
    from comparison.results.result import Result, Scenario
    from comparison.results.run import Change, Run

#: With more designs, columns of ratios would leave no room for the figures.
_RATIOS_MAX = 3
#: With more designs, verdicts in words do not fit into 80 columns.
_WORDS_MAX = 3
#: To which width the labels of figures, and counts in words, are wrapped to make room for other columns.
_LABELS, _COUNTS = 16, 20
#: Letters of the chart, if there is room for them.
_SPARKS = 64

#: Above what a run is judged by: a design is held to the first alone.
_OWN = "as the model says, by the promises, history and counts of the design itself:"
_RELIED_ON = "what users rely on, whichever design promises it:"


def render(result: Result, console: Console) -> str:
    """What the console shows of a result."""
    return trimmed(console, *(_scenario(each, result, console.width) for each in result.scenarios), _summary(result))


def _scenario(scenario: Scenario, result: Result, width: int) -> RenderableType:
    runs, promises = columns_of(scenario, result), by_design(scenario, result)
    heading = Text.assemble((scenario.scenario, "bold"), "  ", _verdict(scenario.verdict))
    parts: list[RenderableType] = [Heading(heading)]
    parts += [Text(f"{run.design}: {reason}", style="yellow") for run in runs if (reason := ending(run))]
    parts.append(Text(circumstances(runs), style="dim"))
    parts += [Text(f"warning: {warning}", style="yellow") for warning in warnings_of(runs)]
    if shown := restarts.table(runs):
        parts += [*_sums(shown._replace(title=f"{shown.title} (unowned: partition-s)")), *_remarks(runs)]
    elif any(True for _ in by_change(runs)):
        parts.append(_changes(runs))
    for of in (strategies.table, changeovers.table, additions.table):
        if shown := of(runs):
            parts += _sums(shown)
    if scenario.scenario == SLOW:
        parts += _stalls(runs, width)
    parts += [_figures(runs), Text(OF_WHAT, style="dim")]
    parts += [part for run in runs for part in _reasons(run, promised(promises[run.design]))]
    return Group(*parts, "")


def _table(*columns: Column) -> TextTable:
    return TextTable(columns, is_framed=True)


def _figures_under(*headings: str) -> list[Column]:
    return [Column(heading=heading, is_right=True) for heading in headings]


def _figures(runs: Sequence[Run]) -> TextTable:
    """Metrics by design; with few designs, each one after the first has a column of ratios to the first."""
    rows = list(metric_rows(runs))
    ratios = {name: [ratio(name, run, runs[0]) for run in runs] for name, _ in rows}
    with_ratios = len(runs) <= _RATIOS_MAX and any(any(each[1:]) for each in ratios.values())
    columns = [Column(is_label=True, wraps=True, narrowest=_LABELS)]
    for place, run in enumerate(runs):
        columns.append(Column(heading=run.design, is_right=True))
        if place and with_ratios:
            columns.append(Column(heading="ratio", is_right=True, follows=True))
    table = _table(*columns)
    for name, _ in rows:
        cells: list[Text | str] = []
        for place, run in enumerate(runs):
            cells.append(_lines(figure(run, name), spread_of(run, name)))
            if place and with_ratios:
                cells.append(Text(ratios[name][place], style="dim"))
        table.add("  " * METRICS[name].is_part + METRICS[name].label, *cells)
    return table


def _lines(median: str, spread: str) -> str:
    """A figure with its range over the repeats below it."""
    return f"{median}\n{spread}" if spread else median


def _remarks(runs: Sequence[Run]) -> Iterator[RenderableType]:
    for remark in restarts.remarks(restarts.costs(runs)):
        yield Padding(Text(remark), (0, 0, 0, 2))


def _sums(shown: SumTable) -> Iterator[RenderableType]:
    yield Text(f"\n{shown.title}")
    headings = (heading for heading, _ in shown.headings)
    table = _table(Column(heading=shown.first, is_label=True), *_figures_under(*headings))
    for name, cells in shown.rows:
        table.add(name, *cells)
    yield table


def _changes(runs: Sequence[Run]) -> TextTable:
    """Each membership change with its counts and the model's: the herd, in each design's own units."""
    table = _table(
        *(Column(heading=heading, is_label=True) for heading in ("change", "design")),
        *_figures_under("ms"),
        Column(heading="counted (model)", wraps=True, narrowest=_COUNTS),
        *_figures_under("stopped", "moved"),
    )
    for name, rows in by_change(runs):
        for place, (design, change) in enumerate(rows):
            table.add(
                name if place == 0 else "",
                design,
                _lines(number(change.converge_ms, whole=True), spread_of(change, "converge_ms", whole=True)),
                _counted(change),
                _lines(number(change.stopped), spread_of(change, "stopped")),
                _lines(number(change.moved), spread_of(change, "moved")),
            )
    return table


def _counted(change: Change) -> Text:
    """Every exact count, followed by the model's if it differs, or `=`."""
    text = Text()
    for count in change.counted:
        if count.what in ("stopped", "moved") and count.measured == count.model:
            continue  # they have columns of their own
        if text:
            text.append(", ")
        agrees = count.measured == count.model
        text.append(f"{counted_noun(count)} ")
        text.append("(=)" if agrees else f"({number(count.model)})", style="green" if agrees else "bold red")
    if not change.counted and change.rounds:
        text.append(f"{number(change.rounds)} rebalance{'' if change.rounds == 1 else 's'}")
    if change.attempts_failed:
        text.append(f", {change.attempts_failed} failed" if text else f"{change.attempts_failed} failed")
    return text


def _stalls(runs: Sequence[Run], width: int) -> Iterator[RenderableType]:
    """Who waited for whom, and the group's records over time, one line per design."""
    names = max(len(run.design) for run in runs)
    letters = min(_SPARKS, width - names - len("    "))
    drawn = [(run.design, *found) for run in runs if (found := sparkline(run, letters)) is not None]
    if not drawn:
        return
    yield Text(f"\nrecords delivered since a member slowed down ({drawn[0][2]:g} ms per letter; _ means none)")
    for design, line, _ in drawn:
        yield Text(f"  {design:<{names}}  {line}")
    for run in runs:
        yield Padding(Text(f"{run.design}: {describe_waits(run)}"), (0, 0, 0, 2))


def _reasons(run: Run, promises: Promised) -> Iterator[RenderableType]:
    second = f"{promises.mark} {promises.sentence}", STYLES[promises.class_]
    yield Text.assemble((run.design, "bold"), "  ", _verdict(run.verdict), "  ", second)
    if summary := repeat_summary(run):
        yield Padding(Text(summary, style="dim"), (0, 0, 0, 2))
    if run.verdicts:
        yield Padding(Text(_OWN, style="dim"), (0, 0, 0, 2))
    for verdict in run.verdicts:
        outcome = verdict.outcome
        line = Text.assemble(
            (f"{MARKS[outcome]} ", STYLES[CLASSES[outcome]]),
            (
                f"{KINDS[verdict.kind]}: {verdict.check}",
                "" if outcome == VerdictOutcome.EXPECTED else STYLES[CLASSES[outcome]],
            ),
            "" if outcome == VerdictOutcome.EXPECTED else f" ({outcome})",
            f": {verdict.reason}",
        )
        yield Padding(line, (0, 0, 0, 2))
    if promises.broken or promises.unknown:
        yield Padding(Text(_RELIED_ON, style="dim"), (0, 0, 0, 2))
    for each in promises.broken:
        line = Text.assemble((f"{promises.mark} broken: {each.promise.name}", STYLES[BAD]), f": {each.shown}")
        yield Padding(line, (0, 0, 0, 2))
    for why, unknown in promises.unknown:
        names = listed([each.promise.name for each in unknown])
        yield Padding(Text.assemble(("? unknown whether: ", STYLES[DOUBT]), f"{names}: {why}"), (0, 0, 0, 2))
    for overlap in run.overlaps[:1]:
        yield Padding(Text(evidence(overlap), style="dim"), (0, 0, 0, 2))
    for failure in each_once(run.failures):
        yield Padding(Text(f"an error reached the application: {failure}", style="dim"), (0, 0, 0, 2))


def _summary(result: Result) -> RenderableType:
    """One line per scenario, with both verdicts on each design, and the combinations skipped as not applicable."""
    designs = list(dict.fromkeys(run.design for run in result.runs))
    why = inapplicable(result)
    in_words = len(designs) <= _WORDS_MAX
    table = _table(Column(heading="scenario", is_label=True), *(Column(heading=design) for design in designs))
    for scenario in result.scenarios:
        verdicts = {run.design: run.verdict for run in columns_of(scenario, result)}
        promises = by_design(scenario, result)
        cells = [
            _both(verdicts[design], promised(promises[design]), in_words=in_words)
            if design in verdicts
            else (_verdict(NOT_APPLICABLE, in_words=in_words) if (scenario.scenario, design) in why else "")
            for design in designs
        ]
        table.add(scenario.scenario, *cells)
    notes = [Text(f"{NOT_APPLICABLE}: {scenario} in {design}: {reason}") for (scenario, design), reason in why.items()]
    parts: list[RenderableType] = [table]
    if not in_words:
        parts += [Text(LEGEND, style="dim"), ""]
    if notes:
        parts += [*notes, ""]
    return Group(*parts, Text(f"{title(result)}.", style="bold"))


def _both(outcome: VerdictOutcome, promises: Promised, *, in_words: bool) -> Text:
    between, second = ("\n", f" {promises.text}") if in_words else (" ", promises.number)
    of_promises = f"{promises.mark}{second}", STYLES[promises.class_]
    return Text.assemble(_verdict(outcome, in_words=in_words), between, of_promises)


def _verdict(outcome: str, *, in_words: bool = True) -> Text:
    return Text(f"{MARKS[outcome]} {outcome}" if in_words else MARKS[outcome], style=STYLES[CLASSES[outcome]])
