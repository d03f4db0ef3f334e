"""A result on the terminal: one table a scenario, the designs side by side, and below it each verdict's reason.

Reads the plain mapping that result.json holds, and nothing else: no Spark, no traces. Works without a terminal,
without colour and in 80 columns: what a colour says, a word says too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console, RenderableType

#: The result's version that this report was written for; a later one may lack what is shown here.
SCHEMA_VERSION = 2

EXPECTED, UNKNOWN, NOT_EXPECTED = "as expected", "unknown", "not as expected"
_STYLES = {EXPECTED: "green", UNKNOWN: "yellow", NOT_EXPECTED: "bold red"}
_MARKS = {EXPECTED: "+", UNKNOWN: "?", NOT_EXPECTED: "!"}
_KINDS = {"promise": "promise", "history": "history", "model": "count"}

#: Rows of every scenario's table: the name in the result, and the label. Indented ones are part of the one above.
_ROWS: tuple[tuple[str, str], ...] = (
    ("converge_ms", "settled after, ms (worst)"),
    ("unowned_partition_s", "unowned, partition-s"),
    ("double_owned_partition_s", "believed by two, partition-s"),
    ("two_delivering_partition_s", "two delivering, partition-s"),
    ("stopped", "partitions stopped"),
    ("moved", "partitions moved"),
    ("moved_minimum", "  of which had to"),
    ("rebalances", "rebalances"),
    ("attempts", "  attempts"),
    ("attempts_failed", "  failed"),
    ("notifications", "notifications"),
    ("zk_reads", "ZooKeeper reads"),
    ("zk_reads_failed", "  failed"),
    ("zk_writes", "ZooKeeper writes"),
    ("zk_writes_failed", "  failed"),
    ("group_requests", "join, sync and leave requests"),
    ("heartbeats", "heartbeats"),
    ("commit_requests", "commits sent"),
    ("fetches", "fetches"),
    ("delivered", "records delivered"),
    ("duplicates", "  delivered again"),
    ("lost", "  lost"),
    ("out_of_order", "polls out of order"),
    ("stale_deliveries", "delivered by a non-owner"),
    ("stale_writes", "commits taken from a non-owner"),
    ("moved_back", "offsets moved back"),
    ("fenced", "commits fenced"),
    ("dropped", "commits dropped by their sender"),
)
#: Rows that are always shown; others only where one of the designs has something else than 0.
_ALWAYS = frozenset(
    {"converge_ms", "unowned_partition_s", "two_delivering_partition_s", "delivered", "duplicates", "lost"}
)


def render(result: Mapping[str, Any], console: Console) -> None:
    """Print a result; raises ValueError when it is of a later version than this report knows."""
    if result["schema_version"] > SCHEMA_VERSION:
        raise ValueError(
            f"the result has schema version {result['schema_version']}, this program knows {SCHEMA_VERSION}: "
            "analyse the run again, or use the version that wrote it"
        )
    for scenario in result["scenarios"]:
        console.print(_scenario(scenario, result["runs"]))
    console.print(_summary(result))


def _scenario(scenario: Mapping[str, Any], all_runs: Sequence[Mapping[str, Any]]) -> RenderableType:
    runs = [all_runs[number] for number in scenario["runs"]]
    title = Text.assemble((scenario["scenario"], "bold"), "  ", _verdict(scenario["verdict"]))
    parts: list[RenderableType] = [Rule(title, align="left", style="dim"), Text(_circumstances(runs), style="dim")]
    changes = _changes(runs)
    if changes is not None:
        parts.append(changes)
    parts += [_figures(runs), *(part for run in runs for part in _reasons(run))]
    return Group(*parts, "")


def _circumstances(runs: Sequence[Mapping[str, Any]]) -> str:
    """What all designs had in common."""
    parameters = runs[0]["parameters"]
    named = [
        f"{parameters[name]} {name}"
        for name in ("members", "partitions", "brokers")
        if parameters.get(name) is not None
    ]
    seeds = sorted({run["seed"] for run in runs})
    rate = [f"{parameters['rate']:g} records/s"] if "rate" in parameters else []
    preset = [str(parameters["preset"])] if "preset" in parameters else []
    return ", ".join([*named, *rate, *preset, f"seed {', '.join(map(str, seeds))}"])


def _figures(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Rows metrics, columns designs; beside each design after the first, its ratio to the first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("", overflow="fold", min_width=20)
    for place, run in enumerate(runs):
        table.add_column(run["design"], justify="right", no_wrap=True)
        if place:
            table.add_column("ratio", justify="right", style="dim", no_wrap=True)
    for name, label in _ROWS:
        values = [run["metrics"].get(name) for run in runs]
        if name not in _ALWAYS and not any(values):
            continue
        cells: list[str] = []
        for place, value in enumerate(values):
            cells.append(_number(value))
            if place:
                cells.append(_ratio(value, values[0]))
        table.add_row(label, *cells)
    return table


def _changes(runs: Sequence[Mapping[str, Any]]) -> Table | None:
    """Each membership change, with its counts beside the model's: the herd, in each design's own currency."""
    if not any(change["counted"] for run in runs for change in run["changes"]):
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for header in ("change", "design"):
        table.add_column(header, no_wrap=True)
    table.add_column("ms", justify="right")
    table.add_column("counted (model)", overflow="fold")
    table.add_column("stopped", justify="right")
    table.add_column("moved", justify="right")
    for rows in _by_change(runs):
        for place, (design, change) in enumerate(rows):
            table.add_row(
                f"{change['change']} to {change['members']}" if place == 0 else "",
                design,
                _number(change["converge_ms"], whole=True),
                _counted(change),
                str(change["stopped"]),
                _number(change["moved"]),
            )
    return table


def _by_change(runs: Sequence[Mapping[str, Any]]) -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """Changes of the same name and round, of all designs, in the order in which they were made."""
    shown = [(run["design"], change) for run in runs for change in run["changes"] if change["counted"]]
    for key in dict.fromkeys((change["change"], change["round"]) for _, change in shown):
        yield [(design, change) for design, change in shown if (change["change"], change["round"]) == key]


def _counted(change: Mapping[str, Any]) -> Text:
    """Every exact count; the model's beside it where it differs, and `=` where it does not."""
    text = Text()
    for count in change["counted"]:
        if text:
            text.append(", ")
        agrees = count["measured"] == count["model"]
        text.append(f"{_number(count['measured'])} {count['what']} ")
        text.append("(=)" if agrees else f"({_number(count['model'])})", style="green" if agrees else "bold red")
    if change["attempts_failed"]:
        text.append(f", {change['attempts_failed']} failed")
    return text


def _reasons(run: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text.assemble((run["design"], "bold"), "  ", _verdict(run["verdict"]))
    for verdict in run["verdicts"]:
        outcome = verdict["outcome"]
        line = Text.assemble(
            (f"{_MARKS[outcome]} ", _STYLES[outcome]),
            (f"{_KINDS[verdict['kind']]}: {verdict['check']}", "" if outcome == EXPECTED else _STYLES[outcome]),
            "" if outcome == EXPECTED else f" ({outcome})",
            f": {verdict['reason']}",
        )
        yield Padding(line, (0, 0, 0, 2))
    for overlap in run["overlaps"][:1]:
        yield Padding(Text(_evidence(overlap), style="dim"), (0, 0, 0, 2))
    for failure in run["failures"]:
        yield Padding(Text(f"an error reached the application: {failure}", style="dim"), (0, 0, 0, 2))
    if run["outcome"] != "complete":
        told = f": {run['error']}" if run["error"] else ""
        yield Padding(Text(f"the run was {run['outcome'] or 'cut short'}{told}", style="yellow"), (0, 0, 0, 2))


def _evidence(overlap: Mapping[str, Any]) -> str:
    doing = "delivered" if overlap["view"] == "delivering" else "believed to own"
    owners = " and ".join(owner.partition("/")[0] for owner in overlap["owners"])
    return (
        f"first overlap: {owners} {doing} {overlap['topic']}-{overlap['partition']}, "
        f"{overlap['from_ms']:.0f}-{overlap['until_ms']:.0f} ms"
    )


def _summary(result: Mapping[str, Any]) -> RenderableType:
    """One line a scenario, and what it all comes to."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    designs = list(dict.fromkeys(run["design"] for run in result["runs"]))
    table.add_column("scenario", no_wrap=True)
    for design in designs:
        table.add_column(design, no_wrap=True)
    for scenario in result["scenarios"]:
        by_design = {result["runs"][number]["design"]: result["runs"][number] for number in scenario["runs"]}
        table.add_row(
            scenario["scenario"],
            *(_verdict(by_design[design]["verdict"]) if design in by_design else Text("-") for design in designs),
        )
    return Group(table, Text.assemble("verdict: ", _verdict(result["verdict"])))


def _verdict(outcome: str) -> Text:
    return Text(f"{_MARKS[outcome]} {outcome}", style=_STYLES[outcome])


def _number(value: float | None, *, whole: bool = False) -> str:
    """Short, and the same everywhere; what could not be told is a dash."""
    if value is None:
        return "-"
    if value == int(value) or whole or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def _ratio(value: float | None, base: float | None) -> str:
    if value is None or not base:
        return ""
    return f"{value / base:.2f}x"
