"""The catalogue is a table that makes sense, and what a user may choose is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.experiments import expanded, plan
from comparison.scenarios.catalogue import (
    CATALOGUE,
    DESIGNS,
    HERD_SIZES,
    SMOKE,
    Form,
    JoinOne,
    Steady,
    designs_named,
    herd_steps,
    scenario_named,
)
from comparison.scenarios.configuration import configuration
from comparison.scenarios.parameters import Parameters
from comparison.scenarios.presets import PRESETS
from comparison.scenarios.request import RunRequest
from comparison.scenarios.runner import members_in_all
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
    planned = plan(expanded(["split-brain"]), DESIGNS, {})
    assert [each.title for each in planned] == [
        "split-brain · zookeeper",
        "split-brain · eager",
        "split-brain-ensemble · eager",
    ]


def test_the_ensemble_form_asked_for_alone_is_run_in_both_designs() -> None:
    planned = plan(expanded(["split-brain-ensemble"]), DESIGNS, {})
    assert [each.design for each in planned] == ["zookeeper", "eager"]


def test_an_unknown_scenario_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="unknown scenario 'crush': there are herd, "):
        scenario_named("crush")


def test_an_unknown_design_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="unknown design 'raft': there are zookeeper, eager, or all"):
        designs_named(("eager", "raft"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [((), DESIGNS), (("all",), DESIGNS), (("eager,zookeeper",), DESIGNS), (("eager", "eager"), ("eager",))],
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


def test_equal_timers_give_both_designs_the_same_detection_time() -> None:
    preset = PRESETS["equal-timers"]
    assert set(preset.session_ms.values()) == {3000}
    assert preset.members["zookeeper"]["zookeeper.session.timeout.ms"] == "3000"
    assert preset.members["eager"]["session.timeout.ms"] == "3000"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_preset_is_taken_by_the_parts_it_is_for(preset: str, design: str) -> None:
    made = configuration(design, Parameters(preset=preset))
    assert made.session_ms >= 3000
    assert made.broker["zookeeper.session.timeout.ms"]


def test_a_setting_reaches_every_part_that_knows_its_name() -> None:
    parameters = Parameters(settings={"zookeeper.session.timeout.ms": "4000"})
    made = configuration("zookeeper", parameters)
    assert (made.session_ms, made.broker_session_ms) == (4000, 4000)
    assert "zookeeper.session.timeout.ms" not in configuration("eager", parameters).member


def test_a_value_that_only_one_era_takes_is_left_out_of_the_other() -> None:
    parameters = Parameters(settings={"auto.offset.reset": "latest"})
    assert configuration("eager", parameters).member["auto.offset.reset"] == "latest"
    assert configuration("zookeeper", parameters).member["auto.offset.reset"] == "smallest"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sesion.timeout.ms": "1"}, "unknown setting 'sesion.timeout.ms'; did you mean 'session.timeout.ms'"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon'"),
        ({"group.id": "mine"}, "group.id is set by the run itself"),
        ({"offsets.storage": "kafka"}, "leave offsets.storage out"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        configuration("eager", Parameters(settings=settings))
