"""Whole runs in a simulated world: the same seed gives the same bytes, and the verdicts are those of real runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from comparison.scenarios.plan.links import DEFAULT
from kernel.designs import DESIGN_NAMES

#: What a run in a process of its own prints: its outcome.
ONE_RUN = "tests.support.runs.one_simulated_run"
#: The same on a machine of the name that comes first.
ON_A_HOST = f"""
import runpy, socket, sys
host = sys.argv.pop(1)
socket.gethostname = lambda: host
runpy.run_module("{ONE_RUN}", run_name="__main__", alter_sys=True)
"""
#: Where `make second-python` installs it, unless SECOND_PYTHON names another one.
SECOND_PYTHON = Path(__file__).parents[3] / "build" / "second-python" / "bin" / "python"


def simulated(
    folder: Path,
    scenario: str,
    design: str,
    *,
    seed: int = 1,
    hash_seed: int = 0,
    host: str = "one-host",
    links: str = DEFAULT,
    python: str = sys.executable,
) -> dict[str, Any]:
    """Perform a run in a new process; its outcome. The traces are in `folder`."""
    process = subprocess.run(
        [python, "-c", ON_A_HOST, host, str(folder), scenario, design, str(seed), links],
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


def headers(folder: Path) -> list[dict[str, Any]]:
    """Those of the trace files."""
    found = []
    for file in sorted((folder / "trace").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            found.append(json.loads(next(lines))["header"])
    return found


class Case(NamedTuple):
    """What is run with the same seed, again and again."""

    scenario: str
    design: str
    links: str = DEFAULT


#: Every design once; and cuts in an ensemble, on links with spreads, written as in a run's id.
CASES = [
    *[Case("crash", design) for design in DESIGN_NAMES],
    Case("stale-view", "zookeeper", "region,member-broker=2ms+-1.5"),
]
Once = Callable[[Case], tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Performs a case once for all tests; its folder and its outcome."""

    @cache
    def performed(case: Case) -> tuple[Path, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("once") / "run"
        return folder, simulated(folder, case.scenario, case.design, links=case.links, hash_seed=1)

    return performed


@pytest.fixture(scope="module")
def second_python() -> str:
    """Another Python in which the lab is installed: skips if there is none."""
    candidates = [os.environ.get("SECOND_PYTHON"), SECOND_PYTHON if SECOND_PYTHON.exists() else None]
    for python in filter(None, candidates):
        asked = [str(python), "-c", "import sys, kio, msgspec; print(*sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
        if said.split() != [*map(str, sys.version_info[:2])]:
            return str(python)
    pytest.skip("no second Python: `make second-python SECOND=python3.13` sets one up")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.scenario}-{case.design}")
def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed_and_the_host(
    tmp_path: Path, once: Once, case: Case
) -> None:
    folder, outcome = once(case)

    again = simulated(
        tmp_path / "again", case.scenario, case.design, links=case.links, hash_seed=2, host="another-machine"
    )

    assert outcome["outcome"] == "complete", outcome["error"]
    assert outcome == again
    assert len(digests(folder)) > 7
    assert digests(folder) == digests(tmp_path / "again")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.scenario}-{case.design}")
def test_the_same_seed_gives_the_same_bytes_on_another_python(
    tmp_path: Path, once: Once, second_python: str, case: Case
) -> None:
    folder, outcome = once(case)

    again = simulated(tmp_path / "again", case.scenario, case.design, links=case.links, python=second_python)

    assert outcome == again
    assert digests(folder) == digests(tmp_path / "again")


def test_another_seed_gives_another_run(tmp_path: Path, once: Once) -> None:
    folder, _ = once(Case("crash", "eager"))
    other = tmp_path / "other"

    simulated(other, "crash", "eager", seed=2)

    assert digests(folder).keys() == digests(other).keys()
    assert all(digest != digests(other)[name] for name, digest in digests(folder).items())


@pytest.mark.parametrize("case", [Case("crash", "server"), CASES[-1]], ids=lambda case: case.design)
def test_headers_say_that_time_was_simulated_and_on_which_links(once: Once, case: Case) -> None:
    folder, _ = once(case)

    run = f"simulated/{case.scenario}/{case.design}/seed-1" + (f"/{case.links}" if case.links != DEFAULT else "")
    for header in headers(folder):
        assert (header["clock"], header["pid"], header["run"]) == ("simulated", 0, run)
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
