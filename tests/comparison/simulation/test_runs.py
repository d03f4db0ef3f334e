"""Whole runs in a simulated world: the same seed gives the same bytes, and the verdicts are those of real runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from comparison.scenarios.plan.links import DEFAULT
from kernel.designs import DESIGN_NAMES

#: What a run in a process of its own prints: its outcome.
ONE_RUN = "tests.support.runs.one_simulated_run"


def simulated(
    folder: Path,
    scenario: str,
    design: str,
    *,
    seed: int = 1,
    hash_seed: int = 0,
    links: str = DEFAULT,
    python: str = sys.executable,
) -> dict[str, Any]:
    """Perform a run in a new process; its outcome. The traces are in `folder`."""
    process = subprocess.run(
        [python, "-m", ONE_RUN, str(folder), scenario, design, str(seed), links],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    outcome: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return outcome


def digests(folder: Path) -> dict[str, str]:
    """The digest of each trace file."""
    files = sorted((folder / "trace").glob("*.jsonl"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


#: Links, spreads and a cost, in the form in which a run's id has them.
FAR = "region,member-broker=2ms+-1.5,cost=20us+-10"
#: Every design once, and cuts in an ensemble, on links that are not the usual ones.
CASES = [
    *[("crash", design, DEFAULT) for design in DESIGN_NAMES],
    ("stale-view", "zookeeper", FAR),
]


def headers(folder: Path) -> list[dict[str, Any]]:
    """Those of the trace files."""
    found = []
    for file in sorted((folder / "trace").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            found.append(json.loads(next(lines))["header"])
    return found


@pytest.mark.parametrize(("scenario", "design", "links"), CASES)
def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(
    tmp_path: Path, scenario: str, design: str, links: str
) -> None:
    once, again = tmp_path / "once", tmp_path / "again"

    outcomes = [
        simulated(folder, scenario, design, links=links, hash_seed=number)
        for number, folder in enumerate((once, again), 1)
    ]

    assert outcomes[0]["outcome"] == "complete", outcomes[0]["error"]
    assert outcomes[0] == outcomes[1]
    assert len(digests(once)) > 7
    assert digests(once) == digests(again)
    assert {header["run"] for header in headers(once)} == {
        f"simulated/{scenario}/{design}/seed-1" + ("" if links == DEFAULT else f"/{links}")
    }


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"

    simulated(one, "crash", "eager", seed=1)
    simulated(other, "crash", "eager", seed=2)

    assert digests(one).keys() == digests(other).keys()
    assert all(digest != digests(other)[name] for name, digest in digests(one).items())


def test_headers_say_that_time_was_simulated(tmp_path: Path) -> None:
    simulated(tmp_path / "run", "crash", "server")

    for header in headers(tmp_path / "run"):
        assert (header["clock"], header["pid"], header["run"]) == (
            "simulated", 0, "simulated/crash/server/seed-1",
        )  # fmt: skip
        assert header["boot_id"] == header["run"]


KILLED_BROKER = """
name = "killed-broker"
steps = [
    { step = "form" },
    { step = "inject", fault = "kill", target = "broker-1" },
    { step = "hold", ms = 1600 },
    { step = "heal" },
]
"""


def test_a_killed_broker_lets_its_successor_have_its_id(tmp_path: Path) -> None:
    """The lock on the id is a descriptor of the process that all nodes share."""
    file = tmp_path / "killed-broker.toml"
    file.write_text(KILLED_BROKER, encoding="utf-8")

    outcome = simulated(tmp_path / "run", str(file), "server")

    assert (outcome["outcome"], outcome["error"]) == ("complete", "")
    assert (tmp_path / "run" / "trace" / "broker-1.2.jsonl").exists()
