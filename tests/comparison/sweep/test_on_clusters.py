"""Simulated sweeps on clusters: each run is a task, and has the figures that it has anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from comparison.results.keys import COMPLETE
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.sweep.large import figures_of
from comparison.sweep.plan import planned_sweep
from tests.comparison.pipeline.spark_cluster import python_without_ours, standalone_cluster
from tests.support.runs.sweeps import plan_of

pytestmark = pytest.mark.long

AXES = ("scenario=join", "design=eager,server", "members=2,20", "partitions=40")
SEEDS, WHOLE_UP_TO = 2, 2
#: Of the host, and not of the seed.
MEASURED = "join.authority_cpu_s"


@pytest.fixture(scope="module", params=["local-cluster[2,1,1024]", "standalone"])
def master(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster") / "standalone"
    with standalone_cluster(folder) if request.param == "standalone" else nullcontext(request.param) as url:
        yield url


def test_runs_of_a_simulated_sweep_are_tasks_of_a_cluster(master: str, tmp_path: Path) -> None:
    """Setup: the executors' Python has our dependencies only.

    Steps: two seeds of two designs, in groups that run whole and in others of which only decisions are made.
    """
    python, folder = python_without_ours(tmp_path / "python"), tmp_path / "sweep"
    command = [Path(sys.executable).with_name("rebalance-lab"), "sweep", "--simulated", "--quiet", "--format", "json"]
    command += [option for axis in AXES for option in ("--grid", axis)]
    command += ["--seeds", f"{SEEDS}", "--full-stack-members", f"{WHOLE_UP_TO}", "--output", folder]
    command += ["--master", master, "--executor-python", python]
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr.decode()
    data = json.loads(done.stdout)
    assert {(cell["design"], cell["at"]["members"], cell["by"]) for cell in data["cells"]} == {
        (design, members, "full stack" if members == WHOLE_UP_TO else "deciding modules")
        for design in ("eager", "server")
        for members in (2, 20)
    }
    grid = plan_of(*AXES, seeds=SEEDS).grid
    for run in planned_sweep(grid, simulated=True, full_stack_max=WHOLE_UP_TO).runs:
        written = json.loads((folder / run.folder / "run.json").read_bytes())
        assert written["outcome"] == COMPLETE
        if run.planned.parameters.members > WHOLE_UP_TO:
            figures = figures_of(scenario_named(run.cell.scenario), run.cell.design, run.planned.parameters)
            assert {**written["figures"], MEASURED: 0} == {**figures, MEASURED: 0}


def test_group_of_a_hundred_thousand_opens_no_file_for_each_member(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("rebalance-lab"), "sweep", "--simulated", "--quiet", "--format", "json"]
    command += ["--grid", "scenario=join", "--grid", "design=zookeeper", "--grid", "members=100000"]
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["by"] == "formula"
    assert cell["figures"]["join.zk_reads"]["median"] > 10**10
