"""Settings and the designs that they apply to: an error, a warning or nothing, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from comparison.scenarios.plan.admitted import ScenarioFile, admit
from comparison.scenarios.plan.applicability import check_applicability, check_scenario, overriding, require_effect
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.membership_vocabulary import RestartEach
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Form
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError

STRATEGY = "partition.assignment.strategy"
DELAY = "scheduled.rebalance.max.delay.ms"


@pytest.mark.parametrize(
    ("designs", "name", "value", "complaint"),
    [
        (DESIGN_NAMES, STRATEGY, "nonesuch", f"{STRATEGY}=nonesuch applies to none of the chosen designs"),
        (("zookeeper",), STRATEGY, "nonesuch", "supports only range and roundrobin. No design accepts this value"),
        (("eager",), STRATEGY, "nonesuch", "o design accepts this value: choose another one"),
        (("zookeeper",), STRATEGY, "sticky", "only range and roundrobin. Choose server or eager or static as well"),
        (("server",), STRATEGY, "cooperative-sticky", "server has no strategy 'cooperative-sticky'"),
        (("cooperative",), STRATEGY, "range", "cooperative is defined by its own"),
        (("zookeeper", "eager"), "session.timeout.ms", "soon", "session.timeout.ms='soon': must be a whole number"),
        (("zookeeper", "eager"), "session.timeout.ms", "0", "must be between 1 and"),
        (("zookeeper", "eager"), "auto.commit.interval.ms", "-5", "auto.commit.interval.ms='-5': must be between"),
        (("eager",), "exclude.internal.topics", "maybe", "must be true or false"),
        (("zookeeper",), "fix.commit.fence", "sesion", "must be one of none, session, epoch"),
        (("zookeeper",), "session.timeout.ms", "0", "session.timeout.ms='0': must be between 1 and"),
        (("zookeeper",), "session.timeout.ms", "6000", "Use --session-timeout, or choose eager or static"),
        (
            ("zookeeper",),
            "group.initial.rebalance.delay.ms",
            "500",
            "zookeeper does not use it. Choose eager or static",
        ),
        (("eager",), "group.server.assignment.strategy", "range", "eager does not use it. Choose server as well"),
        (("eager", "static"), DELAY, "5000", "static does not use it. Choose delayed as well, or leave it out$"),
        (
            ("eager",),
            "rebalance.backoff.ms",
            "10",
            "eager does not have it. Choose zookeeper as well, or leave it out$",
        ),
        (("eager",), "group.consumer.session.timeout.ms", "5000", "Use --session-timeout, or choose consumer as well"),
    ],
)
def test_setting_that_applies_to_no_chosen_design_is_refused_with_the_remedy(
    designs: tuple[str, ...], name: str, value: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        check_applicability(designs, {name: value})


@pytest.mark.parametrize(
    ("designs", "name", "value", "warning"),
    [
        (
            ("zookeeper", "eager"),
            "session.timeout.ms",
            "6000",
            "session.timeout.ms=6000 applies only to eager: zookeeper does not have it; --session-timeout sets it in",
        ),
        (
            ("zookeeper", "eager"),
            STRATEGY,
            "sticky",
            "=sticky applies only to eager: zookeeper supports only range and",
        ),
        (("eager", "delayed"), STRATEGY, "sticky", f"{STRATEGY}=sticky applies only to eager: delayed is defined by"),
        (
            ("zookeeper", "eager"),
            "zookeeper.session.timeout.ms",
            "6000",
            "applies only to zookeeper: eager does not have",
        ),
        (("zookeeper", "eager"), "fix.commit.fence", "session", "fix.commit.fence=session applies only to zookeeper"),
        (
            ("zookeeper", "eager"),
            "group.max.size",
            "9",
            "group.max.size=9 applies only to eager: zookeeper does not use",
        ),
        (("zookeeper", "server"), "offsets.topic.num.partitions", "5", "applies only to server: zookeeper does not"),
        (
            ("eager", "server"),
            "group.server.rebalance.timeout.ms",
            "5000",
            "applies only to server: eager does not use",
        ),
        (("eager", "delayed"), DELAY, "5000", f"{DELAY}=5000 applies only to delayed: eager does not use it"),
        (("eager", "consumer"), "session.timeout.ms", "6000", "instead; --session-timeout sets it in all designs"),
    ],
)
def test_setting_that_applies_to_some_designs_causes_a_warning_that_names_them(
    designs: tuple[str, ...], name: str, value: str, warning: str
) -> None:
    (found,) = check_applicability(designs, {name: value})
    assert warning in found


@pytest.mark.parametrize(
    ("designs", "name"),
    [
        (("eager", "delayed"), DELAY),
        (("zookeeper", "eager"), "rebalance.backoff.ms"),
        (("zookeeper", "eager"), "heartbeat.interval.ms"),
        (("zookeeper", "eager"), "group.min.session.timeout.ms"),
    ],
)
def test_no_option_is_said_to_set_a_timer_that_a_chosen_design_lacks(designs: tuple[str, ...], name: str) -> None:
    (found,) = check_applicability(designs, {name: "5000"})
    assert "applies only to" in found
    assert "--session-timeout" not in found


@pytest.mark.parametrize(
    ("designs", "settings"),
    [
        (DESIGN_NAMES, {"auto.commit.interval.ms": "500"}),
        (DESIGN_NAMES, {"auto.offset.reset": "earliest"}),
        (("zookeeper", "server", "eager", "static"), {STRATEGY: "roundrobin"}),
        (("eager",), {"session.timeout.ms": "6000"}),
        (("eager",), {"zookeeper.session.timeout.ms": "6000"}),  # the brokers'
        (("zookeeper", "eager"), {"message.max.bytes": "500000"}),
        (("eager", "server"), {"offsets.topic.num.partitions": "5"}),
        (("eager",), {STRATEGY: "delayed", DELAY: "2000"}),
    ],
)
def test_setting_that_applies_as_intended_causes_no_warning(designs: tuple[str, ...], settings: dict[str, str]) -> None:
    assert check_applicability(designs, settings) == []


def own(settings: Mapping[str, str], *, steps: tuple[Step, ...] = (Form(),)) -> Scenario:
    """A scenario of a file."""
    scenario = Scenario(name="own", symptom="", look_for=(), steps=steps, settings=settings)
    admit(ScenarioFile(scenario=scenario, path="own.toml", text=""))
    return scenario


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({STRATEGY: "sticky"}, [f"own: {STRATEGY}=sticky applies only to eager: zookeeper supports only range and"]),
        (
            {"session.timeout.ms": "5000"},
            ["own: session.timeout.ms=5000 applies only to eager: zookeeper does not have"],
        ),
        ({"session.timeout.ms": "5000", "zookeeper.session.timeout.ms": "5000"}, []),
        ({"command.wait.ms": "500"}, ["own: command.wait.ms=500 applies to none of the chosen designs: zookeeper"]),
        ({"group.max.size": "50"}, ["own: group.max.size=50 applies only to eager: zookeeper does not use it"]),
        ({"metric.reporters": "x"}, ["own: metric.reporters is a Kafka setting that rebalance-lab does not implement"]),
    ],
)
def test_a_setting_of_a_scenario_file_that_a_chosen_design_does_not_take_is_a_warning(
    settings: dict[str, str], warnings: list[str]
) -> None:
    found = check_scenario(own(settings), ("zookeeper", "eager"), {})
    assert len(found) == len(warnings)
    assert all(each.startswith(start) for each, start in zip(found, warnings, strict=True)), found


def test_a_value_of_a_scenario_file_that_no_chosen_design_accepts_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=f"own: {STRATEGY}=nonesuch is accepted by no chosen design: zookeeper"
    ):
        check_scenario(own({STRATEGY: "nonesuch"}), ("zookeeper", "eager"), {})
    with pytest.raises(ConfigurationError, match=r"own: .*zookeeper supports only range and roundrobin"):
        check_scenario(own({STRATEGY: "sticky"}), ("zookeeper",), {})


@pytest.mark.parametrize("scenario", CATALOGUE.values(), ids=CATALOGUE)
def test_settings_of_the_catalogue_are_for_the_designs_that_have_them(scenario: Scenario) -> None:
    assert check_scenario(scenario, DESIGN_NAMES, {}) == []


def test_an_option_that_replaces_what_a_scenario_sets_is_a_warning() -> None:
    (found,) = check_scenario(CATALOGUE["rolling-restart"], ("eager",), {"session_timeout_ms": 4000})
    assert found.startswith("rolling-restart: --session-timeout 4000 replaces its own session.timeout.ms=10000, ")
    assert check_scenario(CATALOGUE["crash"], ("eager",), {"session_timeout_ms": 4000}) == []
    given = {"settings": {"session.timeout.ms": "9000"}}
    assert check_scenario(own({"session.timeout.ms": "5000"}), ("eager",), given) == []


def test_a_setting_that_overrides_the_session_timeout_of_some_designs_is_a_warning() -> None:
    given = {"session.timeout.ms": "6000"}
    (found,) = overriding(("zookeeper", "eager", "static"), 3000, given)
    assert found == "session.timeout.ms=6000 overrides --session-timeout 3000 in eager, static"
    assert overriding(("zookeeper",), 3000, given) == overriding(("eager",), None, given) == []
    assert overriding(("eager",), 6000, given) == []


@pytest.mark.parametrize(
    ("design", "settings", "complaint"),
    [
        ("zookeeper", {STRATEGY: "nonesuch"}, f"{STRATEGY}=nonesuch would .*: zookeeper supports only range and round"),
        ("eager", {DELAY: "100"}, f"{DELAY}=100 would have no effect: eager does not use it. Leave it out"),
        ("server", {STRATEGY: "range"}, "server assigns on the brokers, by group.server.assignment.strategy"),
    ],
)
def test_a_consumer_by_hand_refuses_what_its_design_does_not_use(
    design: str, settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        require_effect(design, settings)


def test_a_consumer_by_hand_takes_what_its_design_uses() -> None:
    require_effect("cooperative", {STRATEGY: "range,cooperative-sticky"})
    require_effect("eager", {"auto.offset.reset": "latest", "enable.auto.commit": "false"})
    require_effect("eager", {STRATEGY: "delayed", DELAY: "100"})


@pytest.mark.parametrize(
    ("design", "settings", "complaint"),
    [
        ("zookeeper", {"session.timeout.ms": "5000"}, "session.timeout.ms=5000: zookeeper does not have it"),
        ("zookeeper", {STRATEGY: "sticky"}, "zookeeper supports only range and roundrobin"),
        ("server", {STRATEGY: "range"}, f"{STRATEGY}=range: server does not have it"),
        ("eager", {STRATEGY: "nonesuch"}, f"{STRATEGY}='nonesuch'"),
        ("eager", {DELAY: "100"}, "eager does not use it"),
        ("eager", {"group.max.size": "9"}, "group.max.size=9: eager does not have it"),
        ("eager", {"group.id": "other"}, "group.id is set by the run itself"),
        ("eager", {"sesion.timeout.ms": "9"}, "unknown setting 'sesion.timeout.ms'. Did you mean"),
        ("eager", {"heartbeat.interval.ms": "soon"}, "heartbeat.interval.ms='soon': must be a whole number"),
    ],
)
def test_settings_of_one_step_are_checked_by_the_design(design: str, settings: dict[str, str], complaint: str) -> None:
    for steps in ((Form(settings=settings),), (Form(), RestartEach(settings=settings))):
        scenario = own({}, steps=steps)
        made = configuration(design, scenario.defaults)
        with pytest.raises(ConfigurationError, match=rf"own in {design}: step {len(steps)} \(.*\): .*{complaint}"):
            require_feasible(Case(scenario, design, scenario.defaults, made))


def test_a_step_may_give_its_members_another_strategy() -> None:
    scenario = own({}, steps=(Form(settings={STRATEGY: "range,cooperative-sticky"}),))
    made = configuration("cooperative", scenario.defaults)
    require_feasible(Case(scenario, "cooperative", scenario.defaults, made))


@pytest.mark.parametrize("design", DESIGN_NAMES)
@pytest.mark.parametrize("scenario", ["crash", "rolling-restart"])
def test_one_session_timeout_sets_equal_timers_in_every_design(scenario: str, design: str) -> None:
    made = configuration(design, CATALOGUE[scenario].parameters({"session_timeout_ms": 6000}))
    assert made.session_ms == 6000
    assert made.heartbeat_ms in (0, 2000)
    assert made.delay_ms == (6000 if design == "delayed" else 0)
    assert made.broker["group.min.session.timeout.ms"] == "1000"
    assert made.broker_session_ms == 3000
    if design == "zookeeper":
        retries, backoff_ms = (int(made.member[f"rebalance.{name}"]) for name in ("max.retries", "backoff.ms"))
        assert retries * backoff_ms > made.session_ms, "a rebalance gives up while a dead member still owns"


def test_a_short_session_timeout_lowers_the_brokers_bounds() -> None:
    made = configuration("eager", Parameters(preset="kafka-defaults", session_timeout_ms=2000))
    assert (made.session_ms, made.broker["group.min.session.timeout.ms"], made.broker_session_ms) == (
        2000,
        "2000",
        2000,
    )


def test_a_named_setting_overrides_the_session_timeout_of_all_designs() -> None:
    given = {"session_timeout_ms": 6000, "settings": {"heartbeat.interval.ms": "500"}}
    made = configuration("eager", CATALOGUE["crash"].parameters(given))
    assert (made.session_ms, made.heartbeat_ms) == (6000, 500)
