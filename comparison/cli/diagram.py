"""`rebalance-lab diagram`: diagrams and tables of a group's rebalances, from its traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from comparison.cli.complaints import OneOf
from comparison.cli.documents import print_document
from comparison.cli.options import refuse_beside
from comparison.cli.trace_files import read_traces
from comparison.exits import Exit
from comparison.report.diagrams.gantt import gantt
from comparison.report.diagrams.markdown import escaped, in_comment
from comparison.report.diagrams.sequence import sequence
from comparison.report.diagrams.timeline import around, timeline
from comparison.report.diagrams.walkthrough import walkthrough
from comparison.report.drawing.picture import picture
from comparison.report.drawing.scale import Scale
from comparison.report.history.group_history import GroupHistory, listing, read_history
from comparison.report.history.steps import ranges
from comparison.screen.printable import printable_all
from comparison.screen.text_table import Column, TextTable
from kernel.errors import UserError
from kernel.platform.whole_file import file_of_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.history.group_history import MemberRebalance
    from comparison.report.view.model import RunView
    from kernel.trace.reader import Trace

#: The formats of each kind of diagram, its default first.
FORMS = {"sequence": ("mermaid", "markdown"), "timeline": ("mermaid", "svg", "markdown"), "steps": ("markdown",)}

#: The format that a file's suffix asks for.
SUFFIXES = {".svg": "svg", ".md": "markdown", ".mmd": "mermaid"}
#: Suffixes of pictures that are not drawn here.
_OTHER_PICTURES = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".tif", ".tiff", ".pdf", ".ps", ".eps"}
)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab diagram runs/latest/join/zookeeper --list
  rebalance-lab diagram runs/latest/join/zookeeper
  rebalance-lab diagram runs/latest/join/zookeeper --show steps --member m1
  rebalance-lab diagram runs/latest/crash/zookeeper --from 3 --to 9 \\
      -o crash.svg
  rebalance-lab diagram runs/latest/crash/zookeeper --format markdown \\
      --rebalance 2 > crash.md"""
)
@click.argument("sources", metavar="RUN_OR_TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--list",
    "as_list",
    is_flag=True,
    help="List the group's rebalances in the whole run with their numbers. An epoch that changes nothing for any "
    "member is none.",
)
@click.option(
    "--show",
    type=OneOf(list(FORMS)),
    help="sequence: the messages of one rebalance; timeline: who owned and delivered each partition; steps: one "
    "member's rebalance as a table.  [default: sequence; timeline for svg; all of them for markdown]",
)
@click.option(
    "--format",
    "form",
    type=OneOf(["mermaid", "markdown", "svg", "json"]),
    help="Output format; json is for --list.  [default: by the suffix of --output (.mmd, .md, .svg), else mermaid, or "
    "markdown for steps]",
)
@click.option(
    "--rebalance",
    "number",
    type=int,
    metavar="N",
    help="Number of the rebalance.  [default: the first one after the change]",
)
@click.option("--member", "names", multiple=True, metavar="NAME", help="Show only this member. May be repeated.")
@click.option(
    "--from", "from_s", type=float, metavar="S", help="Start of the window, in seconds (instead of --rebalance)."
)
@click.option("--to", "to_s", type=float, metavar="S", help="End of the window, in seconds.")
@click.option(
    "--brief/--full",
    default=None,
    help="One arrow per step, or one per kind of request.  [default: brief if several members are shown]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of standard output.")
def diagram(sources: tuple[Path, ...], as_list: bool, show: str | None, form: str | None, **options: Any) -> int:
    """Draw rebalances from a run's traces.

    RUN_OR_TRACE is a run's folder or a trace file (*.jsonl). Give several to combine their traces.
    """
    if as_list:
        refuse_beside("--list", "show", "number", "names", "from_s", "to_s", "brief", "output")
        if form not in (None, "json"):
            raise click.UsageError(f"--list has no format {form}. Use json, or leave --format out")
    elif form == "json":
        raise click.UsageError("--format json is for --list. Use mermaid, markdown or svg")
    if options["output"] is not None:
        form = form or _form_of(options["output"])
    shown, drawn_form = _what(show, None if as_list else form)
    traces = [_printable(trace) for trace in read_traces(sources)]
    history = read_history(traces)
    if as_list:
        if form == "json":
            print_document(listing(history))
        else:
            _print_list(history)
        return Exit.AS_EXPECTED
    header = next(trace.header for trace in traces if trace.header is not None)
    window = options["from_s"], options["to_s"]
    chosen = _Chosen(history, header, options["number"], options["names"], window)
    text = "\n".join(_drawn(what, drawn_form, chosen, options["brief"]) for what in shown)
    if drawn_form == "markdown":
        text = f"{_caption(traces, chosen)}\n{text}"
    if options["output"] is None:
        click.echo(text, nl=False)
    else:
        _write(options["output"], text)
    return Exit.AS_EXPECTED


def _form_of(output: Path) -> str | None:
    """The format of a file's suffix; None if it says nothing. Raises `UserError` for a picture that is not drawn."""
    if output.suffix.lower() in _OTHER_PICTURES:
        other = output.with_suffix(".svg")
        raise UserError(
            f"{output.suffix} is not drawn. Use -o {other}, open it in a browser and print or save it from there, or "
            f"convert it (rsvg-convert {other} -o {output})"
        )
    return SUFFIXES.get(output.suffix)


def _what(show: str | None, form: str | None) -> tuple[list[str], str]:
    """The kinds of diagram to show, and their format. Raises `UserError` for a combination that does not exist."""
    if show is None:
        return {"svg": ["timeline"], "markdown": list(FORMS)}.get(form or "", ["sequence"]), form or "mermaid"
    if form is None:
        return [show], FORMS[show][0]
    if form not in FORMS[show]:
        raise UserError(f"--show {show} has no format {form}. Use {' or '.join(FORMS[show])}")
    return [show], form


class _Chosen:
    """What is shown: one round or a window of time, of all members or of some."""

    def __init__(
        self,
        history: GroupHistory,
        header: Mapping[str, Any],
        number: int | None,
        names: Sequence[str],
        window: tuple[float | None, float | None],
    ) -> None:
        self.history = history
        self.scenario, self.seed = str(header["scenario"]), int(header["seed"])
        from_s, to_s = window
        self.members = [history.member_named(name).name for name in names]
        if from_s is None and to_s is None:
            rounds = [history.chosen_round() if number is None else history.round_numbered(number)]
            self.window = around(rounds[0])
        elif number is not None:
            raise UserError("--rebalance and --from/--to exclude each other. Leave one out")
        else:
            self.window = _window(history, from_s, to_s)
            rounds = [r for r in history.rounds if r.began_ns < self.window[1] and r.ended_ns > self.window[0]]
        self.numbers = [each.number for each in rounds]
        self._rebalances = [
            r for each in rounds for r in each.rebalances if r.began_ns < self.window[1] and r.ended_ns > self.window[0]
        ]

    def rebalances(self) -> list[MemberRebalance]:
        """The chosen rebalances. Raises `UserError` when there are none."""
        left = [r for r in self._rebalances if not self.members or r.member.name in self.members]
        if not left:
            there = sorted({r.member.name for r in self._rebalances})
            raise UserError(
                f"{', '.join(self.members)} has no rebalance in this window, only {', '.join(there)}. See --list"
                if there
                else "no member rebalances in this window. See --list"
            )
        return left


def _window(history: GroupHistory, from_s: float | None, to_s: float | None) -> tuple[int, int]:
    """The window in nanoseconds. Raises `UserError` when it is outside of the traces."""
    last_s = history.seconds(history.events[-1]["ns"])
    began_s, ended_s = from_s or 0.0, last_s if to_s is None else to_s
    if not (0 <= began_s < min(ended_s, last_s)):
        raise UserError(
            f"--from {began_s:g} --to {ended_s:g} is no window in the traces. They last from 0 to {last_s:.3f} s"
        )
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
        view = timeline(history, *chosen.window, chosen.members, scenario=chosen.scenario, seed=chosen.seed)
        text = _picture(chosen, view) if form == "svg" else gantt(view)
    return f"```mermaid\n{text}```\n" if form == "markdown" else text


def _title(chosen: _Chosen) -> str:
    began, ended = (chosen.history.seconds(ns) for ns in chosen.window)
    many = "s" if len(chosen.numbers) > 1 else ""
    what = f"rebalance{many} {ranges(map(str, chosen.numbers))}" if chosen.numbers else "no rebalance"
    ran = f"{chosen.scenario} in {chosen.history.design}, " if chosen.scenario else ""
    return f"{ran}group {chosen.history.group}: {what}, {began:.3f} to {ended:.3f} s"


def _picture(chosen: _Chosen, view: RunView) -> str:
    return picture(view, Scale(0.0, view.began_ms, view.ended_ms), _title(chosen))


def _caption(traces: Sequence[Trace], chosen: _Chosen) -> str:
    header = next(trace.header for trace in traces if trace.header is not None)
    ran = f"scenario `{header['scenario']}`, seed {header['seed']}" if header["scenario"] else "by hand"
    return f"<!-- made by `rebalance-lab diagram` from traces ({in_comment(ran)}) -->\n\n## {escaped(_title(chosen))}\n"


def _print_list(history: GroupHistory) -> None:
    counts = ("REQUESTS", "GENERATION") if history.coordinated else ("READS", "WRITES")
    table = TextTable(
        [
            Column(heading="REBALANCE", is_label=True, is_right=True),
            *(Column(heading=heading, is_right=True) for heading in ("FROM S", "TO S", *counts)),
            Column(heading="MEMBERS", wraps=True),
        ],
        gaps=(2, 1),
        is_ruled=False,
    )
    for row in listing(history):
        figures = (
            (str(row["requests"]), ranges(map(str, row["generations"])))
            if history.coordinated
            else (str(row["reads"]), str(row["writes"]))
        )
        times = (f"{row['from_s']:.3f}", f"{row['to_s']:.3f}")
        table.add(str(row["number"]), *times, *figures, "\n".join(row["members"]))
    Console().print(table)


# -- files ---------------------------------------------------------------------------------------------------------


def _printable(trace: Trace) -> Trace:
    return replace(trace, header=printable_all(trace.header), events=tuple(map(printable_all, trace.events)))


def _write(path: Path, text: str) -> None:
    with file_of_option(path, "--output") as file:
        file.write_text(text, encoding="utf-8")
