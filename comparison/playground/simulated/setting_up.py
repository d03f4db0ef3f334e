"""Prepares a simulated game."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.playground.play.setting_up import Prepared, planned
from comparison.playground.simulated.game import MEMBERS_MAX, SimulatedGame
from comparison.scenarios.plan.played import PLAYGROUND
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Records a second for each partition, if no other rate is given: most of what a virtual second costs are records, and
#: two of them are enough to see who delivers a partition, which a second without any leaves open.
PARTITION_RATE = 2


def prepared(
    root: Path, designs: Sequence[str], given: Mapping[str, object], *, command: list[str], idle_s: float
) -> Prepared:
    """As `comparison.playground.play.setting_up.prepared`."""
    if given.get("rate") is None:
        parameters = PLAYGROUND.parameters(given)
        given = {**given, "rate": PARTITION_RATE * parameters.partitions}
    plan = planned(root, designs, given, command=command, members_max=MEMBERS_MAX, designs_max=len(DESIGNS))
    return Prepared(game=SimulatedGame(plan, idle_s=idle_s), bundle=plan.bundle, provenance=plan.provenance)
