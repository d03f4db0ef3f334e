"""Scenarios as files: what is written is read again, and everything that is wrong is reported with its line."""

from __future__ import annotations

import re
import tomllib
import types
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from comparison.own_scenarios import why_not_judged
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.fields import has_default, types_of
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.points import KILLED, NAMED
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.scenario_file import parse_scenario, read_scenario
from comparison.scenarios.plan.scenario_text import as_file
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.step_names import STEPS, name_of
from comparison.scenarios.plan.targets import TargetKind
from comparison.scenarios.plan.vocabulary import Form, FreezeAtPoint, Heal, Inject, KillAtPoint, KillOwner
from kernel.errors import ConfigurationError, EnvironmentFault, SeveralErrors
from tests.support.commands.complaints import place_first

PAGE = Path(__file__).resolve().parents[4] / "docs" / "own-scenarios.md"
LEAST = 'name = "mine"\n[[steps]]\nstep = "form"\n'


def read(text: str) -> Scenario:
    return parse_scenario(text, "my.toml", why_not_judged)


def complaints(text: str) -> tuple[str, ...]:
    with pytest.raises(SeveralErrors) as caught:
        read(text)
    return tuple(map(place_first, caught.value.texts))


@pytest.mark.parametrize("scenario", CATALOGUE.values(), ids=CATALOGUE)
def test_every_scenario_of_the_catalogue_is_read_as_it_was_written(scenario: Scenario) -> None:
    assert read(as_file(scenario)) == scenario
    renamed = as_file(scenario).replace(f'name = "{scenario.name}"', 'name = "mine"', 1)
    assert read(renamed) == replace(scenario, name="mine", like=scenario.like or scenario.name, checks=())


def test_a_file_needs_a_name_and_steps_only() -> None:
    assert read(LEAST) == Scenario(name="mine", symptom="", look_for=(), steps=(Form(),))


def test_settings_are_written_as_kafka_names_them_or_as_toml_likes() -> None:
    text = LEAST.replace(
        "[[steps]]",
        '[settings]\nsession.timeout.ms = 6000\n"enable.auto.commit" = true\n[defaults]\nrate = 50\n[[steps]]',
    )
    assert read(text).settings == {"session.timeout.ms": "6000", "enable.auto.commit": "true"}
    assert read(text).defaults == Parameters(rate=50)


# -- any step ----------------------------------------------------------------------------------------------------------

WORDS = {"change": st.sampled_from(["form", "grow", "mass-start", "burst"])}
SETTINGS = st.dictionaries(
    st.sampled_from(["session.timeout.ms", "max.poll.interval.ms"]), st.integers(3000, 9000).map(str), max_size=2
)
TARGETS = {
    TargetKind.MEMBER: "owner",
    TargetKind.MEMBERS: "members",
    TargetKind.GROUP: "group",
    TargetKind.BROKER: "coordinator",
    TargetKind.SERVER: "leader",
    TargetKind.ENSEMBLE: "ensemble",
    TargetKind.PARTITION: "partition-0",
    TargetKind.MEMBER_AUTHORITY: "owner->authority",
    TargetKind.MEMBER_DATA: "m1->data",
    TargetKind.BROKER_ZOOKEEPER: "broker-1->zookeeper",
    TargetKind.SERVERS: "follower->ensemble",
}


def values(name: str, wanted: Any) -> st.SearchStrategy[Any]:
    """Values of a field."""
    origin, parts = get_origin(wanted), get_args(wanted)
    if name in WORDS:
        return WORDS[name]
    if name == "settings":
        return SETTINGS
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if each is types.NoneType else values(name, each) for each in parts))
    if origin is Literal:
        return st.sampled_from(parts)
    if origin is tuple:
        return st.lists(st.integers(0, 1), min_size=1, max_size=2).map(tuple)
    if wanted is bool:
        return st.booleans()
    if wanted is int:
        return st.integers(1, 3)
    return st.just("")


@st.composite
def injections(draw: st.DrawFn) -> Inject:
    fault = draw(st.sampled_from([each for each in FAULTS.values() if set(each.targets) & TARGETS.keys()]))
    given_ = {
        each.name: draw(st.sampled_from(each.words) if isinstance(each, Choice) else st.integers(each.least, each.most))
        for each in fault.parameters
    }
    return Inject(
        fault.name, draw(st.sampled_from([TARGETS[each] for each in fault.targets if each in TARGETS])), given_
    )


def steps_of(kind: type) -> st.SearchStrategy[Any]:
    if kind is Inject:
        return injections()
    if kind is Heal:
        return st.builds(Heal, st.sampled_from(["", *FAULTS]), st.sampled_from(["", *TARGETS.values()]))
    if kind is KillAtPoint:
        return st.builds(KillAtPoint, st.sampled_from(NAMED), st.sampled_from(KILLED))
    if kind is FreezeAtPoint:
        return st.builds(FreezeAtPoint, st.sampled_from(NAMED), values("over_ms", int))
    return st.builds(kind, **{name: values(name, wanted) for name, wanted in types_of(kind).items()})


STEP_LISTS = st.lists(st.one_of(*map(steps_of, STEPS.values())), max_size=8)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
@given(STEP_LISTS, st.sampled_from([1, 3]), st.text(max_size=30))
def test_any_list_of_steps_is_read_as_it_was_written(steps: list[Any], servers: int, symptom: str) -> None:
    assume(not any("\ud800" <= each <= "\udfff" or each == "\0" for each in symptom))
    scenario = Scenario(
        name="mine",
        symptom=symptom,
        look_for=(symptom, "x"),
        steps=(Form(8), *steps),
        defaults=Parameters(topics=2, members=8),
        zookeeper_servers=servers,
        like="crash",
        checks=("no stale write",),
    )
    needs_ensemble = servers == 1 and any(
        isinstance(each, Inject) and ("ensemble" in each.target or each.target == "follower") for each in steps
    )
    text = as_file(scenario)
    if any(objections(scenario, scenario.defaults)) or needs_ensemble:
        assert complaints(text)
    else:
        assert read(text) == scenario


@pytest.mark.parametrize("kind", STEPS.values(), ids=STEPS)
def test_every_field_of_every_step_has_a_type_that_a_file_can_have(kind: type) -> None:
    for field in fields(kind):
        wanted = types_of(kind)[field.name]
        assert get_origin(wanted) is not None or wanted in (int, float, str, bool), field
        assert has_default(field) or wanted in (int, str) or get_origin(wanted) is tuple, field
    assert STEPS[name_of(kind)] is kind


# -- what is wrong -----------------------------------------------------------------------------------------------------


def test_everything_that_is_wrong_is_reported_at_once_in_the_order_of_the_lines() -> None:
    text = """\
nme = "x"
zookeeper_servers = 2
[defaults]
members = 900
rate = "fast"
[settings]
session.timeout.ms = "soon"
sesion.timeout.ms = 3
[expectations]
like = "crsh"
checks = ["no stale write", "no stale wrte"]
[[steps]]
step = "from"
[[steps]]
step = "kill-owner"
name = 3
[[steps]]
step = "hold"
"""
    starts = [
        "my.toml: name is missing",
        "my.toml, line 1, column 1: unknown key 'nme'. Did you mean 'name'?",
        "my.toml, line 2, column 1: zookeeper_servers must be 1 or 3",
        "my.toml, line 4, column 1: members is 900: must be between 1 and 200",
        "my.toml, line 5, column 1: rate must be a whole number, is 'fast'",
        "my.toml, line 7, column 1: session.timeout.ms='soon': must be a whole number",
        "my.toml, line 8, column 1: unknown setting 'sesion.timeout.ms'. Did you mean 'session.timeout.ms'?",
        "my.toml, line 10, column 1: unknown scenario 'crsh'. Did you mean 'crash'? `rebalance-lab scenarios`",
        "my.toml, line 11, column 29: unknown check 'no stale wrte'. Did you mean 'no stale write'? ",
        "my.toml, line 13, column 1: unknown step 'from'. Did you mean 'form'? `rebalance-lab scenarios --steps`",
        "my.toml, line 16, column 1: kill-owner has no parameters. Leave 'name' out",
        "my.toml, line 17, column 1: hold: ms is missing",
    ]
    found = complaints(text)
    assert len(found) == len(starts), found
    for each, start in zip(found, starts, strict=True):
        assert each.startswith(start), each


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ('step = "inject"\nfault = "dely"\ntarget = "owner"', "line 6, column 1: unknown fault 'dely'. Did you mean"),
        ('step = "inject"\nfault = "kill"\ntarget = "onwer"', "line 7, column 1: 'onwer' is not a fault target"),
        ('step = "inject"\nfault = "expire"\ntarget = "leader"', "line 7, column 1: expire cannot be injected into"),
        ('step = "inject"\nfault = "kill"\ntarget = "follower"', "line 7, column 1: kill into 'follower' needs an"),
        (
            'step = "inject"\nfault = "slow-record"\ntarget = "owner"\nparameters = { per_record_ms = 0 }',
            "line 8, column 16: slow-record: per_record_ms=0: must be a whole number from 1",
        ),
        ('step = "heal"\nfault = "dely"', "line 6, column 1: unknown fault 'dely'"),
        ('step = "hold"\nms = -1', "line 6, column 1: ms is -1: must be between 0 and 3600000"),
        ('step = "form"\nmembers = 0', "line 6, column 1: members is 0: must be between 1 and 1000"),
        ('step = "form"\nmembers = 2\nmore = 2', "line 4, column 1: form: members and more exclude each other"),
        ('step = "restart-each"\nsettings = { a = 1 }', "line 6, column 14: unknown setting 'a'"),
        ('step = "cut-authority"', "line 4, column 1: cut-authority: needs an ensemble. Set zookeeper_servers = 3"),
        (
            'step = "kill-at-point"\npoint = "end"\ntarget = "m1"',
            "line 7, column 1: unknown target 'm1'. Use one of member",
        ),
        (
            'step = "kill-at-point"\npoint = "en"\ntarget = "member"',
            "line 6, column 1: unknown point 'en'. Did you mean",
        ),
        ('step = "inject"\nfault = "kill"\ntarget = "m9"', "'m9': by then there are members at m1 to m4"),
        ('step = "inject"\nfault = "kill"\ntarget = "broker-3"', "'broker-3': there are broker-1 to broker-2"),
        ('step = "inject"\nfault = "kill"\ntarget = "zookeeper-2"', "'zookeeper-2': there is only zookeeper-1"),
        ('step = "resubscribe"\nplace = 9\ntopics = [1]', "place 9: there are places 1 to 4 by then"),
        ('step = "resubscribe"\nplace = 1\ntopics = ["a"]', "line 7, column 11: topics must be a whole number, is 'a'"),
        ('step = "kill-at-point"\npoint = "decde"\ntarget = "member"', "unknown point 'decde'. Did you mean 'decide'?"),
        ('step = "kill-at-point"\npoint = "decide"\ntarget = "m1"', "unknown target 'm1'. Use one of member, broker"),
        ("ms = 3", "line 4, column 1: a step without its name. Add step = NAME; `rebalance-lab "),
        ('step = "played"', "unknown step 'played'"),
    ],
)
def test_an_impossible_step_is_reported_where_it_is(step: str, complaint: str) -> None:
    first, *_ = complaints(f"{LEAST}[[steps]]\n{step}\n")
    assert complaint in first


def test_two_members_cannot_both_be_the_last_one() -> None:
    text = as_file(Scenario(name="mine", symptom="", look_for=(), steps=(Form(2), KillOwner(), KillOwner())))
    (only,) = complaints(text.replace('like = "mine"', ""))
    assert "kill-owner: needs another member to take over, but there would be 1 in the group" in only


def test_the_files_of_the_documents_are_read() -> None:
    texts = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [read(text).name for text in texts] == ["two-deaths", "frozen-for-a-while"]
    example = PAGE.parent / "examples" / "slow-authority.toml"
    assert read_scenario(example, why_not_judged).scenario.checks == ("never owned by two members",)


def test_the_page_has_every_key_of_a_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| key \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    example, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    expectations = re.findall(r"^- `(\w+) = ", page, re.MULTILINE)
    assert sorted([*rows, *(tomllib.loads(example).keys() - {"expectations"}), *expectations]) == sorted(
        field.name for field in fields(Scenario)
    )


def test_a_name_of_the_catalogue_is_refused_unless_it_is_the_same_scenario() -> None:
    text = as_file(CATALOGUE["crash"])
    (only,) = complaints(text.replace("members_min = 2", "members_min = 3"))
    assert "line 2, column 1: 'crash' is a scenario of the catalogue, from which this one differs" in only


def test_a_check_that_is_decided_in_several_ways_needs_a_scenario_that_it_is_like() -> None:
    expected = '[expectations]\nchecks = ["zombie commits"]\n[[steps]]'
    (only,) = complaints(LEAST.replace("[[steps]]", expected))
    assert "'zombie commits' is decided in several ways. Say which with like = NAME, one of split-brain, " in only
    like = read(LEAST.replace("[[steps]]", expected.replace("checks", 'like = "pause"\nchecks')))
    assert (like.like, like.checks) == ("pause", ("zombie commits",))


def test_a_text_that_is_not_toml_says_where() -> None:
    (only,) = complaints('name = "mine"\nsteps = nothing\n')
    assert only.startswith("my.toml, line 2, column 9: not TOML: ")


@pytest.mark.parametrize("content", [b"\xff", b"#" * 2_000_000])
def test_a_file_that_is_no_text_or_endless_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "my.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"my\.toml"):
        read_scenario(tmp_path / "my.toml", why_not_judged)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"no such file or folder .*my\.toml"):
        read_scenario(tmp_path / "my.toml", why_not_judged)
