"""A ZooKeeper server as a child process: configuration, start, log and injected faults."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault, Unavailable
from kernel.platform.class_archives import archive_path, loading_options, recording_options
from kernel.platform.full_disk import full_disk
from kernel.platform.jre import find_java
from kernel.platform.ports import LOOPBACK, require_loopback
from kernel.platform.processes import start_child, stop_child
from kernel.platform.whole_file import opened_to_append, whole_file
from kernel.waiting import WaitTimeout, wait_until
from kernel.zookeeper.counters import server_mode

if TYPE_CHECKING:
    import subprocess
    import threading
    from collections.abc import Mapping

    from kernel.platform.jre import JavaRuntime

#: The server and the jars it needs to start, found by leaving out one at a time. A class path of `jars/*` would more
#: than double the start time.
SERVER_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
#: For the server's log: log4j-api with its own SimpleLogger. log4j-core would take almost half of the CPU time of a
#: start (0.7 instead of 0.4 s with the archive of the classes, medians of 8, in turns), for nothing needed here.
LOGGING_JARS = ("log4j-slf4j2-impl", "log4j-api")
_SIMPLE_LOG = "org.apache.logging.log4j.simplelog"
#: Lines like `2026-01-31 12:00:00,000 INFO Class text` on standard output, which is redirected to the log file.
LOGGING_OPTIONS = (
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    f"-D{_SIMPLE_LOG}.logFile=System.out",
    f"-D{_SIMPLE_LOG}.level=INFO",
    f"-D{_SIMPLE_LOG}.showdatetime=true",
    f"-D{_SIMPLE_LOG}.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
    f"-D{_SIMPLE_LOG}.showShortLogname=true",
    "-Dzookeeper.jmx.log4j.disable=true",
)

_JVM_OPTIONS = (
    # 50,000 partitions (`kernel.broker.cluster.topics`) that two brokers watch filled 256 MB, without the settings of
    # up to 4 KB for each topic. The heap starts small, so unused memory costs nothing.
    "-Xms16m",
    "-Xmx512m",
    "-Xss256k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",  # no file in /tmp, which a kill would leave behind
    "-Dzookeeper.preAllocSize=1024",  # KB; by default each log file takes 64 MB of zeros
    "-Dzookeeper.forceSync=no",  # no fsync before a reply, which matters only in a power failure
)

#: How long a server may take to start; it needs about a second on an idle machine.
START_TIMEOUT_S = 90.0

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The configuration of a server; `lines` go into zoo.cfg unchanged."""

    number: int  #: its id in an ensemble; 1 for a single server
    client_port: int
    lines: Mapping[str, object] = field(default_factory=dict)
    archive_to: Path | None = None  #: where the JVM shall write an archive of its classes when it ends


class PortInUse(EnvironmentFault):
    """Another process listens on the server's port."""


class StartGivenUp(Unavailable):
    """The start was cancelled; the servers are stopped."""


class ServerProcess:
    """A server process, which a scenario can pause, kill and restart."""

    def __init__(self, directory: Path, config: ServerConfig) -> None:
        self.directory = directory
        self.config = config
        self.log_path = directory / "zookeeper.log"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def number(self) -> int:
        return self.config.number

    @property
    def host(self) -> str:
        return LOOPBACK

    @property
    def client_port(self) -> int:
        return self.config.client_port

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.client_port}"

    @property
    def data_dir(self) -> Path:
        """The folder of the transaction log and the snapshots, which is kept after the server stops."""
        return self.directory / "data"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process exists (it may be paused)."""
        return self._child is not None and self._child.poll() is None

    def launch(self) -> None:
        """Start the process without waiting. Raises `EnvironmentFault` if that fails."""
        assert not self.running, f"ZooKeeper server {self.number} is already running"
        require_loopback()
        java = find_java()
        try:
            self._write_configuration()
            with opened_to_append(self.log_path) as log:
                self._child = start_child(
                    [str(java.path), *self._options(java), _MAIN, "zoo.cfg"],
                    cwd=self.directory,
                    stdout=log,
                    stderr=log,
                )
        except OSError as error:
            raise EnvironmentFault(
                f"cannot write ZooKeeper's folder {self.directory}: {error.strerror or error}. "
                "Choose a writable run folder on a disk with free space."
            ) from error

    def wait_ready(self, timeout_s: float, given_up: threading.Event | None = None) -> None:
        """Wait until the server serves clients.

        Raises `PortInUse` or `EnvironmentFault` (with the end of the server's log) if it does not, and `StartGivenUp`
        if another thread sets `given_up`.
        """

        def serving() -> bool:
            if given_up is not None and given_up.is_set():
                raise StartGivenUp(f"ZooKeeper server {self.number} was stopped before it served")
            if not self.running:
                raise self._did_not_start(f"ended with exit code {self._exit_code()}")
            return self.mode() is not None

        try:
            wait_until(serving, timeout_s, f"ZooKeeper server {self.number} to serve", every_s=0.01)
        except WaitTimeout:
            raise self._did_not_start(f"did not serve within {timeout_s:g} s") from None

    def mode(self) -> str | None:
        """standalone, leader or follower; None if it does not serve, after a second if it is paused.

        A leader that was paused and replaced still reports leader for half a second after it resumes.
        """
        return server_mode(LOOPBACK, self.client_port, timeout_s=1.0)

    def pause(self) -> None:
        """SIGSTOP: the process keeps its connections and ports but does nothing."""
        self._running().send_signal(signal.SIGSTOP)
        # `send_signal` returns before the process has stopped.
        wait_until(lambda: _stopped(self.pid), 5, f"ZooKeeper server {self.number} to stop", every_s=0.001)

    def resume(self) -> None:
        """Let the server's process go on (SIGCONT)."""
        self._running().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait for the process to end."""
        child = self._running()
        child.kill()
        child.wait()

    def terminate(self) -> None:
        """SIGTERM, without waiting; `stop` waits."""
        if self.running:
            self._running().terminate()

    def stop(self, *, grace_s: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after `grace_s` if needed. Idempotent; wakes a paused server."""
        if self._child is not None:
            stop_child(self._child, grace_s=grace_s)

    def restart(self) -> None:
        """Restart the server with the same ports and data, and wait until it serves."""
        self.stop()
        self.launch()
        self.wait_ready(START_TIMEOUT_S)

    def log_tail(self, lines: int = 15) -> str:
        """The end of the server's log; empty if there is none."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 16384))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._child is not None, f"ZooKeeper server {self.number} was not started"
        return self._child

    def _exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def _did_not_start(self, what: str) -> EnvironmentFault:
        tail = self.log_tail()
        self.stop()
        message = f"ZooKeeper server {self.number} {what}"
        if "Address already in use" in tail:
            return PortInUse(
                f"{message}: port {self.client_port} or one of its other ports is in use. Choose another port."
            )
        if (full := full_disk(self.directory)) is not None:
            return full
        logged = f"end of its log {self.log_path}:\n{tail}" if tail else f"its log {self.log_path} is empty"
        free_mb = shutil.disk_usage(self.directory).free // 2**20
        return EnvironmentFault(f"{message} ({free_mb} MB free in its folder); {logged}")

    def _write_configuration(self) -> None:
        for directory in (self.data_dir, self.directory / "tmp"):
            directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": "data",
            "clientPort": self.client_port,
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": 0,
            **self.config.lines,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        for path, content in ((self.directory / "zoo.cfg", text), (self.data_dir / "myid", f"{self.number}\n")):
            with whole_file(path) as file:
                file.write_text(content, encoding="utf-8")

    def _options(self, java: JavaRuntime) -> list[str]:
        archive_to = self.config.archive_to
        return [
            *_JVM_OPTIONS,
            *(loading_options(java, archive_of(java)) if archive_to is None else recording_options(archive_to)),
            *LOGGING_OPTIONS,
            "-Djava.io.tmpdir=tmp",  # where snappy unpacks a library
            "-cp",
            os.pathsep.join(str(jar) for jar in jars(*SERVER_JARS, *LOGGING_JARS)),
        ]


def archive_of(java: JavaRuntime) -> Path:
    """Where the archive of the server's classes is or would be for this Java: 23 MB (`kernel.zookeeper.training`)."""
    found = jars(*SERVER_JARS, *LOGGING_JARS)
    return archive_path("zookeeper", found[0].stem.removeprefix("zookeeper-"), java, [str(jar) for jar in found])


def jars(*names: str) -> list[Path]:
    """The named jars of the PySpark package, found without importing it (which is slow).

    Raises `EnvironmentFault` if PySpark or a jar is missing.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("PySpark, which contains ZooKeeper, is not installed. Run 'pip install pyspark==4.3.0'")
    folder = Path(spec.origin).parent / "jars"
    found = []
    for name in names:
        matches = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not matches:
            raise EnvironmentFault(
                f"{folder} has no {name}-*.jar: this PySpark does not contain ZooKeeper. "
                "Run 'pip install --force-reinstall pyspark==4.3.0'."
            )
        found.append(matches[-1])
    return found


def require_free(port: int) -> None:
    """Raise `PortInUse` if the loopback port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PortInUse(
                f"ZooKeeper cannot use port {port}: {error.strerror}. Choose another port, or stop what uses it."
            ) from error


def _stopped(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        if not Path("/proc/self/stat").exists():
            return True  # there is no /proc on this system, so assume that the signal worked
        raise Unavailable(f"process {pid} has ended") from error
    return status.rpartition(")")[2].split()[0] == "T"
