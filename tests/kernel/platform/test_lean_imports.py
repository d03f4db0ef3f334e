"""Commands, the processes of their members and benches load no test tools, and no clients of aiokafka's."""

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
    code = """
import sys
from kernel.platform.lean_imports import import_lean
import_lean()
import kernel.records.records
assert "aiokafka.record" in sys.modules and "aiokafka.client" not in sys.modules, "loads the clients"
from aiokafka import AIOKafkaConsumer, errors
import aiokafka
assert aiokafka.errors is errors and AIOKafkaConsumer.__module__ == "aiokafka.consumer.consumer"
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, timeout=120, check=True)
