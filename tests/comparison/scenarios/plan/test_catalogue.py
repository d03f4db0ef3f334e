"""The catalogue is consistent, and a user's choices are checked."""

from __future__ import annotations

import re
from dataclasses import replace
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
from comparison.scenarios.plan.catalogue_membership import COMPARED_STRATEGIES
from comparison.scenarios.plan.catalogue_zookeeper import OUTAGES
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.descriptors import members_in_all
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
from comparison.scenarios.plan.presets import PRESETS
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.vocabulary import Form, Inject, JoinOne, Steady, Undisturbed
from comparison.scenarios.run.experiments import estimated_s, expanded, left_out, plan
from kernel.designs import DELAYED, DESIGN_NAMES
from kernel.errors import ConfigurationError

TESTS = Path(__file__).parents[3]
#: With the one option that each sets.
VARIANTS = {
    "stale-view-synced": {"fix.sync.before.reads": "true"},
    "double-owner-fenced": {"fix.commit.fence": "session"},
    "zombie-commit-fenced": {"fix.commit.fence": "session"},
}


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


def members_of(request: RunRequest) -> int:
    return members_in_all(request.scenario, request.parameters)


def test_herd_and_split_brain_come_first() -> None:
    assert list(CATALOGUE)[:3] == ["herd", "split-brain", "split-brain-ensemble"]
    assert set(SMOKE) == {"crash", "herd"}


def test_herd_grows_to_each_size_rests_and_then_one_more_joins() -> None:
    rest = Undisturbed()
    assert herd_steps((2, 5)) == (Form(2), rest, JoinOne(1), Form(5, "grow"), rest, JoinOne(2))
    assert members_of(request_of("herd")) == HERD_SIZES[-1] + 1


@pytest.mark.parametrize(
    ("target", "placed"), [("coordinator", True), ("coordinator->zookeeper", True), ("broker-1", False)]
)
def test_group_is_with_the_broker_that_a_fault_of_its_coordinator_is_injected_into(target: str, placed: bool) -> None:
    request = request_of("crash")
    given = replace(request, scenario=replace(request.scenario, steps=(Form(), Inject("freeze", target))))
    assert given.group_is_placed == placed


def test_only_herd_has_a_bystander() -> None:
    assert [name for name in CATALOGUE if request_of(name).has_bystander] == ["herd"]


def test_members_of_a_join_count_the_one_that_joins() -> None:
    assert members_of(request_of("join")) == CATALOGUE["join"].defaults.members + 1
    assert members_of(request_of("crash")) == CATALOGUE["crash"].defaults.members


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_scenario_has_hints_and_begins_by_forming_a_group(name: str) -> None:
    scenario = CATALOGUE[name]
    assert scenario.symptom
    assert scenario.look_for
    assert isinstance(scenario.steps[0], Form)
    assert scenario.defaults.time_limit_s > scenario.budget_s


@pytest.mark.parametrize(
    "name",
    ["join", "leave", "crash", "pause", "split-brain", "stale-view", "zombie-commit", *(each.name for each in OUTAGES)],
)
def test_faults_are_injected_into_a_steady_group(name: str) -> None:
    assert isinstance(CATALOGUE[name].steps[1], Steady)


def test_an_expiry_and_owner_znodes_exist_only_where_members_have_them() -> None:
    designs = {name: set(DESIGN_NAMES) - set(CATALOGUE[name].not_applicable) for name in CATALOGUE}
    assert designs["session-expiry"] == designs["session-expiry-all"] == {"zookeeper", "server"}
    assert designs["ghost-owner"] == {"zookeeper"}


def test_a_test_that_a_scenario_names_is_there() -> None:
    """What a run cannot show, a scenario may say by the test that does."""
    named = {name for each in CATALOGUE.values() for text in each.look_for for name in re.findall(r"test_\w+", text)}
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py")))
    assert named
    assert {name for name in named if f"def {name}(" not in code} == set()


def test_a_scenario_with_variants_is_run_beside_them_and_they_change_only_one_thing() -> None:
    assert expanded(["stale-view"]) == ["stale-view", "stale-view-synced"]
    assert expanded(["double-owner"]) == ["double-owner", "double-owner-fenced", "double-owner-no-broker"]
    assert expanded(["zombie-commit-fenced"]) == ["zombie-commit-fenced"]
    for name, option in VARIANTS.items():
        variant = CATALOGUE[name]
        plain = CATALOGUE[variant.variant_of]
        assert (variant.steps, variant.zookeeper_servers) == (plain.steps, plain.zookeeper_servers)
        assert dict(variant.settings) == dict(plain.settings) | option
        assert set(DESIGN_NAMES) - variant.not_applicable.keys() == {"zookeeper"}


def test_double_owner_is_the_run_of_split_brain_unless_it_is_run_by_itself() -> None:
    assert CATALOGUE["double-owner"].steps == CATALOGUE["split-brain"].steps
    assert [each.title for each in plan(["split-brain", "double-owner"], ["eager"], {})] == ["split-brain · eager"]
    assert [each.title for each in plan(["double-owner"], ["eager"], {})] == ["double-owner · eager"]


def test_the_first_member_to_join_is_the_one_whose_server_lags() -> None:
    request = request_of("stale-view", "zookeeper")
    assert members_of(request) == request.parameters.members + 2
    assert request.victim_on_cut_server
    assert not request_of("stale-view", "server").victim_on_cut_server, "there it is the coordinating broker"


def test_both_forms_of_split_brain_share_one_run_in_zookeeper() -> None:
    planned = plan(expanded(["split-brain"]), COMPARED_DESIGNS, {})
    assert [each.title for each in planned] == [
        "split-brain · zookeeper",
        "split-brain · eager",
        "split-brain-ensemble · eager",
    ]


def test_the_ensemble_form_alone_is_run_in_both_designs() -> None:
    planned = plan(expanded(["split-brain-ensemble"]), COMPARED_DESIGNS, {})
    assert [each.design for each in planned] == ["zookeeper", "eager"]


def test_a_comparison_runs_the_first_scenarios_under_two_designs_by_default() -> None:
    planned = plan(COMPARED, designs_named(()), {})
    assert len(planned) == 2 * len(COMPARED) - 1
    assert {each.design for each in planned} == {"zookeeper", "eager"}
    assert estimated_s(planned) <= 6 * 60


def test_every_scenario_is_run_under_every_design_or_has_a_reason_not_to() -> None:
    planned = [(each.scenario, each.design) for each in plan(list(CATALOGUE), DESIGN_NAMES, {})]
    without = {(each.scenario, each.design): each.reason for each in left_out(list(CATALOGUE), DESIGN_NAMES)}
    assert sorted([*planned, *without]) == sorted((name, design) for name in CATALOGUE for design in DESIGN_NAMES)
    assert all(without.values())


def test_a_migration_counts_as_a_run_of_its_final_design() -> None:
    assert [each.design for each in plan(["protocol-migration"], DESIGN_NAMES, {})] == ["cooperative"]
    assert designs_for(["protocol-migration"], ()) == ("cooperative",)
    assert designs_for(["protocol-migration", "crash"], ()) == COMPARED_DESIGNS


def test_scenario_settings_override_the_preset_and_yield_to_the_users() -> None:
    made = CATALOGUE["slow-member"].parameters({"settings": {"session.timeout.ms": "4000"}})
    assert made.settings == {**CATALOGUE["slow-member"].settings, "session.timeout.ms": "4000"}
    assert configuration("eager", made).max_poll_ms == 5000
    assert configuration("zookeeper", made).max_poll_ms == 5000
    given = CATALOGUE["slow-member"].parameters({"settings": {"max.poll.interval.ms": "9000"}})
    assert given.settings["max.poll.interval.ms"] == "9000"


@pytest.mark.parametrize(("name", "given"), [("members", 3), ("topics", 1)])
def test_too_few_members_or_brokers_are_refused(name: str, given: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {given}: subscription-change needs {given + 1} or more"):
        plan(["subscription-change"], ["eager"], {name: given})


def test_a_coordinator_failover_needs_two_brokers() -> None:
    with pytest.raises(ConfigurationError, match="brokers is 1: coordinator-failover needs 2 or more"):
        plan(["coordinator-failover"], ["eager"], {"brokers": 1})


def test_scale_out_adds_the_same_number_at_any_size() -> None:
    assert members_of(request_of("scale-out")) == CATALOGUE["scale-out"].defaults.members + 6


def test_time_limit_grows_with_restarts_and_slow_members() -> None:
    def limit(scenario: str, **given: object) -> float:
        (planned,) = plan([scenario], ["eager"], given)
        return planned.parameters.time_limit_s

    assert limit("rolling-restart", members=10) > limit("rolling-restart")
    assert limit("slow-member", settings={"max.poll.interval.ms": "60000"}) >= limit("slow-member") + 50


def test_time_limit_is_higher_in_a_design_that_delays_assignments() -> None:
    def limits(scenario: str) -> dict[str, float]:
        planned = plan([scenario], ("eager", "delayed"), {"preset": "kafka-defaults"})
        return {each.design: each.parameters.time_limit_s for each in planned}

    for scenario in ("crash", "rolling-restart"):
        found = limits(scenario)
        waits = CATALOGUE[scenario].defaults.members if scenario == "rolling-restart" else 1
        assert found["delayed"] >= found["eager"] + waits * 297


def test_repeats_have_consecutive_seeds_and_each_runs_all_designs_first() -> None:
    planned = plan(["join"], COMPARED_DESIGNS, {"seed": 7}, repeats=2)
    assert [each.title for each in planned] == [
        "join · zookeeper · seed 7",
        "join · eager · seed 7",
        "join · zookeeper · seed 8",
        "join · eager · seed 8",
    ]
    assert [each.parameters.seed for each in planned] == [7, 7, 8, 8]
    assert planned[-1].folder == ("join", "eager", "seed-8")


def test_a_single_run_is_in_the_folder_of_its_design() -> None:
    (planned,) = plan(["join"], ["eager"], {"seed": 7})
    assert (planned.title, planned.folder) == ("join · eager", ("join", "eager"))


def test_an_unknown_scenario_is_refused_with_the_one_that_is_meant_and_where_all_are() -> None:
    with pytest.raises(ConfigurationError, match=r"'crush'. Did you mean 'crash'\? `rebalance-lab scenarios` "):
        scenario_named("crush")


def test_an_unknown_design_is_refused_with_the_known_names() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown design 'raft'. Use one of zookeeper, "):
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
def test_designs_are_named_one_by_one_or_as_all(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert designs_named(given) == expected


@pytest.mark.parametrize(
    "given", [{"members": 0}, {"members": 201}, {"partitions": 0}, {"rate": 0}, {"streams": 17}, {"time_limit_s": 0.0}]
)
def test_parameters_out_of_range_are_refused_with_the_range(given: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="must be between"):
        Parameters().overridden(**given)


def test_parameters_default_to_the_scenarios() -> None:
    assert Parameters(members=7).overridden(members=None, rate=9) == Parameters(members=7, rate=9)


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_equal_timers_give_every_design_the_same_detection_time(design: str) -> None:
    made = configuration(design, Parameters())
    assert (made.session_ms, made.commit_interval_ms, made.max_poll_ms) == (3000, 1000, 10_000)
    assert made.delay_ms == (3000 if design == "delayed" else 0)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_every_preset_is_accepted_by_its_components(preset: str, design: str) -> None:
    made = configuration(design, Parameters(preset=preset))
    assert made.session_ms >= 3000
    assert made.broker["zookeeper.session.timeout.ms"]


def test_a_setting_reaches_every_component_that_has_it() -> None:
    parameters = Parameters(settings={"zookeeper.session.timeout.ms": "4000"})
    made = configuration("zookeeper", parameters)
    assert (made.session_ms, made.broker_session_ms) == (4000, 4000)
    assert "zookeeper.session.timeout.ms" not in configuration("eager", parameters).member


def test_a_setting_cannot_change_what_defines_a_design() -> None:
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
        ({"sesion.timeout.ms": "1"}, "unknown setting 'sesion.timeout.ms'. Did you mean 'session.timeout.ms'"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon'"),
        ({"group.id": "mine"}, "group.id is set by the run itself"),
        ({"group.instance.id": "mine"}, "group.instance.id is set by the run itself. Choose static"),
        ({"offsets.storage": "kafka"}, "Leave offsets.storage out"),
        ({"auto.offset.reset": "none"}, "begins without offsets"),
    ],
)
def test_an_invalid_setting_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        configuration("eager", Parameters(settings=settings))


@pytest.mark.parametrize(
    ("name", "former"), [("group-protocol-migration", "eager"), ("group-protocol-migration-cooperative", "cooperative")]
)
def test_who_asks_for_a_migration_in_another_design_is_told_whose_members_change_over(name: str, former: str) -> None:
    for why in CATALOGUE[name].not_applicable.values():
        assert f"members of {former} change over" in why


# -- the scenarios about who is a member: how long one is away, and what files may say ---------------------------------


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
