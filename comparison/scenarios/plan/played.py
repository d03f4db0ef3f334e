"""The scenario of the playground: somebody plays against a group by hand."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Played

#: The most that a game takes: enough to see a herd, and two designs still run side by side on two cores.
MEMBERS_MAX, PARTITIONS_MAX, RATE_MAX = 12, 24, 1000
#: A game that is not stopped ends by itself.
GAME_S_MAX = 3600

PLAYGROUND = Scenario(
    name="playground",
    symptom="What happens to my group if I do this now?",
    look_for=(
        "what was played: the changes and faults are those that somebody asked for on the page",
        "only safety is judged: no record lost, and under a coordinator no stale write and no offset moved back",
    ),
    steps=(Played(),),
    defaults=Parameters(members=3, partitions=6, rate=60, time_limit_s=GAME_S_MAX),
    settings=MappingProxyType({"metadata.max.age.ms": "3000"}),  # so that added partitions are found while one looks
    brokers_min=2,
)
