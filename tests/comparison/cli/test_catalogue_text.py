"""`scenarios NAME` says what is expected of each design, and fits a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from comparison.cli.catalogue_text import WIDTH, scenario_text
from comparison.cli.scenarios import scenarios
from comparison.pipeline.figures.unpromised import UNPROMISED
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.catalogue import CATALOGUE, naming
from tests.support.commands.called import output_of


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_scenario_fits_a_terminal(name: str) -> None:
    text = scenario_text(CATALOGUE[name], name)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert f"Run it: rebalance-lab run {name}" in text


def test_expectations_are_promises_history_or_the_model_with_what_they_need() -> None:
    text = " ".join(scenario_text(CATALOGUE["pause"], "pause").split())
    assert "- promise: no record lost needs a numbered record that was acknowledged and delivered" in text
    assert "- history: zombie commits needs" in text
    assert "- promise: old commits refused needs" in text
    assert "all but zookeeper:" in text
    assert "- model: counts needs a change whose counts have a formula" in " ".join(
        scenario_text(CATALOGUE["crash"], "crash").split()
    )


def by_designs(name: str) -> dict[str, str]:
    """What `--show` expects, by the designs that it names."""
    text = scenario_text(CATALOGUE[name], name).split("Expected", 1)[1].split("\n\n", 1)[0]
    heading, *parts = re.split(r"\n  (?=\w)", text)
    assert "unknown if the run lacks what it needs" in " ".join(heading.split())
    return {designs: " ".join(rows.split()) for designs, _, rows in (part.partition(":\n") for part in parts)}


def test_what_is_promised_expected_as_history_and_not_promised_is_shown_by_design() -> None:
    shown = by_designs("pause")
    assert list(shown) == ["every design", "all but zookeeper", "eager, static, cooperative, delayed", "zookeeper"]
    assert "promise: no record lost" in shown["every design"]
    assert "not promised: that nothing is delivered twice" in shown["every design"]
    assert "not promised: that a newer design settles faster" in shown["every design"]
    assert shown["eager, static, cooperative, delayed"].startswith("- not promised: that two members never deliver at ")
    assert "history: two members deliver" in shown["zookeeper"]
    assert "not promised" not in shown["zookeeper"]


def test_what_is_not_promised_is_shown_only_where_it_could_be_taken_for_granted() -> None:
    alone = by_designs("stale-view-synced")
    assert list(alone) == ["zookeeper"]
    assert "settles faster" not in alone["zookeeper"], "nothing to compare with"
    assert "a start of all at once" in by_designs("mass-start")["every design"]
    assert "a start of all at once" not in by_designs("join")["every design"]


def test_every_row_of_what_is_not_promised_is_shown_and_none_is_judged_in_the_same_designs_and_scenarios() -> None:
    text = " ".join(" ".join(scenario_text(each, name).split()) for name, each in CATALOGUE.items())
    assert [each.what for each in UNPROMISED if f"not promised: {each.what}" not in text] == []
    two = next(each for each in UNPROMISED if "two members" in each.what)
    judged = {
        (design, scenario)
        for check in CHECKS
        for design in two.designs
        for scenario in naming(lambda named: two.key in named)
        if check.name == "two members deliver" and check.judges(design, CATALOGUE[scenario].checks)
    }
    assert judged == set()


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


def test_steps_say_their_values_where_they_belong() -> None:
    steps = {name: " ".join(scenario_text(CATALOGUE[name], name).split()) for name in CATALOGUE}
    assert "Grow the group to --members members, all new ones at once, and wait" in steps["crash"]
    assert "Grow the group to 20 members, all new ones at once, and wait" in steps["herd"]
    assert "all new ones within 200 ms, and wait" in steps["mass-start"]
    assert "for the session timeout plus 7000 ms." in steps["split-brain"]
    assert "and start it again after 1000 ms." in steps["rolling-restart"]
    assert "Double the partitions of the topic while" in steps["add-partitions"]
    assert "takes its place 2000 ms too late." in steps["crash-and-return-late"]
    assert "that pauses (without transactions)." in steps["read-process-write"]
    assert "(by_ms 250, ways in): delivers all bytes of the link, or those of one direction, 250 ms" in " ".join(
        steps.values()
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_step_leaves_a_parameter_without_its_value(name: str) -> None:
    steps = scenario_text(CATALOGUE[name], name).partition("Steps:")[2].partition("Unless options")[0]
    assert not re.findall(r"`\w+`|\[|None|False", steps)


def test_list_shows_every_name_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = output_of(scenarios).splitlines()
    assert set(CATALOGUE) <= {line.partition(" ")[0] for line in shown}
    assert max(map(len, shown)) <= WIDTH


def test_own_scenario_is_judged_by_the_checks_that_its_file_names() -> None:
    mine = replace(CATALOGUE["join"], name="mine", like="", checks=("never owned by two members",))
    expected = scenario_text(mine, "mine.toml").split("Expected", 1)[1]
    assert "never owned by two members" in expected
    assert "model: counts" not in expected
    assert "Run it: rebalance-lab run mine.toml" in expected
