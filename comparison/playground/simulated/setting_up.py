"""Prepares a simulated game."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.playground.play.setting_up import Prepared, planned
from comparison.playground.simulated.game import MEMBERS_MAX, SimulatedGame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def prepared(
    root: Path, designs: Sequence[str], given: Mapping[str, object], *, command: list[str], idle_s: float
) -> Prepared:
    """As `comparison.playground.play.setting_up.prepared`."""
    plan = planned(root, designs, given, command=command, members_max=MEMBERS_MAX)
    return Prepared(game=SimulatedGame(plan, idle_s=idle_s), bundle=plan.bundle, provenance=plan.provenance)
