"""`diagram`: pictures and tables of what a group did, made from its traces."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from comparison.exits import Exit
from comparison.printable import printable_all
from comparison.report.gantt import gantt
from comparison.report.group_history import GroupHistory, listing, read_history
from comparison.report.lanes import lanes
from comparison.report.sequence import sequence
from comparison.report.steps import ranges
from comparison.report.timeline import around, timeline
from comparison.report.walkthrough import walkthrough
from kernel.errors import UserError
from kernel.trace.reader import read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.group_history import MemberRebalance
    from kernel.trace.reader import Trace

#: What can be shown in which form; the first form is the one that it has by itself.
FORMS = {"sequence": ("mermaid", "markdown"), "timeline": ("mermaid", "svg", "markdown"), "steps": ("markdown",)}

#: What a file's name says of the form that is wanted.
SUFFIXES = {".svg": "svg", ".md": "markdown", ".mmd": "mermaid"}


@click.command(
    epilog="""\b
Examples:
  rebalance-lab diagram runs/latest/join/zookeeper --list
  rebalance-lab diagram runs/latest/join/zookeeper
  rebalance-lab diagram runs/latest/join/zookeeper --show steps --member m1
  rebalance-lab diagram runs/latest/crash/zookeeper --from 3 --to 9 -o crash.svg
  rebalance-lab diagram runs/latest/crash/zookeeper --format markdown --rebalance 2 > crash.md"""
)
@click.argument("sources", metavar="RUN_OR_TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--list", "as_list", is_flag=True, help="Which rebalances there are, with their numbers.")
@click.option(
    "--show",
    type=click.Choice(list(FORMS)),
    help="sequence: who asked whom what, in one rebalance; timeline: who owned and delivered what; steps: one member's "
    "rebalance as a table.  [default: sequence; timeline as svg; all of them as markdown]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "markdown", "svg"]),
    help="[default: as the file's name says (.mmd, .md, .svg), else mermaid, markdown for steps]",
)
@click.option("--rebalance", "number", type=int, metavar="N", help="Which one.  [default: the first after the change]")
@click.option("--member", "names", multiple=True, metavar="NAME", help="Only this member; repeatable.")
@click.option("--from", "from_s", type=float, metavar="S", help="Seconds since the first event: instead of a number.")
@click.option("--to", "to_s", type=float, metavar="S", help="Until then.")
@click.option(
    "--brief/--full",
    default=None,
    help="One arrow a step, or one for each kind of request.  [default: brief for several members]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of standard output.")
def diagram(sources: tuple[Path, ...], as_list: bool, show: str | None, form: str | None, **options: Any) -> int:
    """Draw a rebalance from the traces of a run: nothing is run, nothing is analysed."""
    if form is None and options["output"] is not None:
        form = SUFFIXES.get(options["output"].suffix)
    shown, form = _what(show, form)
    traces = _read(sources)
    history = read_history(traces)
    if as_list:
        _print_list(history)
        return Exit.AS_EXPECTED
    chosen = _Chosen(history, options["number"], options["names"], options["from_s"], options["to_s"])
    text = "\n".join(_drawn(what, form, chosen, options["brief"]) for what in shown)
    if form == "markdown":
        text = f"{_caption(traces, chosen)}\n{text}"
    if options["output"] is None:
        click.echo(text, nl=False)
    else:
        _write(options["output"], text)
    return Exit.AS_EXPECTED


def _what(show: str | None, form: str | None) -> tuple[list[str], str]:
    """What is shown, and how. Raises `UserError` for what cannot be shown that way."""
    if show is None:
        return {"svg": ["timeline"], "markdown": list(FORMS)}.get(form or "", ["sequence"]), form or "mermaid"
    if form is None:
        return [show], FORMS[show][0]
    if form not in FORMS[show]:
        raise UserError(f"--show {show} can be {' or '.join(FORMS[show])}, not {form}")
    return [show], form


class _Chosen:
    """What of the history is shown: one round, or what overlaps a stretch of time; of all members, or of some."""

    def __init__(
        self, history: GroupHistory, number: int | None, names: Sequence[str], from_s: float | None, to_s: float | None
    ) -> None:
        self.history = history
        self.members = [history.member_named(name).name for name in names]
        if from_s is None and to_s is None:
            rounds = [history.chosen_round() if number is None else history.round_numbered(number)]
            self.window = around(history, rounds[0])
        elif number is not None:
            raise UserError("--rebalance and --from/--to both choose what is shown: give one of them")
        else:
            self.window = _window(history, from_s, to_s)
            rounds = [r for r in history.rounds if r.began_ns < self.window[1] and r.ended_ns > self.window[0]]
        self.numbers = [each.number for each in rounds]
        self._rebalances = [
            r for each in rounds for r in each.rebalances if r.began_ns < self.window[1] and r.ended_ns > self.window[0]
        ]

    def rebalances(self) -> list[MemberRebalance]:
        """Raises `UserError` when nothing is left."""
        left = [r for r in self._rebalances if not self.members or r.member.name in self.members]
        if not left:
            there = sorted({r.member.name for r in self._rebalances})
            raise UserError(
                f"{', '.join(self.members)} does not rebalance there, only {', '.join(there)}: see --list"
                if there
                else "nobody rebalances between these two moments: see --list"
            )
        return left


def _window(history: GroupHistory, from_s: float | None, to_s: float | None) -> tuple[int, int]:
    """Raises `UserError` when nothing can be between these moments."""
    last_s = history.seconds(history.events[-1]["ns"])
    began_s, ended_s = from_s or 0.0, last_s if to_s is None else to_s
    if not (0 <= began_s < min(ended_s, last_s)):
        raise UserError(f"--from {began_s:g} --to {ended_s:g}: the traces last from 0 to {last_s:.3f} s")
    return history.zero_ns + round(began_s * 1e9), history.zero_ns + round(ended_s * 1e9)


def _drawn(what: str, form: str, chosen: _Chosen, brief: bool | None) -> str:
    history = chosen.history
    if what == "steps":
        return "\n".join(walkthrough(history, each) for each in chosen.rebalances())
    if what == "sequence":
        rebalances = chosen.rebalances()
        several = len({each.member.name for each in rebalances}) > 1
        text = sequence(history, rebalances, brief=several if brief is None else brief)
    else:
        drawn = timeline(history, chosen.window[0], chosen.window[1], chosen.members)
        text = lanes(drawn, _title(chosen)) if form == "svg" else gantt(drawn)
    return f"```mermaid\n{text}```\n" if form == "markdown" else text


def _title(chosen: _Chosen) -> str:
    began, ended = (chosen.history.seconds(ns) for ns in chosen.window)
    many = "s" if len(chosen.numbers) > 1 else ""
    what = f"rebalance{many} {ranges(map(str, chosen.numbers))}" if chosen.numbers else "no rebalance"
    return f"group {chosen.history.group}: {what}, {began:.3f} to {ended:.3f} s"


def _caption(traces: Sequence[Trace], chosen: _Chosen) -> str:
    header = next(trace.header for trace in traces if trace.header is not None)
    ran = f"scenario `{header['scenario']}`, seed {header['seed']}" if header["scenario"] else "by hand"
    return f"<!-- made by `rebalance-lab diagram` from traces ({ran}) -->\n\n## {escape(_title(chosen), quote=False)}\n"


def _print_list(history: GroupHistory) -> None:
    counts = ("REQUESTS", "GENERATION") if history.coordinated else ("READS", "WRITES")
    table = Table(box=None, pad_edge=False)
    for heading in ("REBALANCE", "FROM S", "TO S", *counts):
        table.add_column(heading, justify="right")
    table.add_column("MEMBERS", overflow="fold")
    for row in listing(history):
        figures = (
            (str(row["requests"]), ranges(map(str, row["generations"])))
            if history.coordinated
            else (str(row["reads"]), str(row["writes"]))
        )
        times = (f"{row['from_s']:.3f}", f"{row['to_s']:.3f}")
        table.add_row(str(row["number"]), *times, *figures, "\n".join(row["members"]))
    Console().print(table)


# -- files ---------------------------------------------------------------------------------------------------------


def _read(sources: Sequence[Path]) -> list[Trace]:
    """The traces, each file once; what cannot be used of them is told on standard error."""
    traces = []
    for path in dict.fromkeys(file for source in sources for file in _files(source)):
        try:
            trace = read_trace(path)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        if trace.quarantined:
            reasons = ", ".join(sorted({each.reason.value for each in trace.quarantined}))
            click.echo(f"warning: {path}: {len(trace.quarantined)} lines cannot be used ({reasons})", err=True)
        traces.append(
            replace(trace, header=printable_all(trace.header), events=tuple(map(printable_all, trace.events)))
        )
    return traces


def _files(source: Path) -> list[Path]:
    """A trace file, a folder of them, a run's folder, or a folder with one run in it."""
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise UserError(f"{source} is neither a trace file nor a folder: give trace/*.jsonl, or a run's folder")
    for folder in (source, source / "trace"):
        if found := sorted(folder.glob("*.jsonl")):
            return found
    runs = sorted(path for path in source.rglob("trace") if any(path.glob("*.jsonl")))
    if not runs:
        raise UserError(f"{source} holds no trace (*.jsonl): give the folder of a run")
    if len(runs) > 1:
        named = ", ".join(str(path.parent) for path in runs[:8])
        raise UserError(f"{source} holds {len(runs)} runs, give one of them: {named}")
    return sorted(runs[0].glob("*.jsonl"))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another with --output") from error
