"""Where something differs: a scenario in a design."""

from __future__ import annotations

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A scenario in a design; what makes two runs a pair."""

    scenario: str
    design: str

    def __str__(self) -> str:
        return f"{self.scenario} in {self.design}"
