"""Own scenarios, strategies, steps and faults, as the documents' examples have them, in real runs.

Verify: each runs to its end, is judged, and leaves in its folder what it was made from.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from comparison.exits import Exit
from comparison.scenarios.plan.plugins import ENTRY_POINTS as PLUGINS
from kernel.assignors.registry import ENTRY_POINTS
from tests.support.commands.installed import installed

pytestmark = [pytest.mark.faults, pytest.mark.catalogue]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def run(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of `run`, and what result.json has of each run."""
    command = [sys.executable, "-m", "comparison.cli.main", "run", *arguments, "--seed", "1", "-q", "-o", str(folder)]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment or os.environ, capture_output=True, text=True, check=False
    )
    if "--dry-run" in arguments:
        return ended.returncode, []
    result = folder / "latest" / "result.json"
    assert result.exists(), ended.stderr
    return ended.returncode, json.loads(result.read_bytes())["runs"]


def unexpected(runs: list[dict[str, Any]]) -> dict[str, str]:
    """{design and check: outcome and reason} of every verdict that is not as expected."""
    return {
        f"{each['design']}, {verdict['check']}": f"{verdict['outcome']}: {verdict['reason']}"
        for each in runs
        for verdict in each["verdicts"]
        if verdict["outcome"] != "as expected"
    }


def test_the_example_runs_in_both_kinds_of_design_and_is_kept(tmp_path: Path) -> None:
    example = EXAMPLES / "slow-authority.toml"
    code, runs = run(tmp_path, str(example), "--design", "zookeeper,eager")
    assert [each["outcome"] for each in runs] == ["complete", "complete"]
    assert (code, unexpected(runs)) == (Exit.AS_EXPECTED, {})
    assert "never owned by two members" in {each["check"] for each in runs[1]["verdicts"]}
    for each in runs:
        folder = Path(each["path"])
        assert (folder / "scenario.toml").read_bytes() == example.read_bytes()
        described = json.loads((folder / "run.json").read_bytes())
        assert described["scenario_file"]["path"] == str(example)
        assert described["described"]["symptom"].startswith("The network between one consumer")
    page = (tmp_path / "latest" / "report.html").read_text(encoding="utf-8")
    assert "The network between one consumer" in page


def test_a_strategy_that_leaves_members_without_partitions_settles(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "writing-an-assignor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    source, project = (next(text for kind, text in blocks if kind == wanted) for wanted in ("python", "toml"))
    entries = tomllib.loads(project)["project"]["entry-points"][ENTRY_POINTS]
    environment = installed(tmp_path / "site", "standby", source, ENTRY_POINTS, entries)
    strategy = ("-c", "partition.assignment.strategy=standby")
    code, runs = run(tmp_path, "join", "crash", "--design", "eager,static", *strategy, environment=environment)
    assert [each["outcome"] for each in runs] == ["complete"] * 4, [each["error"] for each in runs]
    assert {check["outcome"] for each in runs for check in each["verdicts"]} >= {"as expected"}
    assert code != Exit.NOT_AS_EXPECTED, unexpected(runs)


@pytest.mark.parametrize(
    ("ticket", "broken"),
    [
        ("", set()),
        ("14639", {"never owned by two members", "no stale write", "no offset moved back"}),
        ("13891", {"kept partitions never stop"}),
    ],
)
def test_a_member_that_misses_a_round_keeps_its_partitions_unless_a_fault_is_back(
    tmp_path: Path, ticket: str, broken: set[str]
) -> None:
    example = str(EXAMPLES / "late-member.toml")
    fault = ("--set", f"fault.kafka.{ticket}=true") if ticket else ()
    _, (each,) = run(tmp_path, example, "--design", "cooperative", "--simulated", *fault)
    assert each["outcome"] == "complete"
    assert {verdict["check"] for verdict in each["verdicts"] if verdict["outcome"] == "not as expected"} == broken
    traces = (Path(each["path"]) / "trace").glob("m1.jsonl*")
    refusals = [line for path in traces for line in path.read_text("utf-8").splitlines() if "SyncGroup" in line]
    assert any("REBALANCE_IN_PROGRESS" in line for line in refusals), "it has missed no round"


def test_own_steps_and_faults_run_and_are_kept(tmp_path: Path) -> None:
    code, (each,) = run(tmp_path, str(EXAMPLES / "own-faults.toml"), "--design", "eager")
    assert (each["outcome"], code) == ("complete", Exit.AS_EXPECTED), unexpected([each])
    names = ["hiccups", "join-in-turn", "join-in-turn", "lose-beside-slow", "lose-beside-slow"]
    assert [change["change"] for change in each["changes"]] == names
    assert [change["rounds"] for change in each["changes"][:3]] == [0, 1, 1]
    folder = Path(each["path"])
    assert (folder / "own_faults.py").read_bytes() == (EXAMPLES / "own_faults.py").read_bytes()
    again, _ = run(tmp_path / "again", str(folder / "scenario.toml"), "--design", "eager", "--dry-run")
    assert again == Exit.AS_EXPECTED


def test_own_code_of_an_installed_package_that_fails_ends_the_run(tmp_path: Path) -> None:
    source = (
        "from dataclasses import dataclass\n"
        "from rebalance_lab.extending import Group, OwnStep, own_step\n\n\n"
        "@own_step\n@dataclass(frozen=True, slots=True)\nclass Boom(OwnStep):\n"
        "    async def perform(self, group: Group) -> None:\n        raise ValueError('boom')\n"
    )
    environment = installed(tmp_path / "site", "booming", source, PLUGINS, {"booming": "booming"})
    (tmp_path / "boom.toml").write_text('name = "boom"\nsteps = [{ step = "form" }, { step = "boom" }]\n')
    code, (each,) = run(tmp_path, str(tmp_path / "boom.toml"), "--design", "eager", environment=environment)
    assert (each["outcome"], code) == ("failed", Exit.UNKNOWN)
    place = f"{tmp_path / 'site' / 'booming.py'}:9"
    assert each["error"] == f"boom failed: ValueError: boom ({place}, traceback in own-code.txt)"
    assert "in perform" in (Path(each["path"]) / "own-code.txt").read_text()
