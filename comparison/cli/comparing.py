"""Two results that a user gives to compare: what they are called, and whether they can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.cli.report_file import commands_of, described_of
from comparison.differences.compared import Side, by_column, compared
from comparison.report.summaries.differences import DEFAULT_SIDES, Sides
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
    help=f"What two results that are compared are called.  [default: {','.join(DEFAULT_SIDES)}]",
)


def sides_of(names: str | None) -> Sides:
    """What the two sides are called. Raises a usage error for anything but two different names."""
    if names is None:
        return DEFAULT_SIDES
    found = [name.strip() for name in names.split(",")]
    if len(found) != 2 or not all(found) or found[0] == found[1]:
        raise click.BadParameter("give two different names, as before,after", param_hint="'--names'")
    return Sides(*found)


def difference_of(before: Located, after: Located, sides: Sides, bounds: Sequence[Bound] = ()) -> Difference:
    """The two results compared. Raises `UserError` if they share a run, or have nothing in common."""
    _require_comparable(before, after)
    return compared(_side(before, sides.before), _side(after, sides.after), bounds)


def have_common(before: Located, after: Located) -> bool:
    """Whether both have a scenario with runs in the same design: two scenarios of one result can share a run."""
    one, other = ({each.scenario for each in result.scenarios} for result, _ in (before, after))
    return bool(one & other and by_column(before[0]).keys() & by_column(after[0]).keys())


def _require_comparable(before: Located, after: Located) -> None:
    (first, home), (second, other) = before, after
    if shared := {run.path for run in first.runs} & {run.path for run in second.runs}:
        raise UserError(f"{min(shared)} is in both. Give two results of different runs")
    if not have_common(before, after):
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
