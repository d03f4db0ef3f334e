"""A disk that fills up during a run: what cannot be traced is not continued, and nothing is left behind.

Verify: one clear line, the exit code of an environment fault, no process.

Setup: a run; at some point the files of its processes cannot grow any further (RLIMIT_FSIZE, set from outside).

Expectation: a member without its trace ends, and the run with it; a runner without its trace ends the command.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from comparison.exits import Exit
from kernel.waiting import wait_until
from tests.support.commands.ended import all_ended

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's"),
]

#: Under this seed the scenario kills another member than the one that this test fails.
COMMAND = [sys.executable, "-m", "comparison.cli.main", "run", "crash", "--design", "eager", "--seed", "1"]


@pytest.fixture
def crash(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`run crash`, running."""
    child = subprocess.Popen([*COMMAND, "-o", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(
        lambda: any('"steady"' in path.read_text() for path in tmp_path.glob("*/crash/eager/trace/runner.jsonl")),
        180,
        "the group to run",
    )
    yield child
    child.kill()
    child.communicate()


def opened_by(process: psutil.Process) -> set[str]:
    """The files that it has open; none if it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return {file.path for file in process.open_files()}
    return set()


def no_more_room(process: psutil.Process) -> None:
    process.rlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_full_disk_ends_the_command_with_one_line_and_no_process_left(
    crash: subprocess.Popen[str], tmp_path: Path
) -> None:
    processes = [psutil.Process(crash.pid), *psutil.Process(crash.pid).children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # the command may have failed, and have ended the others
            no_more_room(process)
    _, stderr = crash.communicate(timeout=240)
    assert crash.returncode == Exit.USAGE, stderr
    assert f"cannot write the run folder {tmp_path}" in stderr.splitlines()[-1]
    assert "File too large" in stderr.splitlines()[-1]
    wait_until(lambda: all_ended(processes), 30, "every process to end")


def test_member_that_cannot_trace_ends_its_run_and_a_full_disk_fails_the_analysis_clearly(
    crash: subprocess.Popen[str], tmp_path: Path
) -> None:
    (trace,) = tmp_path.glob("2*/crash/eager/trace/m1.jsonl")  # with this seed the scenario kills m2
    fork_server = next(child for child in psutil.Process(crash.pid).children() if child.children())
    (member,) = [child for child in fork_server.children() if str(trace) in opened_by(child)]
    no_more_room(member)
    stderr = " ".join(crash.communicate(timeout=240)[1].split())
    assert crash.returncode == Exit.UNKNOWN, stderr
    assert "m1 ended while running (exit code 74): it cannot write its trace" in stderr

    analysis = subprocess.run(
        [sys.executable, "-m", "comparison.cli.main", "analyze", str(tmp_path / "latest")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert analysis.returncode == Exit.USAGE, analysis.stderr
    found, line = analysis.stderr.splitlines()
    assert found == "1 unchanged since the last analysis"
    assert "result.json: File too large. Choose another with --output" in line
