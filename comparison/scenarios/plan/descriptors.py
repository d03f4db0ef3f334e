"""How many members a run has, and how many files and connections one of its processes may have open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.platform.descriptors import DESCRIPTORS

if TYPE_CHECKING:
    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario


def descriptors_needed(scenario: Scenario, parameters: Parameters) -> int:
    """How many files and connections one process of a run may have open: the runner has three or four a member."""
    servers = parameters.brokers + scenario.zookeeper_servers
    return max(DESCRIPTORS, 128 + 8 * (members_in_all(scenario, parameters) + servers))


def members_in_all(scenario: Scenario, parameters: Parameters) -> int:
    """How many members the scenario's steps let join, without those that bring a process of their own."""
    sizes = scenario.sizes(parameters)
    for step in scenario.steps:
        sizes.after(step)
    return sizes.joined
