"""Shrinking on pure predicates: what is left still fails, and nothing of it can be left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.fuzzing.drawing import draw
from comparison.fuzzing.schedule import Schedule, Steps
from comparison.fuzzing.shrinking import Shrunk, shrinking
from comparison.fuzzing.situation import START, sequence
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import FreezeOwner, Heal, Hold, Inject, Settle, Steady
from kernel.designs import EAGER
from tests.support.properties import examples


def shrunk(steps: Steps, fails: Callable[[Steps], bool], *, most: int = 10_000) -> Shrunk:
    """Drive the shrinking to its end, or to `most` candidates."""
    found = Shrunk(steps)
    asking = shrinking(found, partial(sequence, EAGER))
    try:
        candidate = next(asking)
        for _ in range(most):
            candidate = asking.send(fails(candidate))
    except StopIteration:
        pass
    return found


def words(steps: Steps) -> str:
    return Schedule(seed=1, number=1, design=EAGER, steps=steps).in_words()


def has(*wanted: type[Step]) -> Callable[[Steps], bool]:
    return lambda steps: all(any(isinstance(step, kind) for step in steps) for kind in wanted)


LONG = (
    START,
    Steady(),
    Inject("delay", "m1->data", {"by_ms": 10, "ways": "in"}),
    Hold(800),
    Inject("kill", "m2"),
    Hold(3000),
    Heal("kill", "m2"),
    Heal("delay", "m1->data"),
    FreezeOwner(over_ms=300),
    Steady(),
)


def test_only_the_step_that_matters_is_left_in_its_plainest_form() -> None:
    found = shrunk(LONG, has(FreezeOwner))
    assert words(found.steps) == "form · freeze owner"
    assert found.asked <= 12


def test_a_fault_keeps_its_heal_and_loses_its_parameters() -> None:
    found = shrunk(LONG, lambda steps: any(isinstance(each, Inject) and each.fault == "delay" for each in steps))
    assert words(found.steps) == "form · delay m1->data · heal all"


def test_two_steps_that_matter_together_are_both_left() -> None:
    found = shrunk(LONG, has(Inject, FreezeOwner))
    assert len(found.steps) == 4
    assert has(Inject, FreezeOwner)(found.steps)


def test_a_parameter_that_matters_is_left_without_the_others() -> None:
    def fails(steps: Steps) -> bool:
        return any(isinstance(each, Inject) and each.parameters.get("ways") == "in" for each in steps)

    assert words(shrunk(LONG, fails).steps) == "form · delay m1->data (ways in) · heal all"


def test_a_hold_becomes_as_short_as_still_fails() -> None:
    found = shrunk(LONG, lambda steps: any(isinstance(each, Hold) and each.ms >= 700 for each in steps))
    assert words(found.steps) == "form · hold 750 ms"


def test_what_never_fails_again_is_left_as_it_was_drawn() -> None:
    assert shrunk(LONG, lambda _: False).steps == LONG


def test_what_was_found_before_the_time_was_up_is_kept() -> None:
    found = shrunk(LONG, has(FreezeOwner), most=1)
    assert len(found.steps) < len(LONG)


def test_no_candidate_is_asked_about_twice_and_none_is_a_group_without_a_fault() -> None:
    asked: list[Steps] = []

    def fails(steps: Steps) -> bool:
        asked.append(steps)
        return False

    shrunk(LONG, fails)
    assert len({repr(steps) for steps in asked}) == len(asked)
    assert (START,) not in asked


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_shortest_one_fails_is_possible_and_no_single_step_can_be_left_out(seed: int, data: st.DataObject) -> None:
    drawn = draw(seed, 1, EAGER).steps
    kinds = data.draw(st.sets(st.sampled_from(sorted({type(step) for step in drawn[1:-1]} or {Hold}, key=str))))
    fails = has(*kinds)
    if not fails(drawn):
        return
    left = shrunk(drawn, fails).steps
    assert fails(left)
    assert sequence(EAGER, left) == left
    for place in range(1, len(left)):
        shorter = sequence(EAGER, (*left[:place], *left[place + 1 :]))
        only_ends = all(step in (START, Settle()) for step in shorter)
        assert len(shorter) >= len(left) or only_ends or not fails(shorter)
