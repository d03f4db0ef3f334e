"""The conditions of a command, in one box that can be copied and run again."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.analysis import compose
from comparison.report.sections.done import About, as_text, conditions
from tests.support.runs.results import run

COMMAND = {
    "command": ["rebalance-lab", "run", "crash", "--seed", "3", "-c", "x=a b"],
    "versions": {"python": "3.11.7", "pyspark": "4.3.0"},
    "machine": {"system": "Linux", "cores": 2},
}
CATALOGUE = {"crash": {"defaults": {"members": 4, "partitions": 12, "rate": 200}, "settings": {"own": "1"}}}


def shown(**given: Any) -> list[tuple[str, str]]:
    parameters = {"members": 6, "partitions": 12, "rate": 200, "preset": "equal-timers", "settings": {}}
    parameters |= given.pop("parameters", {})
    result = compose([run("crash", "eager", parameters=parameters, **given)])
    return conditions(result, About(COMMAND, CATALOGUE))


def test_box_has_command_versions_machine_seed_and_preset() -> None:
    rows = dict(shown(run_id="20261123T111623Z-run/crash/eager"))
    assert rows["command"] == "rebalance-lab run crash --seed 3 -c 'x=a b'"
    assert rows["date"] == "2026-11-23 11:16:23 UTC"
    assert rows["versions"] == "python 3.11.7, pyspark 4.3.0"
    assert rows["machine"] == "Linux, 2 cores"
    assert (rows["seed"], rows["repeats"], rows["preset"]) == ("1", "1", "equal-timers")


def test_box_has_every_setting_that_is_not_the_default() -> None:
    rows = shown(parameters={"settings": {"fix.commit.fence": "session", "own": "1"}})
    assert [text for label, text in rows if label == "setting"] == [
        "fix.commit.fence=session: crash",
        "own=1 (the scenario's own): crash",
        "members 6 (default 4): crash",
    ]


def test_copied_text_runs_the_command_and_keeps_the_rest_as_comments() -> None:
    first, *rest = as_text(shown()).splitlines()
    assert first.startswith("rebalance-lab run crash")
    assert all(line.startswith("# ") for line in rest)


def test_nothing_is_claimed_without_a_record_of_the_command() -> None:
    result = compose([run("crash", "eager", path="/elsewhere")])
    assert {label for label, _ in conditions(result, About())} == {"seed", "repeats"}


def test_page_of_several_results_has_the_command_of_each_and_what_they_share_once() -> None:
    other = {**COMMAND, "command": ["rebalance-lab", "run", "pause"], "machine": {"system": "Darwin", "cores": 8}}
    runs = [run("crash", "eager", run_id=f"20261123T11162{n}Z-run/crash/eager", path=f"/{n}") for n in (3, 4)]
    rows = conditions(compose(runs), About(COMMAND, {}, [other, COMMAND]))
    commands = [text for label, text in rows if label == "command"]
    assert commands == ["rebalance-lab run crash --seed 3 -c 'x=a b'", "rebalance-lab run pause"]
    assert [text for label, text in rows if label == "machine"] == ["Linux, 2 cores", "Darwin, 8 cores"]
    assert [text for label, text in rows if label == "versions"] == ["python 3.11.7, pyspark 4.3.0"]
    assert dict(rows)["date"] == "2026-11-23 11:16:23 UTC, 2026-11-23 11:16:24 UTC"
    assert as_text(rows).splitlines()[:2] == commands
