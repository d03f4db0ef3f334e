"""Warnings of settings that are probably not meant: only of those that a user has set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.plan.doubts import doubts
from kernel.designs import DESIGN_NAMES


def doubts_of(name: str, designs: Sequence[str], given: Mapping[str, str]) -> list[str]:
    parameters = scenario_named(name).parameters({"settings": dict(given)})
    return doubts([(name, design, parameters) for design in designs], given)


def test_no_scenario_is_doubted_as_it_is_even_if_it_breaks_a_rule_on_purpose() -> None:
    for name, scenario in CATALOGUE.items():
        designs = [design for design in DESIGN_NAMES if design not in scenario.not_applicable]
        assert doubts_of(name, designs, {}) == []
        assert doubts_of(name, designs, {"metadata.max.age.ms": "1000"}) == []


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("crash", {"heartbeat.interval.ms": "2000"}, "eager, static: session.timeout.ms=3000 is less than three"),
        ("crash", {"rebalance.backoff.ms": "100"}, "zookeeper: rebalance.max.retries x rebalance.backoff.ms is 400 ms"),
        ("rebalance-failed", {"zookeeper.session.timeout.ms": "4000"}, "zookeeper: rebalance.max.retries x "),
        ("scale-out-under-lag", {"max.poll.records": "2000"}, "eager, static: max.poll.interval.ms=10000 is not above"),
        ("pause", {"fix.stop.on.disconnect": "true"}, "zookeeper: fix.stop.on.disconnect stops deliveries only"),
    ],
)
def test_what_a_user_sets_is_doubted_once_for_all_designs_that_it_concerns(
    name: str, given: dict[str, str], line: str
) -> None:
    (found,) = doubts_of(name, ["zookeeper", "eager", "static"], given)
    assert found.startswith(line)


def test_a_name_inside_a_longer_name_is_not_the_setting_that_was_given() -> None:
    assert doubts_of("rebalance-failed", ["zookeeper", "eager"], {"session.timeout.ms": "6000"}) == []
