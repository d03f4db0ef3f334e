"""Scenarios that users write: files where a command takes a scenario's name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.scenarios.plan.catalogue import scenario_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.scenarios.plan.admitted import ScenarioFile

_SUFFIX = ".toml"


def own_scenario(path: Path, kept: Mapping[str, str] | None = None) -> ScenarioFile:
    """The scenario of a file, from now on known by its name.

    `kept`: the file and its plugins are copies, and no plugin is loaded that does not have its digest here. Raises
    `EnvironmentFault` if a file cannot be read or is not the one, `ConfigurationError` for its content.
    """
    # What reads a file knows every setting, and so loads the consumers of every design.
    from comparison.pipeline.figures.verdicts import why_not_judged
    from comparison.scenarios.plan.admitted import admit
    from comparison.scenarios.plan.plugins import load, load_installed, load_kept
    from comparison.scenarios.plan.scenario_file import read_scenario

    load_installed()
    file = read_scenario(path, why_not_judged, load if kept is None else partial(load_kept, digests=kept))
    admit(file)
    return file


def names_of(given: Sequence[str]) -> list[str]:
    """The names of scenarios, each of which may be given as a file. Raises `ConfigurationError` for an unknown one."""
    return [own_scenario(Path(each)).scenario.name if is_file(each) else scenario_named(each).name for each in given]


def is_file(given: str) -> bool:
    """Whether somebody means a file, not a name."""
    return given.endswith(_SUFFIX) or "/" in given
