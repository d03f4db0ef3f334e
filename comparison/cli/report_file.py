"""Writes a result's report from what is beside it: the analysis's tables, and the record of the command."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from comparison.cli.catalogue_text import catalogue
from comparison.cli.complaints import error_line
from comparison.exits import Exit
from comparison.report.summaries.chosen import only, together
from comparison.wrong_data import WRONG_DATA, what_was_raised
from kernel.errors import EnvironmentFault
from kernel.platform.json_file import json_if_readable
from kernel.platform.places import each_of, exists, is_in_store, is_uri, place_of, resolved, write_whole
from kernel.platform.whole_file import whole_file
from kernel.trace.listed_file import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from pathlib import Path

    from comparison.differences.compared import Difference
    from comparison.report.view.model import RunView
    from comparison.results.result import Result
    from kernel.platform.places import Place

    #: A result, and the folder that has its tables.
    Located = tuple[Result, Place]

REPORT, COMMAND = "report.html", "command.json"
#: Of a page of more commands than these, the first are shown.
COMMANDS_MAX = 10
#: How far above a run its command is: runs/<command>/<scenario>/<design>/seed-<n>.
_LEVELS = 3


class Unshown(NamedTuple):
    """A run that the report leaves out because of an error of its own."""

    path: str
    why: str


def write_report(result: Result, folder: Place) -> list[Unshown]:
    """Write `report.html` into the result's folder, which has its tables; returns the runs that it leaves out."""
    return write_page([(result, folder)], folder / REPORT)


def write_page(results: Sequence[Located], output: Place, *, named: bool = False) -> list[Unshown]:
    """Write one page of several results, each with the folder that has its tables: the whole page, or nothing.

    `named`: the user has named the file. A run that cannot be shown is left out, and returned with the reason. Raises
    TablesMissing, and OSError when the file cannot be written.
    """
    return _write(results, output, _page, named=named)


def _write(
    results: Sequence[Located], output: Place, show: Callable[[Sequence[Located]], str], *, named: bool
) -> list[Unshown]:
    text, unshown = shown_of(results, show)
    if is_in_store(output):
        write_whole(output, text.encode())
    else:
        with whole_file(output, named=named) as file:
            file.write_text(text, encoding="utf-8")
    return unshown


def write_comparison(
    before: Located, after: Located, difference: Difference, output: Place, *, named: bool = False
) -> list[Unshown]:
    """Write one page of two results side by side, as `write_page` does of several."""
    return _write([before, after], output, lambda some: _comparison(some, difference), named=named)


def shown_of(results: Sequence[Located], show: Callable[[Sequence[Located]], str]) -> tuple[str, list[Unshown]]:
    """What `show` makes of the results, and the runs that it cannot show: they cost no other one its place.

    Raises what is raised without any of the runs.
    """
    try:
        return show(results), []
    except WRONG_DATA:
        unshown = _broken(results, show)
        if not unshown:
            raise
        return show(_without(results, {each.path for each in unshown})), unshown


def page_written(write: Callable[[], Sequence[Unshown]], output: Path) -> int:
    """Write a page, and say what it lacks; the exit code. Raises `EnvironmentFault` when the file cannot be written."""
    try:
        return left_out(write())
    except OSError as error:
        raise EnvironmentFault(f"cannot write {output}: {error.strerror}. Choose another file") from error


def left_out(unshown: Sequence[Unshown]) -> int:
    """Say of each run why the report lacks it; the exit code for them."""
    for each in unshown:
        click.echo(error_line(f"internal error: {each.path} is missing in the report: {each.why}. Report it"), err=True)
    return Exit.INTERNAL if unshown else Exit.AS_EXPECTED


def _page(results: Sequence[Located]) -> str:
    # Slow imports (PyArrow, Jinja), of which a command that only plans or runs needs none.
    from comparison.report.page import page
    from comparison.report.sections.done import About
    from comparison.report.view.runs import read_views

    views: dict[str, RunView | None] = {}
    for result, folder in results:
        for run, view in zip(result.runs, read_views(result, folder), strict=True):
            views.setdefault(run.path, view)  # as `together` takes the first result's run
    command, *others = commands_of(results)
    about = About(command, {**catalogue(), **described_of(results)}, others)
    whole = together([result for result, _ in results])
    return page(whole, [views[run.path] for run in whole.runs], about)


def _comparison(results: Sequence[Located], difference: Difference) -> str:
    from comparison.report.page import page
    from comparison.report.sections.differences import differences, drawn
    from comparison.report.sections.done import About
    from comparison.report.summaries.side_by_side import as_side, place_of_run
    from comparison.report.view.runs import read_views

    places = drawn(difference)
    sides, views = [], []
    for (result, folder), side in zip(results, (difference.before, difference.after), strict=True):
        kept = only(result, lambda run: place_of_run(run) in places)
        sides.append(as_side(kept, side.name))
        views += [
            view and replace(view, scenario=run.scenario, design=run.design)
            for view, run in zip(read_views(kept, folder), sides[-1].runs, strict=True)
        ]
    command, *others = commands_of(results)
    known = {**catalogue(), **described_of(results)}
    about = About(command, {str(place): known[place.scenario] for place in places if place.scenario in known}, others)
    return page(together(sides), views, about, differences(difference))


def _broken(results: Sequence[Located], show: Callable[[Sequence[Located]], str]) -> list[Unshown]:
    """The runs without which the others can be shown: halves of them are tried, and halves of those."""
    paths = [run.path for result, _ in results for run in result.runs]
    try:
        show(results)
    except WRONG_DATA as error:
        if len(paths) < 2:
            return [Unshown(path, what_was_raised(error)) for path in paths]
        half = {*paths[: len(paths) // 2]}
        return _broken(_without(results, {*paths} - half), show) + _broken(_without(results, half), show)
    return []


def _without(results: Sequence[Located], paths: Container[str]) -> list[Located]:
    return [(only(result, lambda run: run.path not in paths), folder) for result, folder in results]


def commands_of(results: Sequence[Located]) -> list[Mapping[str, Any]]:
    """The commands that made the runs, each once: those beside the results, and above the runs of other folders."""
    homes: dict[Place, None] = {}
    for result, folder in results:
        homes[folder] = None
        runs = _places(result, folder).values()
        above = list(dict.fromkeys(each for place in runs for each in place.parents[:_LEVELS]))
        there = each_of(lambda each: exists(each / COMMAND), above, in_store=is_in_store(folder))
        homes |= dict.fromkeys(resolved(each) for each, is_there in zip(above, there, strict=True) if is_there)
    known = [command for folder in homes if (command := _command(folder))]
    return known[:COMMANDS_MAX] or [{}]


def described_of(results: Sequence[Located]) -> dict[str, Mapping[str, Any]]:
    """The scenarios by name, as their runs describe them."""
    found: dict[str, Mapping[str, Any]] = {}
    for result, folder in results:
        places = _places(result, folder)
        for run in result.runs:
            if run.scenario in found or run.path not in places:
                continue
            text = _json(places[run.path] / RUN_FILE).get("described")
            if isinstance(text, dict):
                found[run.scenario] = text
    return found


def _places(result: Result, folder: Place) -> dict[str, Place]:
    """Where the runs are, by their paths: those in stores only if the result in `folder` is, too.

    Nobody needs a server to look at a result that is here.
    """
    return {run.path: place_of(run.path) for run in result.runs if is_in_store(folder) or not is_uri(run.path)}


def _command(folder: Place) -> Mapping[str, Any]:
    """What the folder's command.json holds, or its run.json; empty without a readable one."""
    return _json(folder / COMMAND) or _json(folder / RUN_FILE)


def _json(path: Place) -> Mapping[str, Any]:
    """A file's content; empty if it is not a readable object."""
    return json_if_readable(path, dict[str, Any]) or {}
