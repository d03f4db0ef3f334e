"""`rebalance-lab choose`: what the deploys, crashes and joins of a week cost in each design, and what that comes to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comparison.choosing.advice import why_left_out
from comparison.choosing.answer import choice_of
from comparison.choosing.choice import DEFAULT_EVENTS, EVENTS, Group, Tolerated
from comparison.choosing.costs import condensed, kept_costs, why_unusable
from comparison.cli.documents import print_document
from comparison.cli.options import form_option
from comparison.cli.quantities import Frequency, Number, Seconds
from comparison.exits import Exit
from comparison.near_paths import path_complaint
from comparison.results.sweep import SWEEP_DATA, SweepData
from comparison.scenarios.plan.catalogue import designs_named
from comparison.screen.printable import printable_all
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.json_file import read_json
from kernel.platform.whole_file import file_of_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.choosing.costs import Costs


def _event_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for each in reversed(EVENTS):
        command = click.option(
            f"--{each.name}",
            type=Frequency(),
            default=f"{DEFAULT_EVENTS.get(each.name, 0):g}/week",
            show_default=True,
            help=f"How often {each.meaning}.",
        )(command)
    return command


@click.command(
    epilog="""\b
Examples:
  rebalance-lab choose --deploys 40/day --members 12 --partitions 48
  rebalance-lab choose --crashes 1/week --tolerated-standstill 10s
  rebalance-lab choose --rate 5000 --tolerated-repeats 1000/week
  rebalance-lab choose --from runs/my-sweep --format json
  rebalance-lab choose --deploys 40/day --html choice.html

\b
Figures come from simulated runs that are kept with rebalance-lab; --from
takes those of your own sweep. Outside of what was run the answer is
`cannot say`, and where the ranges of designs overlap, none is chosen by them.
docs/choosing.md says how ranges are made, and what is left out.

\b
Exit codes: 0 a design that is advised meets what is tolerated, 1 none
  does, 2 nobody can say."""
)
@_event_options
@click.option("--members", type=click.IntRange(1, 100_000), default=8, show_default=True, help="Members of the group.")
@click.option(
    "--partitions", type=click.IntRange(1, 1_000_000), default=48, show_default=True, help="Partitions of its topic."
)
@click.option(
    "--rate",
    type=Number(0, 1e9),
    default=200,
    show_default=True,
    help="Records a second, over all partitions.",
)
@click.option(
    "--slowest-record",
    "slowest_record_s",
    type=Seconds(),
    default="1s",
    show_default=True,
    help="How long the slowest record takes, for --slow-joins.",
)
@click.option("--tolerated-repeats", "repeats", type=Frequency(), help="Records that may be delivered again.")
@click.option("--tolerated-standstill", "standstill_s", type=Seconds(), help="How long a partition may stand still.")
@click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="NAME",
    help="Only this design. Repeat it, or separate with commas; `all` is every design.",
)
@click.option("--from", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="A sweep's folder.")
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="Write a page, too.")
@form_option
def choose(folder: Path | None, page: Path | None, designs: tuple[str, ...], form: str, **given: Any) -> int:
    """Show what a week costs in each design, and which to choose.

    Adds up what deploys, crashes and other events cost in the runs of a sweep, each figure with a range. Runs nothing.
    """
    costs = kept_costs() if folder is None else _costs_of(folder)
    named = designs_named(designs) if any(designs) else ()
    found = choice_of(
        costs,
        Group(**{name: given[name] for name in ("members", "partitions", "rate", "slowest_record_s")}),
        {each.name: given[each.name.replace("-", "_")] for each in EVENTS},
        Tolerated(repeats=given["repeats"], standstill_s=given["standstill_s"]),
        designs=() if named in ((), DESIGN_NAMES) else named,  # those of the table
        of="" if folder is None else str(folder),
    )
    found = printable_all(found)
    if page is not None:
        from comparison.report.sweep.choice import choice_page

        text = choice_page(found)
        with file_of_option(page, "--html") as file:
            file.write_text(text, encoding="utf-8")
    if form == "json":
        print_document(found)
    else:
        from rich.console import Console

        from comparison.report.sweep.choice_text import print_choice

        print_choice(found, Console(file=sys.stdout, highlight=False))
    advised = [each for each in found.designs if not why_left_out(each.design)] or found.designs
    meets = {each.meets for each in advised if each.is_known}
    if True in meets:
        return Exit.AS_EXPECTED
    return Exit.NOT_AS_EXPECTED if meets == {False} else Exit.UNKNOWN


def _costs_of(folder: Path) -> Costs:
    """Raises `EnvironmentFault` for a folder without figures, `ConfigurationError` for those that have no use."""
    remedy = "Give the folder of a finished sweep"
    if not folder.is_dir():
        raise EnvironmentFault(path_complaint(folder, remedy, lambda path: (path / SWEEP_DATA).exists()))
    path = folder / SWEEP_DATA
    try:
        data = read_json(path, SweepData)
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}. {remedy}") from error
    if reason := why_unusable(data):
        raise ConfigurationError(f"{folder} {reason}")
    return condensed(data)
