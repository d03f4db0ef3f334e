"""Drawn schedules: always possible, always the same from the same seed, and of every fault of the table."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comparison.fuzzing import drawing, situation
from comparison.fuzzing.drawing import draw
from comparison.fuzzing.schedule import SESSION_MS, Schedule, kind_of_step
from comparison.fuzzing.situation import MEMBERS_MAX, START, Situation, sequence
from comparison.own_scenarios import why_not_judged
from comparison.scenarios.plan import faults, feasibility
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.faults import FAULTS, Fault
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.scenario_file import parse_scenario
from comparison.scenarios.plan.scenario_text import as_file
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.targets import TargetKind
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CutEnsemble,
    FreezeAtPoint,
    FreezeOwner,
    Heal,
    Hold,
    Inject,
    KillAtPoint,
    Settle,
    Steady,
)
from kernel.designs import COOPERATIVE, DELAYED, DESIGN_NAMES, EAGER, ZOOKEEPER
from tests.support.properties import examples

SEEDS = st.integers(0, 10_000)
DESIGNS = st.sampled_from(DESIGN_NAMES)


def kill(target: str) -> Inject:
    return Inject("kill", target)


def possible(*steps: object, design: str = EAGER) -> list[str]:
    """What is left of some steps after the start, in words."""
    made = sequence(design, steps)  # type: ignore[arg-type]  # they are steps
    return Schedule(seed=1, number=1, design=design, steps=made[1:]).in_words().split(" · ")


@pytest.mark.parametrize("simulated", [False, True])
@settings(max_examples=examples(40))
@given(seed=SEEDS, number=st.integers(1, 1000), design=DESIGNS)
def test_a_drawn_schedule_is_possible_and_the_same_again(simulated: bool, seed: int, number: int, design: str) -> None:
    schedule = draw(seed, number, design, simulated=simulated)
    assert draw(seed, number, design, simulated=simulated) == schedule
    assert schedule.steps[0] == START
    assert sequence(design, schedule.steps) == schedule.steps
    scenario = schedule.scenario()
    parameters = scenario.parameters({})
    require_feasible(Case(scenario, design, parameters, configuration(design, parameters)))
    assert not list(objections(scenario, parameters))
    assert parameters.seed == schedule.run_seed


@settings(max_examples=examples(20))
@given(seed=SEEDS, design=DESIGNS, simulated=st.booleans())
@example(seed=1, design="zookeeper", simulated=True)  # with fixes, which are judged by more checks
def test_a_schedule_is_the_same_one_in_a_scenario_file(seed: int, design: str, simulated: bool) -> None:
    scenario = draw(seed, 1, design, simulated=simulated).scenario()
    read = parse_scenario(as_file(scenario), "counterexample-1.toml", why_not_judged)
    assert (read.steps, read.checks, read.settings) == (scenario.steps, scenario.checks, scenario.settings)
    assert read.parameters({}) == scenario.parameters({})
    assert (read.zookeeper_servers, read.brokers_min) == (3, 2)


@settings(max_examples=examples(30))
@given(seed=SEEDS, design=DESIGNS, data=st.data())
def test_any_of_a_schedules_steps_make_a_possible_one(seed: int, design: str, data: st.DataObject) -> None:
    steps = draw(seed, 1, design).steps
    kept = [step for step in steps if data.draw(st.booleans())]
    made = sequence(design, kept)
    assert sequence(design, made) == made
    assert len(made) <= len(kept) + 2
    scenario = Schedule(seed=1, number=1, design=design, steps=made).scenario()
    parameters = scenario.parameters({})
    require_feasible(Case(scenario, design, parameters, configuration(design, parameters)))


@pytest.mark.parametrize("design", [ZOOKEEPER, EAGER])
def test_every_fault_of_the_table_and_every_kind_of_target_is_drawn(design: str) -> None:
    steps = [step for number in range(1, 1000) for step in draw(1, number, design).steps]
    drawn = Counter(map(kind_of_step, steps))
    assert {name for name, fault in FAULTS.items() if design in fault.designs} <= drawn.keys()
    assert {
        *("steady", "settle", "join one", "add partitions", "resubscribe", "freeze owner"),
        *("kill at point", "leave one"),
    } <= drawn.keys()


def test_a_new_fault_is_drawn_without_a_word_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Fault(name="new", area="processes", does="It breaks.", heals="It works.", targets=(TargetKind.MEMBER,))
    table = MappingProxyType({**FAULTS, "new": new})
    for module in (faults, feasibility, drawing, situation):
        monkeypatch.setattr(module, "FAULTS", table)
    assert any(isinstance(step, Inject) and step.fault == "new" for n in range(100) for step in draw(1, n, EAGER).steps)


@settings(max_examples=examples(40))
@given(seed=SEEDS, number=st.integers(1, 1000), design=DESIGNS)
def test_a_simulated_schedule_begins_as_the_real_one_and_has_a_fault(seed: int, number: int, design: str) -> None:
    real, simulated = draw(seed, number, design), draw(seed, number, design, simulated=True)
    begun = len(real.steps) - (real.steps[-1] in (Heal(), Settle()))
    same_holds = [[Hold(1) if isinstance(step, Hold) else step for step in each.steps] for each in (simulated, real)]
    assert same_holds[0][: begun - 1] == same_holds[1][: begun - 1]
    assert len(simulated.steps) >= drawing.SIMULATED_STEPS_MIN
    assert any(isinstance(step, Inject) for step in simulated.steps)


def test_designs_numbers_and_seeds_draw_different_schedules() -> None:
    drawn = (draw(1, 1, EAGER), draw(1, 2, EAGER), draw(2, 1, EAGER), draw(1, 1, COOPERATIVE))
    assert len({each.in_words() for each in drawn}) == 4


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((kill("m1"), Hold(500)), ["kill m1", "hold 500 ms", "heal all"]),
        ((kill("m9"), Steady()), ["steady"]),  # there is nobody
        ((Heal("kill", "m1"), Heal()), [""]),  # nothing to heal
        ((kill("m1"), Inject("freeze", "m1")), ["kill m1", "heal all"]),
        ((kill("m1"), FreezeOwner()), ["kill m1", "heal all"]),  # the group cannot settle
        ((kill("m1"), Heal(), FreezeOwner()), ["kill m1", "heal all", "freeze owner"]),
        ((kill("coordinator"), kill("broker-1")), ["kill coordinator", "heal all"]),
        ((kill("coordinator"), Inject("leave", "m1")), ["kill coordinator", "heal all"]),  # nobody would answer
        ((Inject("leave", "m1"), Inject("cut", "m1->data")), ["leave m1", "settle"]),
        ((Inject("leave", "m1"), Inject("leave", "m2")), ["leave m1", "settle"]),  # somebody must take over
        ((Inject("restart", "m1"), kill("owner")), ["restart m1", "settle"]),  # nobody may own anything yet
        ((Inject("restart", "m1"), Settle(), kill("owner")), ["restart m1", "settle", "kill owner", "heal all"]),
        ((Inject("expire", "m1"),), [""]),  # there is no session
        ((Inject("join", "group"), kill("m4")), ["join group", "settle"]),  # it may not have begun its trace
        ((Inject("rolling-restart", "members"), kill("m3")), ["rolling-restart members", "settle"]),  # the same
        ((Inject("join", "group"), Hold(500), kill("m4")), ["join group", "hold 500 ms", "kill m4", "heal all"]),
        ((Inject("join", "group", {"count": 3}),), [""]),  # too many
        ((KillAtPoint("join", "member"), kill("m1")), ["kill at point (point join, target member)"]),  # who is left?
        (
            (KillAtPoint("join", "broker"), kill("broker-1"), kill("owner")),
            ["kill at point (point join, target broker)", "kill owner", "heal all"],
        ),
        ((KillAtPoint("R1", "member"),), [""]),  # zookeeper's
        ((FreezeAtPoint("join"), Steady()), ["freeze at point (point join)", "steady"]),
        ((FreezeAtPoint("R5"),), [""]),  # zookeeper's
        ((FreezeAtPoint("stable"),), [""]),  # the coordinator passes it
        ((KillAtPoint("join", "broker"), AddPartitions()), ["kill at point (point join, target broker)"]),
        ((Inject("restart", "broker-1"), Settle(), KillAtPoint("join", "broker")), ["restart broker-1", "settle"]),
        ((CutEnsemble(), KillAtPoint("join", "broker"), AddPartitions()), ["cut ensemble"]),
    ],
)
def test_what_is_left_of_steps(steps: tuple[object, ...], left: list[str]) -> None:
    assert possible(*steps) == left


def test_members_that_joined_are_gone_after_the_heal_of_the_join() -> None:
    now = Situation(EAGER)
    for step in (START, Inject("join", "group", {"count": 2}), Heal("join", "group")):
        assert now.allows(step)
        now.take(step)
    assert now.places == ["m1", "m2", "m3"]
    assert now.size == MEMBERS_MAX
    assert not now.allows(kill("m4"))


def test_a_hold_outlasts_the_delay_of_a_design_that_has_one() -> None:
    assert situation.outlasts(EAGER, 1.5) == 1.5 * SESSION_MS
    assert situation.outlasts(DELAYED, 1.5) == 3 * SESSION_MS


def test_only_what_breaks_servers_needs_an_ensemble_of_its_own() -> None:
    def breaks(target: str, fault: str = "freeze") -> bool:
        return Schedule(seed=1, number=1, design=EAGER, steps=(START, Inject(fault, target))).breaks_servers

    assert breaks("leader")
    assert breaks("follower->ensemble", "cut")
    assert breaks("ensemble", "quorum-loss")
    assert not breaks("coordinator->zookeeper", "cut")
    assert not breaks("m1")


def test_steps_in_words() -> None:
    steps = (START, Steady(), Inject("delay", "m1->data", {"by_ms": 10}), Hold(20), Heal("delay", "m1->data"), Heal())
    schedule = Schedule(seed=1, number=7, design=EAGER, steps=(*steps, FreezeOwner(over_ms=300)))
    words = "form · steady · delay m1->data (by_ms 10) · hold 20 ms · heal delay m1->data · heal all"
    assert schedule.in_words() == f"{words} · freeze owner (over_ms 300)"
    assert schedule.title == "7 eager"
