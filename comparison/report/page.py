"""A result as one HTML file: no script, nothing fetched, every figure in a table, whatever is drawn.

Reads the plain mapping that result.json holds, and nothing else. All text of it is escaped: a trace may say anything.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    ending,
    evidence,
    inapplicable,
    metric_rows,
    number,
    ratio,
    so_many,
    warnings_of,
)
from comparison.report.repeats import columns_of, spread_of, tally
from comparison.report.throughput import SLOW, chart, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: The file may load nothing, from nowhere.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = Path(__file__).with_name("page.css")
_CLASSES = {EXPECTED: "good", UNKNOWN: "doubt", NOT_EXPECTED: "bad", NOT_APPLICABLE: "faint"}
#: Scenarios whose chart is not folded away: it is what they are about.
_CHART_OPEN = (SLOW, restarts.SCENARIO, "scale-out", "coordinator-failover")


def page(result: Mapping[str, Any]) -> str:
    """The whole file; raises ValueError when the result is of another version than this report knows."""
    check_version(result)
    body = [
        f"<h1>Rebalance comparison: {_verdict(result['verdict'])}</h1>",
        *_strip(result),
        *(part for scenario in result["scenarios"] for part in _scenario(scenario, result)),
    ]
    return (
        "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en"><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                "<title>Rebalance comparison</title>",
                f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style></head>",
                "<body>",
                *body,
                "</body></html>",
            ]
        )
        + "\n"
    )


def _strip(result: Mapping[str, Any]) -> Iterator[str]:
    """Designs by scenarios: what each run came to, with a link to its reasons."""
    designs = list(dict.fromkeys(run["design"] for run in result["runs"]))
    why = inapplicable(result)
    rows = []
    for scenario in result["scenarios"]:
        name = scenario["scenario"]
        by_design = {run["design"]: run for run in columns_of(scenario, result)}
        cells = [f'<a href="#{_anchor(name)}">{escape(name)}</a>']
        for design in designs:
            if (run := by_design.get(design)) is not None:
                cells.append(f'<a href="#{_anchor(name, design)}">{_verdict(run["verdict"])}</a>')
            elif (name, design) in why:
                cells.append(_verdict(NOT_APPLICABLE))
            else:
                cells.append("-")
        rows.append(cells)
    yield from _table("Verdicts", ["scenario", *map(escape, designs)], rows)
    if why:
        yield f"<details><summary>{len(why)} combinations not applicable</summary><ul>"
        for (scenario_name, design), reason in why.items():
            yield f"<li>{escape(scenario_name)} in {escape(design)}: {escape(reason)}</li>"
        yield "</ul></details>"


def _scenario(scenario: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    runs, name = columns_of(scenario, result), scenario["scenario"]
    yield f'<section id="{_anchor(name)}">'
    yield f"<h2>{escape(name)}: {_verdict(scenario['verdict'])}</h2>"
    yield f'<p class="faint">{escape(circumstances(runs))}</p>'
    for told in warnings_of(runs):
        yield f'<p class="doubt">warning: {escape(told)}</p>'
    if shown := restarts.costs(runs):
        yield from _restarts(shown)
    if drawn := chart(runs):
        opened = " open" if name in _CHART_OPEN else ""
        yield f"<details{opened}><summary>Records over time</summary>"
        yield f'<div class="scroll">{drawn}</div></details>'
    if name == SLOW:
        yield from _waits(runs)
    yield from _changes(runs)
    yield from _figures(runs)
    for run in runs:
        yield from _reasons(name, run)
    yield "</section>"


def _restarts(shown: Sequence[restarts.Cost]) -> Iterator[str]:
    title = restarts.title(shown)
    rows = [[escape(cost.design), *cost.cells()] for cost in shown]
    yield from _table(title[0].upper() + title[1:], ["design", *(long for _, long in restarts.HEADINGS)], rows)
    if told := restarts.remarks(shown):
        yield f"<ul>{''.join(f'<li>{escape(remark)}</li>' for remark in told)}</ul>"


def _waits(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<h3>Who waited for whom</h3><ul>"
    for run in runs:
        yield f"<li>{escape(run['design'])}: {escape(spell(run))}</li>"
    yield "</ul>"


def _changes(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [row for change, rows in by_change(runs) for row in _change_rows(change, rows)]
    if rows:
        headings = ["change", "design", *(heading for _, heading in CHANGE_COLUMNS), "counted (model)"]
        yield from _table("Each change", headings, rows, left=(1, len(headings) - 1))


def _change_rows(name: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[list[str]]:
    for place, (design, change) in enumerate(rows):
        figures = [
            _spread(number(change[column], whole=column == "converge_ms"), spread_of(change, column))
            for column, _ in CHANGE_COLUMNS
        ]
        yield [escape(name) if place == 0 else "", escape(design), *figures, _counted(change)]


def _counted(change: Mapping[str, Any]) -> str:
    """Every exact count; the model's beside it where it differs, and `=` where it does not."""
    parts = []
    for count in change["counted"]:
        agrees = count["measured"] == count["model"]
        beside = "=" if agrees else number(count["model"])
        parts.append(
            f"{escape(so_many(count))} "
            f'<span class="{"good" if agrees else "bad"}" title="{escape(count["formula"])}">({beside})</span>'
        )
    if change["attempts_failed"]:
        parts.append(f"{change['attempts_failed']} failed")
    return ", ".join(parts) or '<span class="faint">nothing is foretold</span>'


def _figures(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Rows metrics, columns designs; below each figure after the first design's, its ratio to that one."""
    rows = []
    for name, label, values in metric_rows(runs):
        part = ' class="part"' if label.startswith(" ") else ""
        cells = [f"<span{part}>{escape(label.strip())}</span>"]
        for run, value in zip(runs, values, strict=True):
            beside = ratio(name, run, runs[0]) if value and run is not runs[0] else ""
            cells.append(_spread(number(value), spread_of(run, name), beside))
        rows.append(cells)
    yield from _table("Figures", ["", *(escape(run["design"]) for run in runs)], rows)


def _spread(median: str, *below: str) -> str:
    """A figure, and below it its range over the repeats and its ratio, where it has them."""
    return median + "".join(f'<span class="ratio">{escape(each)}</span>' for each in below if each)


def _reasons(scenario: str, run: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{_anchor(scenario, run["design"])}">{escape(run["design"])}: {_verdict(run["verdict"])}</h3>'
    if told := tally(run):
        yield f'<p class="faint">{escape(told)}</p>'
    yield '<ul class="reasons">'
    for verdict in run["verdicts"]:
        yield (
            f"<li>{_verdict(verdict['outcome'])} {escape(KINDS[verdict['kind']])}: "
            f"<strong>{escape(verdict['check'])}</strong>: {escape(verdict['reason'])}</li>"
        )
    for overlap in run["overlaps"][:1]:
        yield f'<li class="faint">{escape(evidence(overlap))}</li>'
    for failure in run["failures"]:
        yield f'<li class="faint">an error reached the application: {escape(failure)}</li>'
    if told := ending(run):
        yield f'<li class="doubt">{escape(told)}</li>'
    yield "</ul>"


def _table(
    caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = ()
) -> Iterator[str]:
    """Cells are HTML already; the first of each row is its heading; `left`: columns of words."""
    yield f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>'
    classes = {0: ' class="left"', **dict.fromkeys(left, ' class="left"')}
    yield "".join(f'<th scope="col"{classes.get(place, "")}>{each}</th>' for place, each in enumerate(headings))
    yield "</tr></thead><tbody>"
    # The last column of words is long.
    words = {place: f' class="{"wrap" if place > 1 else "left"}"' for place in left}
    for first, *cells in rows:
        data = "".join(f"<td{words.get(place, '')}>{cell}</td>" for place, cell in enumerate(cells, start=1))
        yield f'<tr><th scope="row">{first}</th>{data}</tr>'
    yield "</tbody></table></div>"


def _anchor(*names: str) -> str:
    return escape("-".join(names), quote=True)


def _verdict(outcome: str) -> str:
    return f'<span class="{_CLASSES[outcome]}">{MARKS[outcome]} {escape(outcome)}</span>'
