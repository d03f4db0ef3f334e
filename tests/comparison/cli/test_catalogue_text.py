"""`scenarios --show` says what is expected of each design, and fits a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison.cli.catalogue_text import WIDTH, scenario_text
from comparison.scenarios.plan.catalogue import CATALOGUE


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_scenario_fits_a_terminal(name: str) -> None:
    text = scenario_text(CATALOGUE[name], name)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert f"Run it: rebalance-lab run {name}" in text


def test_expectations_are_promises_history_or_the_model_with_what_they_need() -> None:
    text = " ".join(scenario_text(CATALOGUE["pause"], "pause").split())
    assert "- promise: no record lost needs a numbered record that was acknowledged and delivered" in text
    assert "- history: zombie commits (zookeeper) needs" in text
    assert "- promise: old commits refused (server, eager, static, cooperative, delayed, consumer) needs" in text
    assert "- model: counts needs a change whose counts have a formula" in " ".join(
        scenario_text(CATALOGUE["crash"], "crash").split()
    )


def test_settings_of_a_scenario_decide_what_is_expected_of_it() -> None:
    assert "history: zombie commits" in scenario_text(CATALOGUE["zombie-commit"], "zombie-commit")
    assert (
        "zombie commits"
        not in scenario_text(CATALOGUE["zombie-commit-fenced"], "zombie-commit-fenced")
        .split("Expected", 1)[1]
        .split("References")[0]
    )


def test_defaults_and_variants_of_a_run_are_shown() -> None:
    text = scenario_text(CATALOGUE["double-owner"], "double-owner")
    assert "4 members, 12 partitions, 2 brokers, 3 ZooKeeper\n  servers, 200 records per second" in text
    assert text.endswith("Runs with it: double-owner-fenced, double-owner-no-broker\n")
    assert "It runs with double-owner, of which it is a variant." in scenario_text(
        CATALOGUE["double-owner-fenced"], "double-owner-fenced"
    )
    assert "(the steps say how many members there are)" in scenario_text(CATALOGUE["herd"], "herd").replace("\n  ", " ")


def test_own_scenario_is_judged_by_the_checks_that_its_file_names() -> None:
    mine = replace(CATALOGUE["join"], name="mine", like="", checks=("never owned by two members",))
    expected = scenario_text(mine, "mine.toml").split("Expected", 1)[1]
    assert "never owned by two members" in expected
    assert "counts" not in expected
    assert "Run it: rebalance-lab run mine.toml" in expected
