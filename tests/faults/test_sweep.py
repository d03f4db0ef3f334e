"""A real sweep that is killed and interrupted: finished runs are kept, and only the rest is run."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from comparison.exits import Exit
from kernel.waiting import wait_until
from tests.support.commands.ended import all_ended

pytestmark = pytest.mark.faults

GRID = ("--grid", "scenario=join", "--grid", "design=eager", "--grid", "members=1,2,3", "--grid", "partitions=4")
RUNS = [f"join/eager/members-{members}_partitions-4/seed-1" for members in (1, 2, 3)]


@contextlib.contextmanager
def sweep(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The running command; its output is written to `folder/output`."""
    with (folder / "output").open("w") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "comparison.cli.main", "sweep", *arguments], stdout=output, stderr=output, text=True
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def until_run(number: int, folder: Path, child: subprocess.Popen[str]) -> list[psutil.Process]:
    """Wait until this run's group has formed; returns the command's processes."""
    trace = folder / "s" / RUNS[number] / "trace" / "runner.jsonl"
    began_s = psutil.Process(child.pid).create_time()

    def has_formed() -> bool:
        """In this command: one that was killed may have left a trace."""
        return trace.exists() and trace.stat().st_mtime > began_s and '"steady"' in trace.read_text()

    wait_until(lambda: has_formed() or child.poll() is not None, 180, (folder / "output").read_text)
    assert child.poll() is None, (folder / "output").read_text()
    return psutil.Process(child.pid).children(recursive=True)


def outcome(folder: Path, number: int) -> tuple[str, int]:
    """How a run ended, and when its record was written."""
    path = folder / "s" / RUNS[number] / "run.json"
    if not path.exists():
        return "", 0
    return json.loads(path.read_bytes()).get("outcome", ""), path.stat().st_mtime_ns


def test_killed_and_interrupted_sweep_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    with sweep(tmp_path, *GRID, "-o", str(tmp_path / "s")) as child:
        children = until_run(1, tmp_path, child)
        child.kill()
        wait_until(lambda: all_ended(children), 60, "the children to end with their parent")
    # The one that ran, or on a busy machine one after it, was cut off.
    done = [number for number in range(len(RUNS)) if outcome(tmp_path, number)[0] == "complete"]
    assert done in ([0], [0, 1])
    first = outcome(tmp_path, 0)
    with sweep(tmp_path, *GRID, "-o", str(tmp_path / "s")) as child:  # the same command again
        children = until_run(2, tmp_path, child)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == Exit.INTERRUPTED
        assert all_ended(children)
    said = (tmp_path / "output").read_text()
    assert f"{len(done)} of 3 runs done before" in said
    assert f": rebalance-lab sweep {tmp_path / 's'}" in said.replace("\n", "")
    assert "Traceback" not in said
    second = outcome(tmp_path, 1)
    assert second[0] == "complete"
    assert outcome(tmp_path, 0) == first
    with sweep(tmp_path, str(tmp_path / "s")) as child:
        assert child.wait(300) == Exit.AS_EXPECTED, (tmp_path / "output").read_text()
    assert [outcome(tmp_path, number) for number in (0, 1)] == [first, second]
    result = json.loads((tmp_path / "s" / "result.json").read_bytes())
    assert sorted(run["parameters"]["members"] for run in result["runs"]) == [1, 2, 3]
    assert {run["outcome"] for run in result["runs"]} == {"complete"}
    assert sorted(run["run_id"] for run in result["runs"]) == [f"s/{folder}" for folder in RUNS]
