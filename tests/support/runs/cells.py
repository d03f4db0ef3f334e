"""The catalogue in all designs, with the sizes at which tests run it."""

from __future__ import annotations

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.run.experiments import expanded, plan
from kernel.designs import DESIGN_NAMES

CELLS = [(each.scenario, each.design) for each in plan(expanded(list(CATALOGUE)), DESIGN_NAMES, {})]
#: Instead of the usual load: processor time is what many scenarios in a row are short of.
USUAL_RATE, LOW_RATE = Parameters().rate, 40
#: Smaller than by default, so that a cell takes seconds; or with more time.
OTHERWISE: dict[str, dict[str, object]] = {
    "add-partitions": {"members": 3, "partitions": 90, "rate": 180},
    "herd": {"rate": 24},
    "unnoticed-partitions": {"rate": 20, "time_limit_s": 600},
    # Its rounds last half a second, for which a busy machine may stand still: only longer ones are to show deliveries.
    "idle-members": {"rate": 20},
}


def sizes_of(scenario: str) -> dict[str, object]:
    """What a test gives instead of the scenario's defaults."""
    usual = CATALOGUE[scenario].defaults.rate
    return {"rate": LOW_RATE if usual == USUAL_RATE else usual, **OTHERWISE.get(scenario, {})}
