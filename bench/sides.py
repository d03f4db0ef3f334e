"""The two sides: our broker as a user starts it, and Kafka 4.1.1, both on the servers' core.

Both have the same settings. Kafka runs with the options of its own start script; each measure warms it up.
"""

from __future__ import annotations

import io
import os
import pstats
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bench import machine
from bench.children import Child
from comparison.cli.doctor_broker import loop_of
from comparison.cli.state import STATE_VARIABLE
from comparison.originals.brokers import RealBroker
from kernel.errors import EnvironmentFault
from kernel.platform.ports import LOOPBACK
from kernel.platform.processes import start_child, stop_child
from kernel.waiting import wait_until
from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bench.machine import Cores

OURS, KAFKA, MOCK = "ours", "Kafka 4.1.1", "librdkafka's mock"
KAFKA_VERSION = "4.1.1"

#: For both sides. No session ends under load, and a group of 10,000 fits into one record of the offsets topic.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "500",
    "group.max.session.timeout.ms": "1800000",
    "message.max.bytes": "16777216",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
}
#: Java options of kafka-server-start.sh and kafka-run-class.sh of 4.1.1, without those of garbage collection logs.
JAVA_OPTIONS = (
    *("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:-UsePerfData", "-Djava.awt.headless=true"),
)
#: Kafka's defaults; elsewhere our Kafka brokers run with fewer threads.
KAFKA_SETTINGS = {"num.io.threads": "8", "num.network.threads": "3"}


@dataclass(frozen=True)
class Side:
    """One of the servers on loopback, running."""

    name: str
    port: int
    pid: int
    zookeeper: str = ""  #: its connect string, if it has one
    profile: Path | None = None  #: file for its profile, if it is profiled

    def cpu_s(self) -> float:
        return machine.cpu_s(self.pid)

    def memory_mb(self) -> float:
        return machine.memory_mb(self.pid)

    def wait_for_quiet(self) -> None:
        machine.wait_for_quiet(self.pid)

    def longest_turn_ms(self) -> dict[str, float]:
        """Longest turn of our event loop since the last call; empty for Kafka, which has no loop."""
        if self.name != OURS:
            return {}
        figures = loop_of(f"{LOOPBACK}:{self.port}", reset=True).figures
        return {"longest_turn": figures.longest_us / 1000, "longest_collection": figures.longest_collection_us / 1000}

    @contextmanager
    def profiling(self) -> Iterator[None]:
        """Profile what happens inside."""
        if self.profile is None:
            yield
            return
        os.kill(self.pid, signal.SIGUSR1)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGUSR2)
            wait_until(self.profile.exists, 30, "the profile to be written")


class OurBroker:
    """`rebalance-lab broker` as a user starts it, on the servers' core. After `kill` or `stop`, `start` continues with
    its data."""

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        settings: Mapping[str, str],
        *,
        cores: Cores | None = None,
        profile: Path | None = None,
        trace: Path | None = None,
    ) -> None:
        self.port = 0
        self._folder = folder
        self._cores = cores
        self._child: subprocess.Popen[str] | None = None
        self._arguments = ["broker", "--zookeeper", zookeeper, "--port", "0", "--folder", str(folder.parent / "data")]
        self._arguments += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        self._arguments += ["--trace", str(trace)] if trace is not None else []
        self._module = ["bench.profiled", str(profile)] if profile is not None else ["comparison.cli.main"]

    @property
    def pid(self) -> int:
        assert self._child is not None, "the broker was not started"
        return self._child.pid

    def start(self) -> Self:
        """Start it and wait until it serves. Raises `EnvironmentFault` with its log if it does not."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "broker.log"
        with machine.pinned(self._cores.server) if self._cores else nullcontext(), file.open("ab") as log:
            self._child = start_child(
                [sys.executable, "-m", *self._module, *self._arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                environment={**os.environ, STATE_VARIABLE: str(self._folder / "state")},
                text=True,
            )
        assert self._child.stdout is not None
        address = self._child.stdout.readline().strip()
        if not address:
            said = file.read_text(encoding="utf-8", errors="replace")
            raise EnvironmentFault(f"our broker did not start: {said[-2000:]}")
        self.port = int(address.rpartition(":")[2])
        return self

    def stop(self) -> None:
        """Stop it in order. Idempotent."""
        if self._child is not None:
            stop_child(self._child, grace_s=20)
            self._put_away()

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self._child is not None, "the broker was not started"
        self._child.kill()
        self._child.wait()
        self._put_away()

    def _put_away(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        self._child.stdout.close()
        self._child = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def our_side(
    folder: Path,
    settings: Mapping[str, str],
    *,
    cores: Cores | None = None,
    profile: Path | None = None,
    trace: Path | None = None,
) -> Iterator[Side]:
    """Our broker, on the servers' core if there are `cores`, with a ZooKeeper of its own."""
    with (
        EmbeddedZooKeeper(folder / "zookeeper") as zookeeper,
        OurBroker(
            folder / "broker", zookeeper.connect_string, settings, cores=cores, profile=profile, trace=trace
        ) as broker,
    ):
        yield Side(OURS, broker.port, broker.pid, zookeeper.connect_string, profile)


@contextmanager
def kafka_side(folder: Path, cores: Cores, settings: Mapping[str, str]) -> Iterator[Side]:
    """Kafka 4.1.1. Raises `OriginalsUnavailable`, `EnvironmentFault`."""
    folder.mkdir(parents=True)
    broker = RealBroker(KAFKA_VERSION, folder, settings={**KAFKA_SETTINGS, **settings}, java_options=JAVA_OPTIONS)
    with ExitStack() as stack:
        with machine.pinned(cores.server):
            stack.enter_context(broker)
        yield Side(KAFKA, broker.port, broker.pid)


@contextmanager
def mock_side(cores: Cores) -> Iterator[Side]:
    """librdkafka's mock cluster: C, one thread, nothing stored."""
    with ExitStack() as stack:
        with machine.pinned(cores.server):
            child = stack.enter_context(Child("bench.peer"))
        yield Side(MOCK, child.ready["port"], child.pid)


def top_functions(profile: Path, count: int = 25) -> str:
    """The functions with the most time of their own, without the functions that they call."""
    lines = io.StringIO()
    pstats.Stats(str(profile), stream=lines).strip_dirs().sort_stats("tottime").print_stats(count)
    return lines.getvalue()
