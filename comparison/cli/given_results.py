"""The results that a user gives by their folders."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.near_paths import holds_a_run, path_complaint
from comparison.report.summaries.chosen import of_scenario, only
from comparison.results.result import RESULT, read_result
from comparison.run_folder import LATEST
from kernel.errors import EnvironmentFault, UserError
from kernel.platform.json_file import DamagedFile

if TYPE_CHECKING:
    from comparison.results.result import Result


def result_of(folder: Path) -> tuple[Result, Path]:
    """The result in a folder or the nearest one above, with the runs of the folder; and where it is.

    Raises `UserError` with the remedy for a folder that was not analysed, and for a result that cannot be shown.
    """
    given, folder = folder, folder.resolve()
    for home in (folder, *folder.parents[:3]):
        path = home / RESULT
        if not path.is_file():
            continue
        try:
            result = read_result(path)
        except DamagedFile as error:
            raise UserError(f"{path} cannot be shown ({error.why}). {_remedy(home)}") from error
        chosen = result if home == folder else _of_folder(result, folder.relative_to(home), folder)
        if chosen.runs:
            return chosen, home
    if not given.is_dir():
        raise EnvironmentFault(path_complaint(given, "Give a folder that was analysed"))
    raise UserError(f"no {RESULT} with a run in {folder}, or above it. {_remedy(folder)}")


def _of_folder(result: Result, below: Path, folder: Path) -> Result:
    """The runs in a folder; a scenario's folder stands for the scenario, with the runs that it shares with another."""
    own = [each for each in result.scenarios if Path(each.scenario) == below]
    return of_scenario(result, own[0]) if own else only(result, lambda run: Path(run.path).is_relative_to(folder))


def _remedy(folder: Path) -> str:
    """What to do about a missing or damaged result. `fuzz` keeps no run unless it found something."""
    if (folder / LATEST / RESULT).is_file():
        return f"Did you mean {folder / LATEST}?"
    if not holds_a_run(folder):
        return "Give a folder that `run` or `compare` created"
    return f"Run `rebalance-lab analyze {shlex.quote(str(folder))}`"
