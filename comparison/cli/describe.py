"""`rebalance-lab describe`: the groups of a finished run at a moment, in the columns of Kafka's own tools."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console

from comparison.cli.documents import print_document
from comparison.cli.options import form_option, refuse_beside
from comparison.cli.part_options import chosen_parts, part_options
from comparison.cli.trace_files import read_traces
from comparison.exits import Exit
from comparison.group_readers.columns import Part, tables
from comparison.report.history.group_moment import RunEvents
from comparison.screen.printable import printable
from kernel.errors import UserError


@click.command(
    epilog="""\b
Examples:
  rebalance-lab describe runs/latest/crash/eager
  rebalance-lab describe runs/latest/crash/eager --group-state --at 12.4s
  rebalance-lab describe runs/latest/pause/zookeeper --offsets --at 9
  rebalance-lab describe runs/latest/pause/zookeeper --format json

\b
Columns are those of `watch`: ConsumerOffsetChecker's in the zookeeper design,
kafka-consumer-groups' in the others.
Owners, members and committed offsets are those that ZooKeeper or the
coordinator had; CLIENT-ID is the process."""
)
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
@part_options
@click.option(
    "--at",
    "at",
    metavar="S",
    help="Second of the run, as 12.4 or 12.4s.  [default: before the final reads, or the end]",
)
@form_option
def describe(source: Path, at: str | None, form: str, **parts: bool) -> int:
    """Describe a run's groups at a moment: members, owners, offsets, lag, coordinator and state.

    RUN is a run's folder. What is shown is folded from its traces.
    """
    if form == "json":
        refuse_beside("--format json, which has everything", *Part)
    traces = read_traces([source])
    if all(trace.header is None for trace in traces):
        raise UserError(f"no trace in {source} can be read. Give the folder of a run")
    run = RunEvents(traces)
    moment_s = run.default_s() if at is None else _seconds(at, run.last_s)
    found = run.at(moment_s)
    if form == "json":
        groups = [msgspec.to_builtins(each) for each in found]
        print_document({"at_s": round(moment_s, 3), "groups": groups})
        return Exit.AS_EXPECTED if found else Exit.NOT_AS_EXPECTED
    screen = Console()
    room = screen.width if screen.is_terminal else None
    for group in found:
        generation = "" if group.generation is None else f", generation {group.generation}"
        name = printable(f"{run.scenario} in {run.design}, " if run.scenario else "")
        click.echo(f"{name}{moment_s:.3f} s of {run.last_s:.3f} s{generation}")
        for table in tables(group, chosen_parts(parts)):
            click.echo("\n".join(["", *table.lines(room)]))
        if group.problem:
            click.echo(f"\nnote: {group.problem}")
    if not found:
        click.echo(f"no group yet at {moment_s:.3f} s", err=True)
    return Exit.AS_EXPECTED if found else Exit.NOT_AS_EXPECTED


def _seconds(text: str, last_s: float) -> float:
    """The second of the run. Raises `UserError` for anything else, and for one that is not in the run."""
    try:
        moment_s = float(text.removesuffix("s"))
    except ValueError:
        raise UserError(f"--at {text} is not a time. Give a second of the run, such as 12.4s") from None
    if not 0 <= moment_s <= last_s:
        raise UserError(f"--at {text} is not in the run. It lasts from 0 to {last_s:.3f} s")
    return moment_s
