"""Interrupts and crashes of the runner itself: what was measured is kept, and no process is left behind."""

from __future__ import annotations

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


@pytest.fixture
def comparison(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`compare --smoke`, running; its progress is written to a file."""
    with (tmp_path / "progress").open("w") as progress, (tmp_path / "result").open("w") as result:
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "comparison.cli.entry",
                "compare",
                "--smoke",
                "--format",
                "json",
                "-o",
                str(tmp_path / "runs"),
            ],
            stdout=result,
            stderr=progress,
            text=True,
        )
    yield child
    child.kill()
    child.wait()


def until_a_group_runs(folder: Path) -> None:
    """Wait until the first run has something to report."""
    traces = folder / "runs"
    wait_until(
        lambda: any('"change_settled"' in path.read_text() for path in traces.glob("*/herd/*/trace/runner.jsonl")),
        180,
        (folder / "progress").read_text,
    )


def descendants(child: subprocess.Popen[str]) -> list[psutil.Process]:
    found = psutil.Process(child.pid).children(recursive=True)
    assert len(found) > 5, "members, brokers and ZooKeeper run"
    return found


def test_ctrl_c_during_a_run_ends_without_an_analysis_and_keeps_the_traces(
    comparison: subprocess.Popen[str], tmp_path: Path
) -> None:
    until_a_group_runs(tmp_path)
    children = descendants(comparison)
    comparison.send_signal(signal.SIGINT)
    assert comparison.wait(60) == Exit.INTERRUPTED, (tmp_path / "progress").read_text()
    assert all_ended(children)
    assert (tmp_path / "result").read_text() == ""
    progress = (tmp_path / "progress").read_text()
    assert "on Spark" not in progress
    assert "interrupted; to analyse the traces: rebalance-lab analyze" in progress
    analysis = subprocess.run(
        [sys.executable, "-m", "comparison.cli.main", "analyze", str(tmp_path / "runs" / "latest"), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert analysis.returncode == Exit.UNKNOWN, analysis.stderr
    result = json.loads(analysis.stdout)
    assert [(run["scenario"], run["outcome"]) for run in result["runs"]] == [("herd", "interrupted")]
    assert result["verdict"] == "unknown"


def test_a_second_ctrl_c_aborts_at_once_and_leaves_no_process(
    comparison: subprocess.Popen[str], tmp_path: Path
) -> None:
    until_a_group_runs(tmp_path)
    children = descendants(comparison)
    comparison.send_signal(signal.SIGINT)
    wait_until(lambda: "interrupted" in (tmp_path / "progress").read_text(), 60, "the first line of output")
    comparison.send_signal(signal.SIGINT)
    assert comparison.wait(60) == Exit.INTERRUPTED
    wait_until(lambda: all_ended(children), 60, "the children to end with their parent")


def test_children_of_a_killed_runner_end(comparison: subprocess.Popen[str], tmp_path: Path) -> None:
    until_a_group_runs(tmp_path)
    children = descendants(comparison)
    comparison.kill()
    comparison.wait()
    wait_until(lambda: all_ended(children), 60, "the children to end with their parent")


def test_member_that_dies_unexpectedly_fails_the_run_and_is_named(
    comparison: subprocess.Popen[str], tmp_path: Path
) -> None:
    until_a_group_runs(tmp_path)
    started = [
        json.loads(line)
        for path in (tmp_path / "runs").glob("*/herd/*/trace/runner.jsonl")
        for line in path.read_text().splitlines()
        if '"process_started"' in line and '"m1"' in line
    ]
    psutil.Process(started[0]["child_pid"]).kill()
    wait_until(
        lambda: "m1 ended while running (exit code -9)" in (tmp_path / "progress").read_text().replace("\n", " "),
        60,
        (tmp_path / "progress").read_text,
    )
