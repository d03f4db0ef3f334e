"""A machine without an IPv4 loopback, as a namespace is before its interface is up: an error at once that says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.cli.state import STATE_VARIABLE
from comparison.exits import Exit

UNSHARED = ("unshare", "--map-root-user", "--net")
COMMANDS = [
    "run join --design eager",
    "playground",
    "fuzz --schedules 1",
    "zookeeper start --detach",
    "broker --zookeeper 127.0.0.1:2181",
    "analyze analysed",
]


@pytest.fixture(scope="module")
def _without_a_loopback() -> None:
    if shutil.which(UNSHARED[0]) is None or subprocess.run([*UNSHARED, "true"], check=False).returncode:
        pytest.skip("needs a network namespace, which this system does not allow")


@pytest.mark.usefixtures("_without_a_loopback")
def test_missing_loopback_is_named_by_each_command_that_needs_it(tmp_path: Path) -> None:
    (tmp_path / "analysed").mkdir()
    (tmp_path / "analysed" / "run.json").write_text("{}")
    for command in COMMANDS:
        ended = subprocess.run(
            [*UNSHARED, sys.executable, "-m", "comparison.cli.main", *command.split()],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, STATE_VARIABLE: str(tmp_path / "state")},
        )
        last = ended.stderr.splitlines()[-1]
        assert (ended.returncode, last) == (
            Exit.USAGE,
            "Error: 127.0.0.1 cannot be used: Network is unreachable. Bring the loopback interface up, as "
            "`ip link set lo up` does.",
        ), f"{command}: {ended.stderr}"
