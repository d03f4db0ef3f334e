"""The names of steps, as files write them: `KillOwner` is `kill-owner`."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan import membership_vocabulary, topic_vocabulary, vocabulary
from comparison.scenarios.plan.step import Step
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.step import OwnStep


def name_of(step: type) -> str:
    """The name of a kind of step."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", step.__name__).lower()


_STEPS = {
    name_of(each): each
    for module in (vocabulary, membership_vocabulary, topic_vocabulary)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Step) and each.__module__ == module.__name__ and not each.by_hand
}
#: The steps that a file can have.
STEPS: Mapping[str, type] = MappingProxyType(_STEPS)


def add_step(step: type[OwnStep]) -> None:
    """Add a user's step to the table. Raises `ConfigurationError` if its name is taken."""
    name = name_of(step)
    if name in _STEPS:
        raise ConfigurationError(f"there is a step {name!r} already. Choose another name for {step.__name__}")
    _STEPS[name] = step
