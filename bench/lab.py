"""The measured servers, each in a process of its own: our broker with its coordinator, and the peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Server:
    """A server on loopback whose CPU time can be read."""

    name: str
    port: int
    pid: int
    zookeeper: str = ""  #: its connect string, if it has one

    def cpu_s(self) -> float:
        """User and system seconds of the process so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@contextmanager
def our_broker(run_dir: Path, settings: Mapping[str, str]) -> Iterator[Server]:
    """One broker on an embedded ZooKeeper; it traces to the run folder as in a scenario."""
    run_dir.mkdir(parents=True)
    with EmbeddedZooKeeper(run_dir / "zookeeper") as zookeeper:
        config = {
            "process": "broker-1",
            "design": "eager",
            "run": "bench",
            "scenario": "bench",
            "seed": 0,
            "trace": str(run_dir / "broker-1.jsonl"),
            "zookeeper": zookeeper.connect_string,
            "data_dir": str(run_dir / "data"),
            "settings": {"broker.id": "1", "port": "0", "offsets.topic.replication.factor": "1", **settings},
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "comparison.scenarios.processes.broker_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "REBALANCE_LAB_PARENT": str(os.getpid())},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            child.stdin.write(json.dumps(config) + "\n")
            child.stdin.flush()
            ready = json.loads(child.stdout.readline() or "{}")
            if ready.get("event") != "ready":
                raise RuntimeError(f"the broker did not start: {ready}")
            try:
                yield Server("ours", ready["port"], child.pid, zookeeper.connect_string)
            finally:
                child.stdin.close()
                child.wait(timeout=20)


@contextmanager
def mock_cluster() -> Iterator[Server]:
    """librdkafka's mock cluster."""
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        try:
            yield Server("librdkafka mock", int(child.stdout.readline()), child.pid)
        finally:
            child.stdin.close()
            child.wait(timeout=20)
