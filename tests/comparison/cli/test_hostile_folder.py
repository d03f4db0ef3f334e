"""Commands in a folder full of modules that have the names of ours and of Python's: none of them is run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from comparison.exits import Exit
from kernel.platform.interpreter import PYTHON, SAFE_PATH, bare_command, module_command
from kernel.waiting import wait_until
from kernel.zookeeper.containers.ownership import DISMISSED
from tests.comparison.pipeline.test_bad_runs import run_in as write_run_in
from tests.support.commands.terminals import Terminals, started_by_a_shell

#: The only one that `python -m rebalance_lab` must find where the user stands, if it is there.
_ASKED_FOR = "rebalance_lab"
_OURS = ("kernel", "zkconsumer", "coordinator", "comparison")
#: What Python itself looks for as it starts.
_AT_THE_START = ("sitecustomize", "usercustomize")
_GROUPS = ("rebalance_lab.scenarios", "rebalance_lab.assignors")
_RUN = "modules-that-were-run"


def make_hostile(folder: Path) -> None:
    """Put modules with the names of the standard library's, of ours and of all installed packages into a folder.

    A package's metadata is there as well, which plugs one of them in.
    """
    marker = folder / _RUN
    for name in _names():
        says = f"with open({str(marker)!r}, 'a') as file:\n    print({name!r}, file=file)\n"
        (folder / f"{name}.py").write_text(f"{says}raise ImportError('the module of a stranger was run')\n")
    info = folder / "plugged-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\nplugged = plugged\n" for group in _GROUPS))


@cache
def _names() -> set[str]:
    installed = {name for name in packages_distributions() if name.isidentifier()}
    return {*sys.stdlib_module_names, *installed, *_OURS, *_AT_THE_START, "plugged"} - {_ASKED_FOR}


def run_in(folder: Path) -> list[str]:
    """The folder's modules that were run."""
    marker = folder / _RUN
    return marker.read_text().split() if marker.exists() else []


TIMEOUT_S = 300


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    make_hostile(tmp_path)
    return tmp_path


@pytest.fixture
def terminals(hostile: Path) -> Iterator[Terminals]:
    opened = Terminals(hostile, started_by_a_shell)
    yield opened
    opened.close()


def test_the_folder_is_hostile(hostile: Path) -> None:
    """Without what keeps its modules out, they are run."""
    environment = {name: value for name, value in os.environ.items() if name not in SAFE_PATH}
    command = [PYTHON, "-m", "comparison.cli.main", "scenarios"]
    ended = subprocess.run(command, cwd=hostile, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode != 0
    assert run_in(hostile)


@pytest.mark.parametrize(
    "command",
    [
        module_command("comparison.cli.main", "scenarios"),
        module_command("comparison.cli.attached", str(os.getpid()), "scenarios"),
        module_command("comparison.originals.download", warnings="ignore"),
        module_command("comparison.originals.host_process", "[]", "[]"),
        module_command("kernel.zookeeper.containers.guard", "nobody"),
        bare_command("import random, json, ctypes"),
        [PYTHON, "-m", "rebalance_lab", "assign", "--strategy", "all", "--member", "a=t", "--topic", "t=2"],
    ],
    ids=lambda command: " ".join(command[1:4]),
)
def test_no_child_runs_a_module_of_the_folder(hostile: Path, command: list[str]) -> None:
    """Whether it has what it needs to go on, or not; the guard of containers would look for an engine for a minute."""
    ended = subprocess.run(command, cwd=hostile, input=DISMISSED, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert b"stranger" not in ended.stderr
    assert run_in(hostile) == []


def test_the_fork_server_runs_no_module_of_the_folder(hostile: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()  # it ends after loading, because no child is requested
    with theirs:
        command = module_command("comparison.scenarios.processes.fork_server", str(theirs.fileno()), str(os.getpid()))
        subprocess.run(command, cwd=hostile, pass_fds=[theirs.fileno()], timeout=TIMEOUT_S, check=True)
    assert run_in(hostile) == []


def test_servers_and_clients_by_hand_run_no_module_of_the_folder(hostile: Path, terminals: Terminals) -> None:
    for arguments in (
        ("zookeeper", "start", "--detach", "--port", "0"),
        ("broker", "--detach", "--port", "0"),
        ("topic", "create", "orders", "--partitions", "2"),
        ("produce", "--topic", "orders", "--count", "4", "--rate", "1000"),
    ):
        ended = terminals.run(*arguments)
        assert ended.returncode == 0, ended.stderr
    child, output = terminals.open(
        *("consume", "--design", "eager", "--group", "g", "--topic", "orders", "--print", "records"),
        *("--set", "auto.offset.reset=earliest", "--format", "json"),
    )
    wait_until(lambda: output.read_text().count('"record"') == 4, 120, output.read_text)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0
    assert run_in(hostile) == []


def test_an_analysis_in_a_strangers_run_folder_runs_no_module_of_it(hostile: Path, terminals: Terminals) -> None:
    """Spark's driver and its workers, which the JVM starts."""
    write_run_in(hostile)
    ended = terminals.run(
        "analyze", ".", "--master", "local[1]", "--memory", "600m", "--spark-conf", "spark.ui.enabled=false"
    )
    assert ended.returncode == Exit.AS_EXPECTED, ended.stderr
    assert (hostile / "report.html").is_file()
    assert run_in(hostile) == []
