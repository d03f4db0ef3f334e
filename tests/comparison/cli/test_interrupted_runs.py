"""SIGINT, SIGTERM and `kill -9` during a run and its analysis: both end quietly and leave nothing behind.

Each command has its own temporary folder and session, so that its remains differ from those of other programs.
"""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from comparison.exits import Exit
from comparison.pipeline.spark.session import SCRATCH_PREFIX
from comparison.run_folder import run_dirs_in
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.waiting import wait_until
from tests.support.commands.ended import all_ended

#: The command, held just before it puts its tables in place, so that a late signal comes before its end, too.
HELD = """
import threading
from comparison.cli.entry import main
from comparison.pipeline import written

written.publish = lambda folder: threading.Event().wait(600)
main()
"""


class Command:
    """A running command with its own temporary folder."""

    def __init__(self, folder: Path, *arguments: str, module: str = "comparison.cli.main") -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self._output_path = folder / "output.txt"
        with self._output_path.open("w") as output:
            self.child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )

    def output(self) -> str:
        return self._output_path.read_text()

    def descendants(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.child.pid).children(recursive=True)
        return []

    def jvms(self) -> int:
        """How many JVMs the command has, not counting one that ends meanwhile."""
        count = 0
        for process in self.descendants():
            with contextlib.suppress(psutil.NoSuchProcess):
                count += process.name() == "java"
        return count

    def scratch_folders(self) -> list[Path]:
        return list(self.temporary.glob(f"{SCRATCH_PREFIX}*"))

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition while the command runs."""
        wait_until(lambda: condition() or self.child.poll() is not None, 120, lambda: f"the command: {self.output()}")
        assert self.child.poll() is None, self.output()

    def end(self, by: signal.Signals) -> None:
        """Send the signal, and assert that soon nothing of the command is left."""
        began = self.descendants()
        self.child.send_signal(by)
        self.child.wait(120)
        wait_until(lambda: all_ended(began), 120, lambda: f"{began} to end")
        wait_until(lambda: not self.scratch_folders(), 120, lambda: f"{self.scratch_folders()} to be removed")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    # A test that fails half-way must not leave a command behind.
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if str(tmp_path) in child.environ().get("TMPDIR", ""):
                child.kill()
                child.wait()


@pytest.mark.parametrize("by", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_run_ends_without_an_analysis_and_keeps_its_traces(folder: Path, by: signal.Signals) -> None:
    command = Command(folder, "run", "join", "--design", "eager", "--seed", "1")
    command.until(lambda: len(command.descendants()) > 2)  # members and brokers are starting
    command.end(by)
    assert command.child.returncode == Exit.INTERRUPTED
    assert "Traceback" not in command.output()
    assert "on Spark" not in command.output()
    kept = command.output().splitlines()[-1].rpartition("rebalance-lab analyze ")[2]
    (run_dir,) = run_dirs_in(folder / kept)
    ended, marker = (run_dir / "trace" / "runner.jsonl").read_text().splitlines()[-2:]
    assert marker.startswith('{"end":')
    assert '"run_ended"' in ended
    assert '"interrupted"' in ended


@pytest.mark.parametrize(
    ("by", "at", "master"),
    [
        pytest.param(signal.SIGINT, "executors", "local-cluster[1,1,1024]", marks=pytest.mark.long),
        (signal.SIGTERM, "start", "local[*]"),
        (signal.SIGKILL, "work", "local[*]"),
        pytest.param(signal.SIGINT, "work", "local[*]", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, "start", "local[*]", marks=pytest.mark.long),
    ],
)
def test_an_interrupted_analysis_leaves_no_process_and_no_folder(
    folder: Path, by: signal.Signals, at: str, master: str
) -> None:
    trace = folder / "runs" / "trace"
    trace.mkdir(parents=True)
    (trace.parent / "run.json").write_text("{}")
    identity = TraceIdentity(run="r", scenario="join", design="eager", role=Role.RUNNER, process="runner")
    with contextlib.closing(TraceWriter(trace / "runner.jsonl", identity)) as tracer:
        tracer.emit("run_started", parameters={})
    (folder / "held.py").write_text(HELD)
    command = Command(folder, "analyze", "runs", "--master", master, module="held")
    command.until(command.scratch_folders)
    if at == "work":
        (scratch,) = command.scratch_folders()
        command.until((scratch / "scratch").is_dir)  # made by Spark's own start
    elif at == "executors":
        command.until(lambda: command.jvms() > 1)
    command.end(by)
    assert command.child.returncode == (-by if by is signal.SIGKILL else Exit.INTERRUPTED)
    assert "Traceback" not in command.output()
    assert not [path for path in (folder / "runs").rglob("result.json*") if path.is_file()]


# -- two Ctrl-C on a terminal ------------------------------------------------------------------------------------------

SHOW, HIDE = b"\x1b[?25h", b"\x1b[?25l"

#: A run that never ends, with the command's own signals and its live line, interrupted twice.
PROGRAM = """
import asyncio, os, signal
from comparison.interruptible import interrupted_by_signals
from comparison.screen.progress import RunProgress

async def runs(progress):
    with interrupted_by_signals(progress) as interrupted:
        progress.started("a run")
        os.kill(os.getpid(), signal.SIGINT)
        await interrupted.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

with RunProgress(1) as progress:
    asyncio.run(runs(progress))
"""


def test_the_second_ctrl_c_restores_the_cursor() -> None:
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stderr=theirs, env={**os.environ, "TERM": "xterm-256color"}
        )
        os.close(theirs)
        shown = b""
        while piece := read(ours):
            shown += piece
        assert child.wait(120) == Exit.INTERRUPTED
    finally:
        os.close(ours)
    assert b"interrupted: stopping" in shown
    assert HIDE in shown
    assert shown.rindex(SHOW) > shown.rindex(HIDE)


def read(terminal: int) -> bytes:
    """Nothing once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
