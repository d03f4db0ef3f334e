"""The names of steps, as files write them: `KillOwner` is `kill-owner`."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

from comparison.scenarios.plan.vocabulary import OwnStep, Played, Step
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Steps that only a page performs, and what users' own steps inherit from.
_NOT_IN_FILES = (Played, OwnStep)


def name_of(step: type) -> str:
    """The name of a kind of step."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", step.__name__).lower()


_STEPS = {name_of(each): each for each in get_args(Step) if each not in _NOT_IN_FILES}
#: The steps that a file can have.
STEPS: Mapping[str, type] = MappingProxyType(_STEPS)


def add_step(step: type[OwnStep]) -> None:
    """Add a user's step to the table. Raises `ConfigurationError` if its name is taken."""
    name = name_of(step)
    if name in _STEPS:
        raise ConfigurationError(f"there is a step {name!r} already. Choose another name for {step.__name__}")
    _STEPS[name] = step
