"""Ctrl-C and SIGTERM while a command loads modules: it ends with the documented exit code, and without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from comparison.cli.interrupts import interrupts_wait
from comparison.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

#: Runs the rest of its arguments as a command, and signals itself when the given module is imported.
PROGRAM = """
import os, sys
from comparison.cli.entry import main

class Signalling:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == wanted:
            exec("os.kill(os.getpid(), int(number))")  # as a dataclass makes its methods

_, wanted, number, *arguments = sys.argv
sys.argv = ["rebalance-lab", *arguments]
sys.meta_path.insert(0, Signalling)
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("click", ""),
        ("comparison.cli.scenarios", ""),
        ("comparison.scenarios.plan.catalogue", ""),
        ("rich._emoji_codes", "rebalance-lab: interrupted"),  # imported by the command at work
    ],
)
def test_a_signal_ends_a_command_that_is_starting(number: signal.Signals, module: str, message: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, str(int(number)), "scenarios"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr.strip(), ended.stdout) == (Exit.INTERRUPTED, message, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    "module",
    ["pyspark", "comparison.pipeline.written"],
    ids=["before the JVM is started", "while the JVM starts"],
)
def test_a_signal_ends_an_analysis_that_loads_modules(tmp_path: Path, number: signal.Signals, module: str) -> None:
    """As a module: interrupted in `exec`, Python would die of SIGINT in spite of the exit code."""
    (tmp_path / "signalled.py").write_text(PROGRAM)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    ended = subprocess.run(
        [sys.executable, "-m", "signalled", module, str(int(number)), "analyze", "run"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stderr.strip(), ended.stdout) == (
        Exit.INTERRUPTED,
        "rebalance-lab: interrupted",
        "",
    )


def test_signals_wait_until_the_modules_are_loaded() -> None:
    loaded = []

    def load() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            loaded.append("modules")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert loaded == ["modules"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
