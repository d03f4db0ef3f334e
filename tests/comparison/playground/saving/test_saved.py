"""A game as scenarios: every command has its steps or a reason, and the file is one that can be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.own_scenarios import why_not_judged
from comparison.playground import commands as c
from comparison.playground import messages
from comparison.playground.commands import MemberAction as Action
from comparison.playground.play.lifecycle import LAST_S
from comparison.playground.saving.saved import Played, saved
from comparison.playground.saving.steps import Act
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.scenario_file import parse_scenario
from comparison.scenarios.plan.vocabulary import AddPartitions, At, Form, Heal, Inject, Rate
from kernel.designs import DESIGN_NAMES

LIMITS = messages.Limits(members=5, partitions=8)
BEGUN_MS = 1000


def act(at_s: float, action: Action, member: str = "m2", **given: int) -> Act:
    return Act(BEGUN_MS + round(at_s * 1000), c.ActOnMember(action=action, member=member, **given))


def of(at_s: float, command: c.GroupCommand) -> Act:
    return Act(BEGUN_MS + round(at_s * 1000), command)


def game(acts: dict[str, Sequence[Act]], **fields: object) -> Played:
    given: dict[str, object] = {
        "name": "20261129T120000Z-playground",
        "provenance": {
            "command": ["rebalance-lab", "playground"],
            "versions": {"rebalance-lab": "0.1.0", "python": "3"},
        },
        "parameters": PLAYGROUND.parameters({"seed": 7}),
        "limits": LIMITS,
        "is_simulated": True,
        "begun_ms": BEGUN_MS,
        "now_ms": 20_000,
        "acts": acts,
    }
    return Played(**{**given, **fields})  # type: ignore[arg-type]  # by their names


def read(text: str) -> Scenario:
    return parse_scenario(text, "played.toml", why_not_judged)


def scenario_of(*acts: Act) -> tuple[Scenario, messages.SavedScenario]:
    (found,) = saved(game({"eager": acts}))
    return read(found.text), found


STEPS = {
    "kill, start": (
        [act(1, Action.KILL), act(2, Action.START)],
        [At(1000), Inject("kill", "m2"), At(2000), Heal("kill", "m2", wait=False)],
    ),
    "leave, start": (
        [act(1, Action.LEAVE), act(2.5, Action.START)],
        [At(1000), Inject("leave", "m2"), At(2500), Heal("leave", "m2", wait=False)],
    ),
    "restart": ([act(1, Action.RESTART)], [At(1000), Inject("leave", "m2"), Heal("leave", "m2", wait=False)]),
    "who was added and has ended comes back first": (
        [of(1, c.AddMembers(count=1)), act(2, Action.KILL, "m4"), of(3, c.AddMembers(count=5))],
        [
            *(At(1000), Inject("join", "group", {"count": 1}), At(2000), Inject("kill", "m4")),
            *(At(3000), Heal("kill", "m4", wait=False), Inject("join", "group", {"count": 1})),
        ],
    ),
    "back to how it began": (
        [
            *(of(1, c.AddMembers(count=1)), act(2, Action.FREEZE), act(3, Action.KILL, "m3")),
            of(4, c.Restore(members_min=3)),
        ],
        [
            *(At(1000), Inject("join", "group", {"count": 1}), At(2000), Inject("freeze", "m2")),
            *(At(3000), Inject("kill", "m3"), At(4000), Heal("freeze", "m2", wait=False, commits=True)),
            *(Inject("leave", "m4"), Heal("kill", "m3", wait=False), Rate(PLAYGROUND.defaults.rate)),
        ],
    ),
    "freeze, continue": (
        [act(1, Action.FREEZE), act(2, Action.CONTINUE)],
        [At(1000), Inject("freeze", "m2"), At(2000), Heal("freeze", "m2", wait=False, commits=True)],
    ),
    "cut, heal": (
        [act(1, Action.CUT), act(2, Action.HEAL)],
        [At(1000), Inject("cut", "m2->authority"), At(2000), Heal("cut", "m2->authority", wait=False)],
    ),
    "slow, slower, full speed": (
        [act(1, Action.SLOW, delay_ms=200), act(2, Action.SLOW, delay_ms=500), act(3, Action.SLOW)],
        [
            *(At(1000), Inject("slow-record", "m2", {"per_record_ms": 200})),
            *(At(2000), Heal("slow-record", "m2", wait=False), Inject("slow-record", "m2", {"per_record_ms": 500})),
            *(At(3000), Heal("slow-record", "m2", wait=False)),
        ],
    ),
    "a kill ends what the process suffers": (
        [act(1, Action.CUT), act(2, Action.KILL), act(3, Action.START), act(4, Action.FREEZE), act(5, Action.KILL)],
        [
            *(At(1000), Inject("cut", "m2->authority")),
            *(At(2000), Heal("cut", "m2->authority", wait=False), Inject("kill", "m2")),
            *(At(3000), Heal("kill", "m2", wait=False), At(4000), Inject("freeze", "m2")),
            *(At(5000), Inject("kill", "m2"), Heal("freeze", "m2", wait=False)),
        ],
    ),
    "five, of whom there is room for two": (
        [of(1, c.AddMembers(count=5)), act(2, Action.KILL, "m5")],
        [At(1000), Inject("join", "group", {"count": 2}), At(2000), Inject("kill", "m5")],
    ),
    "partitions and records": (
        [of(1, c.AddPartitions(count=6)), of(2, c.SetRate(per_second=0))],
        [At(1000), AddPartitions(more=2, wait=False), At(2000), Rate(0)],
    ),
    "what was done before the group had formed": (
        [of(-0.5, c.AddMembers(count=1)), act(1, Action.KILL)],
        [At(0), Inject("join", "group", {"count": 1}), At(1500), Inject("kill", "m2")],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_commands_become_steps_at_their_times(name: str) -> None:
    acts, steps = STEPS[name]
    scenario, found = scenario_of(*acts)
    begun_ms = min(BEGUN_MS, acts[0].at_ms)
    assert scenario.steps == (Form(), *steps, At(20_000 - begun_ms))
    assert (found.steps, found.left_out) == (len(acts), 0)


REASONS = {
    "no step of a scenario holds a member before its ZooKeeper operations": [
        of(1, c.SetStepping(member="m1", on=True)),
        of(2, c.LetGo(member="m1")),
    ],
    "it had ended by itself": [act(1, Action.START)],
    "by then there are members at m1 to m3": [act(1, Action.KILL, "m4")],
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_no_step_says_is_a_comment_with_its_reason(reason: str) -> None:
    left = REASONS[reason]
    scenario, found = scenario_of(*left, act(5, Action.KILL, "m1"))
    assert scenario.steps == (Form(), At(5000), Inject("kill", "m1"), At(19_000))
    assert (found.steps, found.left_out) == (1, len(left))
    comments = [line for line in found.text.splitlines() if line.startswith("# Left out: at ")]
    assert len(comments) == len(left)
    assert all(reason in line for line in comments)
    assert f"{len(left)} of them no step says" in found.text


def test_who_is_frozen_at_the_end_goes_on_with_a_commit_as_in_the_game() -> None:
    scenario, _ = scenario_of(act(1, Action.FREEZE))
    assert scenario.steps[-2:] == (At(20_000 - BEGUN_MS), Heal("freeze", "m2", wait=False, commits=True))


def test_every_command_that_a_group_takes_is_tried_above() -> None:
    tried = [each.command for acts, _ in STEPS.values() for each in acts]
    tried += [each.command for acts in REASONS.values() for each in acts]
    assert {type(each) for each in tried} == set(get_args(c.GroupCommand))
    assert {each.action for each in tried if isinstance(each, c.ActOnMember)} == set(Action)


_MEMBER = st.sampled_from(["m1", "m2", "m3", "m4", "m9"])
_COMMANDS = st.one_of(
    st.builds(c.ActOnMember, action=st.sampled_from(Action), member=_MEMBER, delay_ms=st.sampled_from([0, 200])),
    st.builds(c.AddMembers, count=st.integers(1, 5)),
    st.builds(c.AddPartitions, count=st.integers(1, 6)),
    st.builds(c.SetRate, per_second=st.sampled_from([0, 10, 1000])),
    st.builds(c.LetGo, member=_MEMBER),
    st.builds(c.Restore, members_min=st.integers(1, 5)),
)


@given(st.lists(st.tuples(st.integers(0, 30_000) | st.just(LAST_S * 1000), _COMMANDS), max_size=25))
def test_whatever_was_played_is_a_file_that_can_be_read(played: list[tuple[int, c.GroupCommand]]) -> None:
    acts = [Act(at_ms, command) for at_ms, command in sorted(played, key=lambda each: each[0])]
    for found in saved(game({"eager": acts})):
        moments = [step.ms for step in read(found.text).steps if isinstance(step, At)]
        assert moments == sorted(moments)
        assert found.steps + found.left_out == len(acts)
        assert found.text.count("# Left out: ") == found.left_out


def test_designs_in_which_the_same_was_played_have_one_file_and_idle_ones_none() -> None:
    kill = [act(1, Action.KILL)]
    (one,) = saved(game(dict.fromkeys(DESIGN_NAMES, kill)))
    assert (one.name, one.designs) == ("played.toml", tuple(DESIGN_NAMES))
    both = saved(game({"zookeeper": kill, "eager": [act(2, Action.KILL)], "static": kill, "server": []}))
    assert [(each.name, each.designs) for each in both] == [
        ("played-zookeeper.toml", ("zookeeper", "static")),
        ("played-eager.toml", ("eager",)),
    ]
    assert len({read(each.text).name for each in both}) == 2
    assert saved(game({"eager": [], "static": []})) == []


def test_the_head_says_where_it_comes_from_and_hostile_words_stay_in_their_line() -> None:
    evil = 'x\nname = "other"\n[[steps]]\x1b[2J\u202e'
    parameters = replace(PLAYGROUND.parameters({"seed": 7}), links="link=1ms")
    provenance = {"command": ["rebalance-lab", "playground", "--output", evil], "versions": {"rebalance-lab": evil}}
    (found,) = saved(game({"eager": [act(1, Action.KILL)]}, name=evil, provenance=provenance, parameters=parameters))
    scenario_lines = [line for line in found.text.splitlines() if not line.startswith("#")]
    assert sum(line.startswith("name = ") for line in scenario_lines) == 1
    assert scenario_lines.count("[[steps]]") == 4
    assert all(each.isprintable() for each in found.text.split("\n"))
    assert found.command == "rebalance-lab run played.toml --design eager --seed 7 --simulated --link link=1ms"
    head = found.text.partition("\nname = ")[0]
    for part in ("seed 7", "virtual time", "In eager", found.command, "1 command was accepted"):
        assert part in head
