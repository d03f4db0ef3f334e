"""Steps about members that are frozen or gone are refused, with the step that left them so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.membership_vocabulary import CrashAndReturn, RestartEach, Resubscribe, StartAnew
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.topic_vocabulary import CreateTopic, DeleteTopic
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, KillAtPoint, KillOwner, LeaveOne


def freeze(target: str = "m1") -> Inject:
    return Inject("freeze", target)


def objected(*steps: Step, members: int = 3) -> list[tuple[int, str]]:
    """The objections to these steps after the group has formed, which is step 1."""
    scenario = replace(CATALOGUE["crash"], name="own", steps=(Form(), *steps))
    return [(each.step + 1, each.why) for each in objections(scenario, Parameters(members=members))]


def test_topics_are_created_and_deleted_once() -> None:
    late = CreateTopic("orders-late")
    assert not objected(late, DeleteTopic("orders-late"), late, DeleteTopic("orders"))
    assert objected(late, late) == [(3, "name 'orders-late': there is such a topic by then")]
    assert objected(CreateTopic("no/slash"))[0][1].startswith("name 'no/slash': ")
    ((number, why),) = objected(DeleteTopic("order"))
    assert (number, why[:40]) == (2, "unknown topic 'order'. Did you mean 'ord")


@pytest.mark.parametrize("leaving", [RestartEach(), StartAnew(), Inject("rolling-restart", "members")])
@pytest.mark.parametrize(("target", "who"), [("m2", "m2"), ("owner", "an owner")])
def test_frozen_member_cannot_leave_with_all_others(leaving: Step, target: str, who: str) -> None:
    assert objected(freeze(target), Hold(10), leaving) == [
        (4, f"{who} has been frozen since step 2, and a frozen process cannot leave. Heal it first")
    ]
    assert not objected(freeze(target), Heal("freeze", target), leaving)
    assert not objected(freeze(target), Heal(), leaving)
    assert objected(freeze(target), Heal("cut"), leaving)


@pytest.mark.parametrize(
    "step",
    [Inject("leave", "m1"), Inject("restart", "m1"), Inject("flap", "m1", {"by": "leave"}), Resubscribe(1, (0,))],
)
def test_frozen_member_does_nothing_that_it_is_asked_for(step: Step) -> None:
    assert objected(freeze(), step) == [
        (3, "m1 has been frozen since step 2, and a frozen process does nothing. Heal it first")
    ]
    assert not objected(freeze("m2"), step)
    assert not objected(freeze("owner"), step), "the owner may be another one"


@pytest.mark.parametrize("step", [Inject("kill", "m1"), Inject("slow-start", "m1"), Inject("flap", "m1")])
def test_frozen_member_can_be_killed_and_the_next_process_is_not_frozen(step: Inject) -> None:
    assert not objected(freeze(), step, Heal(step.fault), RestartEach())


@pytest.mark.parametrize("gone", ["kill", "leave"])
@pytest.mark.parametrize(
    "step",
    [freeze(), Inject("restart", "m1"), Inject("cut", "m1->authority"), Inject("slow", "m1"), Resubscribe(1, (0,))],
)
def test_nothing_happens_to_a_member_that_is_gone(gone: str, step: Step) -> None:
    assert objected(Inject(gone, "m1"), step) == [(3, f"nobody has been at m1 since step 2 ({gone}). Heal that first")]
    assert not objected(Inject(gone, "m1"), Heal(), step)
    assert not objected(Inject(gone, "m1"), RestartEach())


@pytest.mark.parametrize("step", [CrashAndReturn(), Inject("kill", "owner"), Inject("cut", "owner->data")])
def test_owner_is_chosen_among_members_that_are_left(step: Step) -> None:
    why = "no member is left that could own partitions: all are frozen or gone. Heal one first"
    assert objected(freeze(), Inject("kill", "m2"), step, members=2) == [(4, why)]
    assert not objected(freeze(), Inject("kill", "m2"), step, members=3)
    assert not objected(freeze(), Inject("kill", "m2"), Heal("kill"), step, members=2)


def test_every_scenario_of_the_catalogue_is_possible() -> None:
    for scenario in CATALOGUE.values():
        assert not list(objections(scenario, scenario.defaults)), scenario.name


@pytest.mark.parametrize("step", [KillOwner(), LeaveOne()])
def test_another_member_has_to_take_over(step: Step) -> None:
    assert not objected(step, members=2)
    ((number, why),) = objected(step, members=1)
    assert (number, why) == (2, "needs another member to take over, but there would be 1 in the group")


def test_a_group_that_has_lost_a_member_is_grown_by_one_more() -> None:
    scenario = replace(CATALOGUE["join"], steps=(Form(4), LeaveOne(), Form(6), KillAtPoint("end", "member")))
    sizes = scenario.sizes(scenario.defaults)
    seen = []
    for step in scenario.steps:
        sizes.after(step)
        seen.append((sizes.present, sizes.joined, sizes.places))
    assert seen == [(4, 4, 4), (3, 4, 4), (6, 7, 7), (6, 8, 8)]
