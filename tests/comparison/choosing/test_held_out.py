"""Groups and weeks that are not in the grid: they are run as one run, and fall into the ranges that are stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from comparison.choosing.choice import Chooser, Group, Tolerated
from comparison.choosing.costs import MEASURES, kept_costs
from comparison.scenarios.plan.membership_vocabulary import RestartEach
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, JoinOne, KillOwner, LeaveOne, Settle, Steady
from kernel.designs import COOPERATIVE, DESIGN_NAMES
from tests.support.runs.simulations import Simulations

CRASH = (KillOwner(), Steady(), JoinOne())


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A part of a week as one run, and the same as events."""

    scenario: Scenario
    members: int
    partitions: int
    events: Mapping[str, float]
    slowest_record_s: float = 0


def slow_join(ms: int) -> tuple[Step, ...]:
    beginning = (Inject(fault="slow", target="owner"), Inject(fault="join", target="group"), Hold(ms))
    return (*beginning, Heal(fault="slow"), Settle())


def held_out(name: str, *steps: Step) -> Scenario:
    return Scenario(name=name, symptom="", look_for=(), counts_predicted=False, steps=(Form(), Steady(), *steps))


HELD_OUT: Mapping[str, HeldOut] = MappingProxyType(
    {
        "two deploys and a crash": HeldOut(
            held_out("deploys-and-crash", RestartEach(), Steady(), RestartEach(), Steady(), *CRASH),
            members=5,
            partitions=36,
            events={"deploys": 2, "crashes": 1},
        ),
        "a deploy, a crash and a leave": HeldOut(
            held_out("deploy-crash-and-leave", RestartEach(), Steady(), *CRASH, Steady(), LeaveOne()),
            members=11,
            partitions=60,
            events={"deploys": 1, "crashes": 1, "leaves": 1},
        ),
        "a join while a record takes three seconds": HeldOut(
            held_out("slow-join", *slow_join(3000)),
            members=6,
            partitions=80,
            events={"slow-joins": 1},
            slowest_record_s=3,
        ),
    }
)


@pytest.fixture(scope="module")
def simulations() -> Iterator[Simulations]:
    made = Simulations({each.scenario.name: each.scenario for each in HELD_OUT.values()})
    yield made
    made.close()


@pytest.mark.parametrize("title", ["two deploys and a crash", "a join while a record takes three seconds"])
def test_one_run_falls_into_the_stated_ranges(simulations: Simulations, title: str, tmp_path: Path) -> None:
    assert_in_range(simulations, title, COOPERATIVE, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", [7, 8, 9, 10])
@pytest.mark.parametrize("design", DESIGN_NAMES)
@pytest.mark.parametrize("title", HELD_OUT)
def test_every_design_falls_into_the_stated_ranges(
    simulations: Simulations, title: str, design: str, seed: int, tmp_path: Path
) -> None:
    assert_in_range(simulations, title, design, tmp_path, seed)


def assert_in_range(simulations: Simulations, title: str, design: str, folder: Path, seed: int = 7) -> None:
    case = HELD_OUT[title]
    given = {"members": case.members, "partitions": case.partitions, "seed": seed}
    made = simulations.run(folder / "run", case.scenario.name, design, **given)
    group = Group(
        members=case.members,
        partitions=case.partitions,
        rate=case.scenario.defaults.rate,
        slowest_record_s=case.slowest_record_s,
    )
    stated = Chooser(kept_costs()).week(design, group, case.events, Tolerated()).figures
    outside = []
    for measure in MEASURES:
        bounds, value = stated[measure.metric].bounds, made.run.metrics[measure.metric]
        assert bounds is not None
        assert value is not None
        if not bounds.low <= value <= bounds.high:
            outside.append(f"{measure.metric}: {value} is not within {bounds}")
    assert outside == []
