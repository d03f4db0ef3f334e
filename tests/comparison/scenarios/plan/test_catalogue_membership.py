"""The scenarios about who is a member: how long one is away, and what files may say."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.catalogue_membership import COMPARED_STRATEGIES
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.membership_vocabulary import (
    CrashAndReturn,
    DuplicateInstance,
    JoinAndLeave,
    RestartEach,
    Resubscribe,
    StartAnew,
)
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.vocabulary import Form
from kernel.designs import DELAYED, DESIGN_NAMES
from kernel.errors import ConfigurationError


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_member_comes_back_while_it_is_missed_or_after_it_was_given_up(design: str) -> None:
    scenario = CATALOGUE["crash-and-return"]
    made = configuration(design, scenario.parameters({}))
    missed_ms = CrashAndReturn().away(made.session_ms, made.delay_ms)
    late_ms = CrashAndReturn(over_ms=2000).away(made.session_ms, made.delay_ms)
    assert late_ms == made.session_ms + made.delay_ms + 2000
    if design == DELAYED:
        # The delay begins when the session ends, up to a heartbeat less than a session after the kill.
        assert made.session_ms < missed_ms < made.session_ms - made.heartbeat_ms + made.delay_ms
    else:
        assert missed_ms < made.session_ms - made.heartbeat_ms


def test_every_strategy_gets_the_same_join_and_leave() -> None:
    steps = CATALOGUE["strategies"].steps
    assert [step.label for step in steps if isinstance(step, JoinAndLeave)] == list(COMPARED_STRATEGIES)
    anew = [step.settings["partition.assignment.strategy"] for step in steps if isinstance(step, StartAnew)]
    assert anew == list(COMPARED_STRATEGIES[1:])


def own(*steps: object) -> Scenario:
    return Scenario(name="mine", symptom="?", look_for=("?",), steps=steps)  # type: ignore[arg-type]  # steps they are


@pytest.mark.parametrize("more", [JoinAndLeave("x"), DuplicateInstance(), StartAnew()])
def test_members_at_new_places_can_be_named_afterwards(more: object) -> None:
    parameters = Parameters(members=1)
    assert not list(objections(own(Form(), more, Resubscribe(2, (0,))), parameters))
    assert list(objections(own(Form(), Resubscribe(2, (0,))), parameters))


def test_name_can_be_duplicated_only_where_members_have_one() -> None:
    scenario = own(Form(), DuplicateInstance())
    for design in ("static", "eager"):
        case = Case(scenario, design, Parameters(), configuration(design, Parameters()))
        if design == "static":
            require_feasible(case)
        else:
            with pytest.raises(ConfigurationError, match="Choose static"):
                require_feasible(case)


def test_members_of_another_design_may_keep_their_offsets_elsewhere() -> None:
    kafka = {"offsets.storage": "kafka"}

    def complaint(*steps: object) -> str:
        try:
            require_feasible(Case(own(*steps), "eager", Parameters(), configuration("eager", Parameters())))
        except ConfigurationError as error:
            return str(error)
        return ""

    assert not complaint(Form(design="zookeeper"), RestartEach(settings=kafka), StartAnew())
    assert "step 1" in complaint(Form(settings=kafka))
    assert "step 3" in complaint(Form(design="zookeeper"), StartAnew(), RestartEach(settings=kafka))
