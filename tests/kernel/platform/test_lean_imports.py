"""Commands, the processes of their members and benches load no test tools, and nothing that they do not use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path


def test_command_that_loads_the_designs_leaves_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "comparison.cli.main", "scenarios", "--format", "json"]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, timeout=120, check=True)
    assert not list(tmp_path.iterdir())


def test_bench_leaves_no_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "bench", "--help"]
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, timeout=120, check=True)
    assert not list(tmp_path.iterdir())


def test_fork_server_that_loads_members_and_brokers_leaves_no_folder(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()  # it ends after loading, because no child is requested
    descriptor = str(theirs.fileno())
    with theirs:
        command = [sys.executable, "-m", "comparison.scenarios.processes.fork_server", descriptor, str(os.getpid())]
        subprocess.run(command, cwd=tmp_path, pass_fds=[theirs.fileno()], timeout=120, check=True)
    assert not list(tmp_path.iterdir())


def test_clients_of_aiokafka_are_loaded_when_they_are_asked_for(tmp_path: Path) -> None:
    _run(
        """
import kernel.records.records
assert "aiokafka.record" in sys.modules and "aiokafka.client" not in sys.modules, "loads the clients"
from aiokafka import AIOKafkaConsumer, errors
import aiokafka
assert aiokafka.errors is errors and AIOKafkaConsumer.__module__ == "aiokafka.consumer.consumer"
""",
        tmp_path,
    )


def test_numpy_is_loaded_when_it_is_asked_for(tmp_path: Path) -> None:
    _run(
        """
import comparison.scenarios.processes.broker_process, comparison.scenarios.processes.member_process
assert "numpy._core" not in sys.modules, "brokers and members load numpy"
import numpy.linalg
import numpy as np
assert np.linalg.norm([3.0, 4.0]) == 5.0 and np.arange(3).sum() == 3
""",
        tmp_path,
    )


def test_numpy_is_loaded_by_the_import_of_one_of_its_modules(tmp_path: Path) -> None:
    _run("from numpy.random import default_rng\nassert len(default_rng(7).random(3)) == 3", tmp_path)


def test_methods_of_dataclasses_are_as_ever_though_compiled_when_they_are_called(tmp_path: Path) -> None:
    _run(
        """
import copy, pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace

@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    seen: list[int] = field(default_factory=list, compare=False, hash=False)

@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str

    def __post_init__(self):
        assert self.name, "set by then"

@dataclass(slots=True, order=True)
class Loose:
    self: int

initial = Point.__init__
point = Point(1, y=2)
assert Point.__init__ is not initial, "compiled again at each call"
assert Point.__init__.__qualname__ == "Point.__init__" and Point.__init__.__name__ == "__init__"
assert repr(point) == "Point(x=1, y=2, seen=[])"
assert point == Point(1, 2, [5]) and point != Point(2, 2) and point != (1, 2)
assert len({point, Point(1, 2), Point(2, 2)}) == 2
assert replace(point, x=3) == Point(3, 2) and asdict(point) == {"x": 1, "y": 2, "seen": []}
assert pickle.loads(pickle.dumps(point)) == point == copy.copy(point)
for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x")):
    try:
        change()
    except FrozenInstanceError:
        continue
    raise AssertionError("it has changed")
named = Named(x=1, name="n")
assert repr(named) == "Named(x=1, y=0, seen=[], name='n')" and named == replace(named) and named != Point(1)
assert Loose(1) < Loose(self=2) and Loose(1) == Loose(1) and Loose.__hash__ is None
try:
    Point()
except TypeError as error:
    assert "missing 1 required positional argument: 'x'" in str(error), error
""",
        tmp_path,
    )


def _run(code: str, folder: Path) -> None:
    lean = "import sys\nfrom kernel.platform.lean_imports import import_lean\nimport_lean()\n"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", lean + code], cwd=folder, env=environment, timeout=120, check=True)
