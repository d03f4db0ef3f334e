"""Settings and the designs that they apply to: an error, a warning or nothing, before anything starts."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.applicability import check_applicability
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import Parameters
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError

STRATEGY = "partition.assignment.strategy"


@pytest.mark.parametrize(
    ("designs", "name", "value", "complaint"),
    [
        (DESIGN_NAMES, STRATEGY, "nonesuch", f"{STRATEGY}=nonesuch applies to none of the chosen designs"),
        (("zookeeper",), STRATEGY, "nonesuch", "supports only range and roundrobin; no design accepts this value"),
        (("eager",), STRATEGY, "nonesuch", "; no design accepts this value: choose another one"),
        (("zookeeper",), STRATEGY, "sticky", "only range and roundrobin; choose server or eager or static as well"),
        (("server",), STRATEGY, "cooperative-sticky", "server has no strategy 'cooperative-sticky'"),
        (("cooperative",), STRATEGY, "range", "cooperative is defined by its own"),
        (("zookeeper", "eager"), "session.timeout.ms", "soon", "session.timeout.ms='soon': must be a whole number"),
        (("zookeeper", "eager"), "session.timeout.ms", "0", "must be between 1 and"),
        (("zookeeper", "eager"), "auto.commit.interval.ms", "-5", "auto.commit.interval.ms='-5': must be between"),
        (("eager",), "exclude.internal.topics", "maybe", "must be true or false"),
        (("zookeeper",), "fix.commit.fence", "sesion", "must be one of none, session, epoch"),
        (("zookeeper",), "session.timeout.ms", "0", "session.timeout.ms='0': must be between 1 and"),
        (("zookeeper",), "session.timeout.ms", "6000", "use --session-timeout, or choose eager or static"),
        (
            ("eager",),
            "rebalance.backoff.ms",
            "10",
            "eager does not have it; use --session-timeout, or",
        ),
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
    ],
)
def test_setting_that_applies_to_some_designs_causes_a_warning_that_names_them(
    designs: tuple[str, ...], name: str, value: str, warning: str
) -> None:
    (found,) = check_applicability(designs, {name: value})
    assert warning in found


@pytest.mark.parametrize(
    ("designs", "settings"),
    [
        (DESIGN_NAMES, {"auto.commit.interval.ms": "500"}),
        (DESIGN_NAMES, {"auto.offset.reset": "earliest"}),
        (("zookeeper", "server", "eager", "static"), {STRATEGY: "roundrobin"}),
        (("eager",), {"session.timeout.ms": "6000"}),
        (("eager",), {"zookeeper.session.timeout.ms": "6000"}),  # the brokers'
        (("zookeeper", "eager"), {"offsets.topic.num.partitions": "5"}),
    ],
)
def test_setting_that_applies_as_intended_causes_no_warning(designs: tuple[str, ...], settings: dict[str, str]) -> None:
    assert check_applicability(designs, settings) == []


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
