"""Groups that are too large for a simulated run of everything, the *full stack*.

Above a number of members that the user chooses, a cell is computed by the deciding modules alone
(`comparison.simulation.deciding`). In `zookeeper` one join of ten thousand members is a hundred million reads: there
the counts follow from the formula that analyses hold every run against (`comparison.pipeline.figures.model`), and
nothing else is known.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from comparison.pipeline.figures.model import Setting, Troubles, zookeeper
from comparison.results import sweep as cells
from comparison.results.keys import AUTHORITY_REQUESTS, GROUP_REQUESTS, PERIODIC_REQUESTS, SIZING
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import RANGES
from comparison.scenarios.plan.vocabulary import Form, JoinOne, KillOwner, Steady
from kernel.designs import DESIGNS, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario
    from comparison.simulation.deciding.group import Stage

#: The largest group of which everything runs, unless the user chooses another number.
FULL_STACK_MEMBERS_MAX = int(RANGES["members"][1])
_FORM, _JOIN, _CRASH = "form", JoinOne.change, KillOwner.change
_PLAYED = "scenarios that form a group, and then at most once join-one and kill-owner, as join and crash do"
#: Figures of a change that are also those of a run with one change.
_OF_RUNS = ("converge_ms", "unowned_partition_s")
#: Seconds that deciding takes for one member and stage.
_SECONDS_A_MEMBER = 0.003


class Method(StrEnum):
    """How a simulated cell was computed."""

    FULL_STACK = cells.FULL_STACK
    DECIDING = "deciding modules"
    FORMULA = "formula"


def method_of(design: str, members: int, full_stack_max: int) -> Method:
    """How a cell of so many members is computed."""
    if members <= full_stack_max:
        return Method.FULL_STACK
    return Method.DECIDING if DESIGNS[design].coordinator else Method.FORMULA


def changes_of(scenario: Scenario) -> tuple[str, ...]:
    """The changes of a group that a scenario makes, in order; () if deciding modules alone cannot play it."""
    first, *others = [step for step in scenario.steps if not isinstance(step, Steady)]
    if not isinstance(first, Form) or first != Form(change=first.change, spread_ms=first.spread_ms):
        return ()
    if scenario.named_members or scenario.first_topics or scenario.pattern:
        return ()
    changes = [step.change for step in others if isinstance(step, JoinOne | KillOwner) and step == type(step)()]
    is_played = len(changes) == len(others) == len(set(changes))
    return (first.change, *changes) if is_played and (changes or first.change not in SIZING) else ()


def why_not_large(scenario: Scenario, design: str, parameters: Parameters) -> str:
    """Why a cell cannot be computed without running everything; '' if it can."""
    changes = changes_of(scenario)
    if not changes:
        return f"groups of more than the full stack's members play {_PLAYED}"
    if design == ZOOKEEPER and changes != (_FORM, _JOIN):
        return "the formula for groups of more than the full stack's members is of join only"
    if parameters.topics != 1 or parameters.streams != 1:
        return "groups of more than the full stack's members have one topic, and members of one stream"
    return ""


def estimated_large_s(scenario: Scenario, parameters: Parameters) -> float:
    """Estimated duration of such a run."""
    return 1 + _SECONDS_A_MEMBER * parameters.members * len(changes_of(scenario))


def figures_of(scenario: Scenario, design: str, parameters: Parameters) -> dict[str, float]:
    """The figures of the scenario's changes, by the names that they have in a sweep."""
    first, *others = changes_of(scenario)
    found: dict[str, Mapping[str, float]]
    if design == ZOOKEEPER:
        found = {change: _by_formula(change, parameters) for change in others}
    else:
        # Imported late, with brokers and members: to plan a sweep needs neither.
        from comparison.scenarios.plan.links import links_of
        from comparison.simulation.deciding.group import CountedGroup

        group = CountedGroup(
            design,
            configuration(design, parameters),
            partitions=parameters.partitions,
            seed=parameters.seed,
            links=links_of(parameters.links),
        )
        make = {_JOIN: group.join, _CRASH: group.crash}
        found = {first: _of_stage(group.form(parameters.members))}
        found |= {change: _of_stage(make[change]()) for change in others}
    measured = {change: figures for change, figures in found.items() if change not in SIZING}
    figures = {f"{change}.{name}": value for change, of_it in measured.items() for name, value in of_it.items()}
    if len(measured) == 1:
        (alone,) = measured.values()
        figures |= {name: alone[name] for name in _OF_RUNS if name in alone}
    return figures


def _of_stage(stage: Stage) -> dict[str, float]:
    requests, timed = stage.requests, {"converge_ms": stage.converge_ms, "detect_ms": stage.detect_ms}
    periodic = sum(requests.get(api, 0) for api in PERIODIC_REQUESTS)
    return {
        **{name: value for name, value in timed.items() if value is not None},
        "rounds": stage.rounds,
        "moved": stage.moved,
        "unowned_partition_s": stage.unowned_partition_s,
        "group_requests": sum(requests.get(api, 0) for api in GROUP_REQUESTS),
        "authority_requests": sum(requests.get(api, 0) for api in AUTHORITY_REQUESTS) + stage.zk_writes,
        "heartbeats_per_s": round(periodic / stage.lasted_s, 3),
        "zk_writes": stage.zk_writes,
        "authority_cpu_s": round(stage.cpu_s, 3),
    }


def _by_formula(change: str, parameters: Parameters) -> dict[str, float]:
    """Counts of a change in which no attempt fails; others cost more."""
    setting = Setting(
        members=parameters.members + 1, topics=1, partitions=parameters.partitions, brokers=parameters.brokers
    )
    predicted = zookeeper(change, setting, Troubles())
    reads, writes = predicted["reads"].count, predicted["writes"].count
    return {
        "zk_reads": reads,
        "zk_writes": writes,
        "notifications": predicted["notifications"].count,
        "authority_requests": reads + writes,
    }
