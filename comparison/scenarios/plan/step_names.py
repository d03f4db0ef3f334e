"""The names of steps, as files write them: `KillOwner` is `kill-owner`."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

from comparison.scenarios.plan.vocabulary import Played, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Steps that only a page performs.
_BY_HAND = (Played,)


def name_of(step: type) -> str:
    """The name of a kind of step."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", step.__name__).lower()


_STEPS = {name_of(each): each for each in get_args(Step) if each not in _BY_HAND}
#: The steps that a file can have.
STEPS: Mapping[str, type] = MappingProxyType(_STEPS)
