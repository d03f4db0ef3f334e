"""Impossible runs are refused when they are planned, with a remedy."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.topic_vocabulary import SubscribePattern
from comparison.scenarios.plan.vocabulary import Form
from comparison.scenarios.run.experiments import plan
from kernel.designs import CLASSIC, DESIGN_NAMES
from kernel.errors import ConfigurationError, SeveralErrors

PAIR = ("zookeeper", "eager")


@pytest.mark.parametrize("design", DESIGN_NAMES)
@pytest.mark.parametrize(("brokers", "replicas"), [(1, "1"), (2, "2"), (3, "2")])
def test_topics_have_at_most_one_replica_per_broker(design: str, brokers: int, replicas: str) -> None:
    made = configuration(design, Parameters(brokers=brokers))
    names = ("default.replication.factor", "offsets.topic.replication.factor")
    assert [made.broker[name] for name in names] == [replicas, replicas]


@pytest.mark.parametrize(
    ("scenario", "given", "complaint"),
    [
        ("join", {"settings": {"offsets.topic.replication.factor": "3"}}, "there are 2 brokers. Use --brokers 3"),
        ("crash", {"members": 1}, "--members is 1: crash needs 2 or more. Use --members 2"),
        ("pause", {"members": 1}, "--members is 1: pause needs 2 or more"),
        ("split-brain", {"brokers": 1}, "--brokers is 1: split-brain needs 2 or more. Use --brokers 2"),
        ("split-brain", {"members": 6, "partitions": 5}, "6 members share 5 partitions. Use --partitions 6 or more"),
        ("join", {"partitions": 500, "rate": 10}, "500 partitions get too few records .*. Use --rate 50 or more"),
        ("pause", {"partitions": 24, "rate": 10}, "Use --rate 24 or more"),
        ("join", {"settings": {"session.timeout.ms": "500", "heartbeat.interval.ms": "100"}}, "brokers allow 1000 to"),
        ("join", {"settings": {"zookeeper.session.timeout.ms": "90000"}}, "ZooKeeper allows 200 to 60000 ms"),
        ("split-brain", {"settings": {"group.max.size": "4"}}, "4 members, of which the one to be cut off may not be"),
        ("join", {"settings": {"enable.auto.commit": "false"}}, "Set auto.commit.interval.ms instead"),
        ("join", {"settings": {"auto.commit.enable": "false"}}, "Set auto.commit.interval.ms instead"),
        ("join", {"settings": {"heartbeat.interval.ms": "3000"}}, "must be below session.timeout.ms=3000"),
        ("join", {"settings": {"group.max.session.timeout.ms": "10"}}, "must not be above group.max.session"),
        ("join", {"session_timeout_ms": 500}, "--session-timeout is 500: must be between 1000 and 60000"),
    ],
)
def test_an_impossible_run_is_refused_with_the_remedy(scenario: str, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        plan([scenario], PAIR, given)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"group.remote.assignor": "broker-range"},
            "group.remote.assignor=broker-range: the brokers have only uniform",
        ),
        ({"group.remote.assignor": "range", "group.consumer.assignors": "uniform"}, "brokers have only uniform "),
    ],
)
def test_an_assignor_that_the_brokers_do_not_have_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        plan(["join"], ("consumer",), {"settings": settings})
    assert plan(["join"], ("consumer",), {"settings": {"group.remote.assignor": "range"}})


@pytest.mark.parametrize("preset", ["equal-timers", "kafka-defaults"])
def test_every_scenario_is_feasible_with_its_defaults(preset: str) -> None:
    assert len(plan(list(CATALOGUE), DESIGN_NAMES, {"preset": preset})) > len(CATALOGUE)


@pytest.mark.parametrize("session_timeout_ms", [1_000, 60_000])
def test_every_scenario_is_feasible_with_the_shortest_and_the_longest_sessions(session_timeout_ms: int) -> None:
    assert plan(list(CATALOGUE), DESIGN_NAMES, {"session_timeout_ms": session_timeout_ms})


@pytest.mark.parametrize(
    ("design", "named", "complaint"),
    [
        ("eager", False, "none can be duplicated. Choose static, or set named_members"),
        ("server", True, "cannot have a name. Leave the design out"),
        ("zookeeper", True, None),
        ("eager", True, None),
        ("static", False, None),
    ],
)
def test_only_members_with_a_name_are_duplicated(design: str, named: bool, complaint: str | None) -> None:
    scenario = replace(CATALOGUE["duplicate-instance-id"], named_members=named)
    parameters = Parameters()
    case = Case(scenario, design, parameters, configuration(design, parameters))
    with pytest.raises(ConfigurationError, match=complaint) if complaint else nullcontext():
        require_feasible(case)


@pytest.mark.parametrize(
    ("design", "changed", "complaint"),
    [
        ("server", {"pattern": "orders.*"}, "server assigns topics by name, so it has no patterns"),
        ("eager", {"pattern": "orders("}, "pattern 'orders(': "),
        ("eager", {"pattern": "order"}, "pattern 'order' matches none of the topics at the start (orders), so nothing"),
        ("server", {"steps": (Form(), SubscribePattern(".*"))}, "server assigns topics by name"),
        ("eager", {"steps": (Form(), SubscribePattern("a**"))}, "pattern 'a**': "),
    ],
)
def test_pattern_is_refused_where_no_member_can_subscribe_by_it(
    design: str, changed: dict[str, Any], complaint: str
) -> None:
    scenario = replace(CATALOGUE["join"], **changed)
    case = Case(scenario, design, Parameters(), configuration(design, Parameters()))
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        require_feasible(case)


def test_runs_that_cannot_work_are_all_named_those_for_one_reason_together() -> None:
    scenario = replace(CATALOGUE["join"], pattern="order")
    cases = [Case(scenario, each, Parameters(), configuration(each, Parameters())) for each in ("server", *CLASSIC)]
    with pytest.raises(SeveralErrors) as raised:
        require_feasible(*cases)
    of_server, of_all = raised.value.texts
    assert of_server.startswith("join in server: server assigns topics by name")
    assert of_all.startswith(f"join in {', '.join(CLASSIC)}: pattern 'order' matches none of the topics")
