"""The catalogue is a table that makes sense, and what a user may choose is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.scenarios.plan.catalogue import (
    CATALOGUE,
    COMPARED,
    COMPARED_DESIGNS,
    HERD_SIZES,
    SMOKE,
    designs_for,
    designs_named,
    herd_steps,
    scenario_named,
)
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import PRESETS
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.plan.vocabulary import Form, JoinOne, Steady
from comparison.scenarios.run.experiments import estimated_s, expanded, left_out, plan
from comparison.scenarios.run.runner import members_in_all
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError


def request_of(name: str, design: str = "eager") -> RunRequest:
    scenario = CATALOGUE[name]
    return RunRequest(
        scenario=scenario,
        design=design,
        parameters=scenario.defaults,
        configuration=configuration(design, scenario.defaults),
        zookeeper="embedded",
        run="r",
        run_dir=Path("nowhere"),
    )


def test_herd_and_split_brain_come_first() -> None:
    assert list(CATALOGUE)[:3] == ["herd", "split-brain", "split-brain-ensemble"]
    assert set(SMOKE) == {"crash", "herd"}


def test_herd_grows_to_each_size_and_lets_one_more_join() -> None:
    assert herd_steps((2, 5)) == (Form(2), JoinOne(1), Form(5, "grow"), JoinOne(2))
    assert members_in_all(request_of("herd")) == HERD_SIZES[-1] + 1


def test_members_of_a_join_count_the_one_that_joins() -> None:
    assert members_in_all(request_of("join")) == CATALOGUE["join"].defaults.members + 1
    assert members_in_all(request_of("crash")) == CATALOGUE["crash"].defaults.members


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_scenario_says_what_to_look_for_and_begins_with_a_group(name: str) -> None:
    scenario = CATALOGUE[name]
    assert scenario.symptom
    assert scenario.look_for
    assert isinstance(scenario.steps[0], Form)
    assert scenario.defaults.time_limit_s > scenario.budget_s


@pytest.mark.parametrize("name", ["join", "leave", "crash", "pause", "split-brain"])
def test_a_fault_is_done_to_a_group_that_is_steady(name: str) -> None:
    assert isinstance(CATALOGUE[name].steps[1], Steady)


def test_both_forms_of_split_brain_are_one_run_in_zookeeper() -> None:
    planned = plan(expanded(["split-brain"]), COMPARED_DESIGNS, {})
    assert [each.title for each in planned] == [
        "split-brain · zookeeper",
        "split-brain · eager",
        "split-brain-ensemble · eager",
    ]


def test_the_ensemble_form_asked_for_alone_is_run_in_both_designs() -> None:
    planned = plan(expanded(["split-brain-ensemble"]), COMPARED_DESIGNS, {})
    assert [each.design for each in planned] == ["zookeeper", "eager"]


def test_a_comparison_is_of_the_first_scenarios_under_two_designs_unless_more_is_asked_for() -> None:
    planned = plan(COMPARED, designs_named(()), {})
    assert len(planned) == 2 * len(COMPARED) - 1
    assert {each.design for each in planned} == {"zookeeper", "eager"}
    assert estimated_s(planned) <= 6 * 60


def test_every_scenario_is_run_for_every_design_or_says_why_not() -> None:
    planned = [(each.scenario, each.design) for each in plan(list(CATALOGUE), DESIGN_NAMES, {})]
    without = {(each.scenario, each.design): each.reason for each in left_out(list(CATALOGUE), DESIGN_NAMES)}
    assert sorted([*planned, *without]) == sorted((name, design) for name in CATALOGUE for design in DESIGN_NAMES)
    assert all(without.values())


def test_a_migration_is_a_run_of_the_design_that_it_ends_in() -> None:
    assert [each.design for each in plan(["protocol-migration"], DESIGN_NAMES, {})] == ["cooperative"]
    assert designs_for(["protocol-migration"], ()) == ("cooperative",)
    assert designs_for(["protocol-migration", "crash"], ()) == COMPARED_DESIGNS


def test_settings_of_a_scenario_resubscribe_the_preset_and_under_what_a_user_gives() -> None:
    made = CATALOGUE["slow-member"].parameters({"settings": {"session.timeout.ms": "4000"}})
    assert made.settings == {**CATALOGUE["slow-member"].settings, "session.timeout.ms": "4000"}
    assert configuration("eager", made).max_poll_ms == 5000
    assert configuration("zookeeper", made).max_poll_ms == 5000
    given = CATALOGUE["slow-member"].parameters({"settings": {"max.poll.interval.ms": "9000"}})
    assert given.settings["max.poll.interval.ms"] == "9000"


@pytest.mark.parametrize(("name", "given"), [("members", 3), ("topics", 1)])
def test_fewer_than_a_scenario_needs_are_refused(name: str, given: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {given}: subscription-change needs {given + 1} or more"):
        plan(["subscription-change"], ["eager"], {name: given})


def test_the_loss_of_a_broker_needs_another_one() -> None:
    with pytest.raises(ConfigurationError, match="brokers is 1: coordinator-failover needs 2 or more"):
        plan(["coordinator-failover"], ["eager"], {"brokers": 1})


def test_scaling_out_is_by_so_many_whatever_the_size_before() -> None:
    assert members_in_all(request_of("scale-out")) == CATALOGUE["scale-out"].defaults.members + 6


def test_more_restarts_and_slower_members_have_more_time() -> None:
    def limit(scenario: str, **given: object) -> float:
        (planned,) = plan([scenario], ["eager"], given)
        return planned.parameters.time_limit_s

    assert limit("rolling-restart", members=10) > limit("rolling-restart")
    assert limit("slow-member", settings={"max.poll.interval.ms": "60000"}) >= limit("slow-member") + 50


def test_a_design_that_waits_before_it_gives_partitions_away_has_more_time() -> None:
    def limits(scenario: str) -> dict[str, float]:
        planned = plan([scenario], ("eager", "delayed"), {"preset": "kafka-defaults"})
        return {each.design: each.parameters.time_limit_s for each in planned}

    for scenario in ("crash", "rolling-restart"):
        found = limits(scenario)
        waits = CATALOGUE[scenario].defaults.members if scenario == "rolling-restart" else 1
        assert found["delayed"] >= found["eager"] + waits * 297


def test_repeats_have_the_next_seeds_and_go_through_all_designs_before_the_next_begins() -> None:
    planned = plan(["join"], COMPARED_DESIGNS, {"seed": 7}, repeats=2)
    assert [each.title for each in planned] == [
        "join · zookeeper · seed 7",
        "join · eager · seed 7",
        "join · zookeeper · seed 8",
        "join · eager · seed 8",
    ]
    assert [each.parameters.seed for each in planned] == [7, 7, 8, 8]
    assert planned[-1].folder == ("join", "eager", "seed-8")


def test_a_run_made_once_has_the_folder_of_its_design() -> None:
    (planned,) = plan(["join"], ["eager"], {"seed": 7})
    assert (planned.title, planned.folder) == ("join · eager", ("join", "eager"))


def test_an_unknown_scenario_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="unknown scenario 'crush': use one of herd, "):
        scenario_named("crush")


def test_an_unknown_design_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="unknown design 'raft': use zookeeper, "):
        designs_named(("eager", "raft"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), COMPARED_DESIGNS),
        (("all",), DESIGN_NAMES),
        (("eager,zookeeper",), ("zookeeper", "eager")),
        (("eager", "eager"), ("eager",)),
    ],
)
def test_designs_are_named_one_by_one_or_all(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert designs_named(given) == expected


@pytest.mark.parametrize(
    "given",
    [{"members": 0}, {"members": 201}, {"partitions": 0}, {"rate": 0}, {"streams": 17}, {"time_limit_s": 0.0}],
)
def test_parameters_out_of_range_are_refused_with_the_range(given: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="must be between"):
        Parameters().overridden(**given)


def test_parameters_not_given_keep_the_scenarios_own() -> None:
    assert Parameters(members=7).overridden(members=None, rate=9) == Parameters(members=7, rate=9)


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_equal_timers_give_every_design_the_same_detection_time(design: str) -> None:
    made = configuration(design, Parameters())
    assert (made.session_ms, made.commit_interval_ms, made.max_poll_ms) == (3000, 1000, 10_000)
    assert made.delay_ms == (3000 if design == "delayed" else 0)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_every_preset_is_taken_by_the_parts_it_is_for(preset: str, design: str) -> None:
    made = configuration(design, Parameters(preset=preset))
    assert made.session_ms >= 3000
    assert made.broker["zookeeper.session.timeout.ms"]


def test_a_setting_reaches_every_part_that_knows_its_name() -> None:
    parameters = Parameters(settings={"zookeeper.session.timeout.ms": "4000"})
    made = configuration("zookeeper", parameters)
    assert (made.session_ms, made.broker_session_ms) == (4000, 4000)
    assert "zookeeper.session.timeout.ms" not in configuration("eager", parameters).member


def test_what_makes_a_design_is_not_taken_from_it_by_a_setting_for_the_others() -> None:
    parameters = Parameters(settings={"partition.assignment.strategy": "roundrobin"})
    strategies = {
        design: configuration(design, parameters).member["partition.assignment.strategy"]
        for design in ("eager", "static", "cooperative", "delayed")
    }
    assert strategies == {
        "eager": "roundrobin",
        "static": "roundrobin",
        "cooperative": "cooperative-sticky",
        "delayed": "delayed",
    }
    server = configuration("server", parameters)
    assert "partition.assignment.strategy" not in server.member
    assert server.broker["group.server.assignment.strategy"] == "roundrobin"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sesion.timeout.ms": "1"}, "unknown setting 'sesion.timeout.ms'; did you mean 'session.timeout.ms'"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon'"),
        ({"group.id": "mine"}, "group.id is set by the run itself"),
        ({"group.instance.id": "mine"}, "group.instance.id is set by the run itself"),
        ({"offsets.storage": "kafka"}, "leave offsets.storage out"),
        ({"auto.offset.reset": "latest"}, "a run counts every record"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        configuration("eager", Parameters(settings=settings))
