"""Writes a result's report from what is beside it: the analysis's tables, and the record of the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from comparison.cli.catalogue_text import catalogue
from comparison.report.chosen import together
from comparison.report.page import page
from comparison.report.sections.done import About
from comparison.report.view.runs import read_views
from comparison.whole_file import whole_file
from kernel.json_file import json_if_readable
from kernel.trace.listed_file import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPORT, COMMAND = "report.html", "command.json"
#: Of a page of more commands than these, the first are shown.
COMMANDS_MAX = 10
#: How far above a run its command is: runs/<command>/<scenario>/<design>/seed-<n>.
_LEVELS = 3


def write_report(result: Mapping[str, Any], folder: Path) -> Path:
    """Write `report.html` into the result's folder, which has its tables; returns its path."""
    write_page([(result, folder)], folder / REPORT)
    return folder / REPORT


def write_page(results: Sequence[tuple[Mapping[str, Any], Path]], output: Path) -> None:
    """Write one page of several results, each with the folder that has its tables: the whole page, or nothing.

    Raises TablesMissing, and OSError when the file cannot be written.
    """
    views = [view for result, folder in results for view in read_views(result, folder)]
    command, *others = _commands(results)
    about = About(command, {**catalogue(), **_described(results)}, others)
    shown = page(together([result for result, _ in results]), views, about)
    with whole_file(output) as file:
        file.write_text(shown, encoding="utf-8")


def _commands(results: Sequence[tuple[Mapping[str, Any], Path]]) -> list[Mapping[str, Any]]:
    """The commands that made the runs, each once: those beside the results, and above the runs of other folders."""
    homes: dict[Path, None] = {}
    for result, folder in results:
        homes[folder] = None
        for run in result["runs"]:
            above = (each for each in Path(run["path"]).parents[:_LEVELS] if (each / COMMAND).is_file())
            homes |= dict.fromkeys(each.resolve() for each in above)
    known = [command for folder in homes if (command := _command(folder))]
    return known[:COMMANDS_MAX] or [{}]


def _described(results: Sequence[tuple[Mapping[str, Any], Path]]) -> dict[str, Mapping[str, Any]]:
    """The scenarios by name, as their runs describe them."""
    found: dict[str, Mapping[str, Any]] = {}
    for run in (run for result, _ in results for run in result["runs"]):
        if run["scenario"] not in found and isinstance(
            text := _json(Path(run["path"]) / RUN_FILE).get("described"), dict
        ):
            found[run["scenario"]] = text
    return found


def _command(folder: Path) -> Mapping[str, Any]:
    """What the folder's command.json holds, or its run.json; empty without a readable one."""
    return _json(folder / COMMAND) or _json(folder / RUN_FILE)


def _json(path: Path) -> Mapping[str, Any]:
    """A file's content; empty if it is not a readable object."""
    return json_if_readable(path, dict[str, Any]) or {}
