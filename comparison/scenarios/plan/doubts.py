"""Warnings of settings that are allowed but probably not meant, for the runs of a plan.

Some scenarios break a rule of thumb on purpose, so only what a user has set is warned of. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comparison.consumers import CONSUMERS, unconnected
from comparison.member_settings import MEMBER_SETTINGS
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from kernel.timer_advice import timer_advice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario

_NAME = re.compile(r"[a-z][a-z0-9.]*[a-z0-9]")


def doubts(planned: Iterable[tuple[str, str, Parameters]], given: Mapping[str, str]) -> list[str]:
    """One line for each doubt about a setting in `given`, with the designs that it concerns.

    `planned` has the scenario, the design and the parameters of each run.
    """
    found: dict[str, list[str]] = {}
    for name, design, parameters in planned if given else ():
        member = configuration(design, parameters).member
        for line in (
            *CONSUMERS[design].config(unconnected(member))[1],
            *_of_the_load(scenario_named(name), design, member),
        ):
            if given.keys() & set(_NAME.findall(line)) and design not in found.setdefault(line, []):
                found[line].append(design)
    return [f"{', '.join(designs)}: {line}" for line, designs in found.items() if designs]


def _of_the_load(scenario: Scenario, design: str, member: Mapping[str, str]) -> list[str]:
    """What depends on how long the scenario's applications take for a record."""
    slowest_ms = max((step.record_ms for step in scenario.steps), default=0)
    defaults = {name: setting.default for name, setting in MEMBER_SETTINGS[design].items()}
    return timer_advice({**defaults, **member}, slowest_record_ms=slowest_ms)
