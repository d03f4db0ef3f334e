"""Groups that are too large for a simulated run of everything, the *full stack*.

Above a number of members that the user chooses, a cell is computed by the deciding modules alone
(`comparison.simulation.deciding`). In `zookeeper` one join of ten thousand members is a hundred million reads: there
the counts follow from the formula that analyses hold every run against (`comparison.pipeline.figures.model`), and
nothing else is known.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.pipeline.figures.model import Setting, Troubles, zookeeper
from comparison.results import sweep as cells
from comparison.results.keys import AUTHORITY_REQUESTS, GROUP_REQUESTS, PERIODIC_REQUESTS
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import RANGES
from kernel.designs import DESIGNS, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.parameters import Parameters
    from comparison.simulation.deciding.group import Stage

#: The largest group of which everything runs, unless the user chooses another number.
FULL_STACK_MEMBERS_MAX = int(RANGES["members"][1])
_FORM, _JOIN, _CRASH = "form", "join", "crash"
#: What is played of a scenario; the last one is what is measured.
STAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"mass-start": (_FORM,), "join": (_FORM, _JOIN), "crash": (_FORM, _CRASH)}
)
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


def why_not_large(scenario: str, design: str, parameters: Parameters) -> str:
    """Why a cell cannot be computed without running everything; '' if it can."""
    if scenario not in STAGES:
        return f"groups of more than the full stack's members play {', '.join(STAGES)} only"
    if design == ZOOKEEPER and scenario != _JOIN:
        return "the formula for groups of more than the full stack's members is of join only"
    if parameters.topics != 1 or parameters.streams != 1:
        return "groups of more than the full stack's members have one topic, and members of one stream"
    return ""


def estimated_large_s(scenario: str, parameters: Parameters) -> float:
    """Estimated duration of such a run."""
    return 1 + _SECONDS_A_MEMBER * parameters.members * len(STAGES[scenario])


def figures_of(scenario: str, design: str, parameters: Parameters) -> dict[str, float]:
    """The figures of the scenario's change, by the names that they have in a sweep."""
    change = STAGES[scenario][-1]
    if design == ZOOKEEPER:
        found = _by_formula(change, parameters)
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
        stage = group.form(parameters.members)
        if change != _FORM:
            stage = group.join() if change == _JOIN else group.crash()
        found = _of_stage(stage)
    name = scenario if change == _FORM else change
    whole: dict[str, float] = {figure: found[figure] for figure in _OF_RUNS if figure in found}
    return whole | {f"{name}.{figure}": value for figure, value in found.items()}


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
