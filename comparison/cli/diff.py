"""`rebalance-lab diff`: the same scenarios and designs in two results, figure by figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from comparison.cli.documents import print_document
from comparison.cli.given_results import result_of
from comparison.cli.options import form_option
from comparison.cli.report_file import commands_of, described_of
from comparison.differences.bounds import bounds_of
from comparison.differences.compared import Side, by_column, compared
from comparison.exits import Exit
from comparison.report.difference import render
from comparison.report.summaries.differences import DEFAULT_SIDES, Sides, conclusion
from comparison.screen.printable import printable_all
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.cli.report_file import Located
    from comparison.differences.bounds import Bound
    from comparison.differences.compared import Difference
    from comparison.results.result import Result

names_option = click.option(
    "--names",
    metavar="OLD,NEW",
    help=f"What the two are called.  [default: {','.join(DEFAULT_SIDES)}]",
)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab diff runs/20261123T111623Z-run runs/latest
  rebalance-lab diff main branch --worse-than 20%
  rebalance-lab diff 0.1 0.2 --names 0.1,0.2 --worse-than lost=0 \\
      --worse-than converge_ms=20%

\b
Exit codes with --worse-than: 0 nothing is worse, 1 something is worse than
allowed, 2 it cannot be known."""
)
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--worse-than",
    "bounds",
    multiple=True,
    metavar="[FIGURE=]BOUND",
    help="Fail if a figure of B is worse than A's by more than this and beyond the repeats' ranges: 20%, lost=0, "
    "converge_ms=20%. May be repeated, or separated with commas.",
)
@names_option
@click.option("--all-figures", is_flag=True, help="Also show the figures that do not differ.")
@form_option
def diff(before: Path, after: Path, bounds: tuple[str, ...], names: str | None, all_figures: bool, form: str) -> int:
    """Compare the same scenarios and designs in two results: with other settings, or another release.

    A and B are folders with a result.json, or a scenario's or run's folder in one. Repeats (--repeat) of both show
    which differences are more than chance.
    """
    allowed = bounds_of(bounds)
    found = difference_of(result_of(before), result_of(after), sides_of(names), allowed)
    if form == "json":
        print_document(found)
        if text := conclusion(found):
            click.echo(text, err=True)
    else:
        console = Console()
        console.file.write(render(printable_all(found), console, with_all=all_figures))
    if found.worse:
        return Exit.NOT_AS_EXPECTED
    return Exit.UNKNOWN if found.unknown else Exit.AS_EXPECTED


def sides_of(names: str | None) -> Sides:
    """What the two sides are called. Raises a usage error for anything but two different names."""
    if names is None:
        return DEFAULT_SIDES
    found = [name.strip() for name in names.split(",")]
    if len(found) != 2 or not all(found) or found[0] == found[1]:
        raise click.BadParameter("give two different names, as before,after", param_hint="'--names'")
    return Sides(*found)


def difference_of(before: Located, after: Located, sides: Sides, bounds: Sequence[Bound]) -> Difference:
    """The two results compared. Raises `UserError` if they are the same, or have nothing in common."""
    require_comparable(before, after)
    return compared(_side(before, sides.before), _side(after, sides.after), bounds)


def require_comparable(before: Located, after: Located) -> None:
    (first, home), (second, other) = before, after
    if shared := {run.path for run in first.runs} & {run.path for run in second.runs}:
        raise UserError(f"{min(shared)} is in both. Give two results of different runs")
    if not by_column(first).keys() & by_column(second).keys():
        raise UserError(
            f"nothing to compare: {home} has {_columns(first)}, {other} has {_columns(second)}. Give two results with "
            "a scenario and a design in common; `report` shows designs beside each other"
        )


def _columns(result: Result) -> str:
    names = list(map(str, by_column(result)))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _side(located: Located, name: str) -> Side:
    result, folder = located
    return Side(name, str(folder), result, commands_of([located]), described_of([located]))
