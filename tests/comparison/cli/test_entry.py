"""Ctrl-C and SIGTERM while a command starts: it ends with the documented exit code, and without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from comparison.exits import Exit

#: Runs the rest of its arguments as a command, and signals itself when the given module is imported.
PROGRAM = """
import os, sys
from comparison.cli.entry import main

class Signalling:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), int(number))

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
