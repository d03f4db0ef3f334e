"""Scenarios that users write: files where a command takes a scenario's name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by, naming, scenario_named
from kernel.suggestions import unknown

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
    from comparison.scenarios.plan.admitted import admit
    from comparison.scenarios.plan.plugins import load, load_installed, load_kept
    from comparison.scenarios.plan.scenario_file import read_scenario

    load_installed()
    file = read_scenario(path, why_not_judged, load if kept is None else partial(load_kept, digests=kept))
    admit(file)
    return file


def why_not_judged(name: str, like: str) -> str:
    """Why a scenario that is like another one ('': like none) cannot name this check; '' if it can."""
    from comparison.pipeline.figures.verdicts import CHECKS, has_several_ways

    names = list(dict.fromkeys(check.name for check in CHECKS))
    if name not in names:
        return unknown("check", name, names, hint="`rebalance-lab scenarios --steps` lists all")
    rows = [check for check in CHECKS if check.name == name]
    if has_several_ways(name) and not (
        like in CATALOGUE and any(row.is_named(judged_by(CATALOGUE[like])) for row in rows)
    ):
        known = naming(lambda named: any(row.is_named(named) for row in rows))
        return f"{name!r} is decided in several ways. Say which with like = NAME, one of {', '.join(known)}"
    return ""


def names_of(given: Sequence[str]) -> list[str]:
    """The names of scenarios, each of which may be given as a file. Raises `ConfigurationError` for an unknown one."""
    return [own_scenario(Path(each)).scenario.name if is_file(each) else scenario_named(each).name for each in given]


def is_file(given: str) -> bool:
    """Whether somebody means a file, not a name."""
    return given.endswith(_SUFFIX) or "/" in given
