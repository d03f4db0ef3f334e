"""Scenarios of files that a command was given: known by their names for the rest of the process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from comparison.scenarios.plan.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFile:
    """A scenario with the file that it was read from."""

    scenario: Scenario
    path: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


_ADMITTED: dict[str, ScenarioFile] = {}


def admit(file: ScenarioFile) -> None:
    """Make a file's scenario known by its name. Raises `ConfigurationError` if another file has the same name."""
    name = file.scenario.name
    other = _ADMITTED.get(name)
    if other is not None and other.path != file.path and other.text != file.text:
        raise ConfigurationError(f"{other.path} and {file.path} both have the name {name!r}. Choose another one")
    _ADMITTED[name] = file


def admitted() -> dict[str, ScenarioFile]:
    """Every file by its scenario's name."""
    return dict(_ADMITTED)


def file_of(scenario: Scenario) -> ScenarioFile | None:
    """The file that a scenario was read from, or None."""
    file = _ADMITTED.get(scenario.name)
    return file if file is not None and file.scenario == scenario else None
