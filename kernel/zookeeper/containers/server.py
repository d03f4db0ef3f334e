"""A ZooKeeper server in a container, with the operations of one that is a child process (`kernel.zookeeper.server`).

Its client port is published on loopback, always on the same port, so that it survives a restart. Its transaction log
and its output are copied into the run folder when it is removed.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.errors import EnvironmentFault
from kernel.platform.ports import LOOPBACK
from kernel.waiting import WaitTimeout, wait_until
from kernel.zookeeper.containers.engine import libraries, translated
from kernel.zookeeper.containers.ownership import LABEL, owner
from kernel.zookeeper.counters import server_mode
from kernel.zookeeper.server import START_TIMEOUT_S, StartGivenUp

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

CLIENT_PORT = 2181
QUORUM_PORT, ELECTION_PORT = 2888, 3888
#: Where both images keep the transaction log: the official image's own default.
LOG_DIR = "/datalog"

_STOP_S = 5
_ENDED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """What a server's container is made of."""

    number: int
    image: str
    client_port: int  #: on this machine
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = ""  #: the name of a network of ours; '' for the engine's default one
    address: str = ""  #: in that network


class ServerContainer:
    """A container that a scenario can pause, kill, restart and take off its network."""

    def __init__(self, directory: Path, config: ContainerConfig) -> None:
        self.directory = directory
        self.config = config
        self.log_path = directory / "zookeeper.log"
        self.host, self.client_port = LOOPBACK, config.client_port
        self._found = False  #: whether it has served at that address
        self._container: Any = None  #: testcontainers'; its `get_wrapped_container` is docker's

    @property
    def number(self) -> int:
        return self.config.number

    @property
    def address(self) -> str:
        return f"{self.host}:{self.client_port}"

    @property
    def data_dir(self) -> Path:
        """The folder of the transaction log, once it has been removed."""
        return self.directory / "data"

    @property
    def running(self) -> bool:
        """Whether the container runs (it may be paused)."""
        return self._created() is not None and self._status() in ("running", "paused")

    def launch(self) -> None:
        """Create or start the container without waiting. Raises `EnvironmentFault`, `PortInUse`."""
        with translated(f"start {self.config.image}"):
            if (created := self._created()) is not None:
                created.start()
                return
            docker, module = libraries()
            container = module.DockerContainer(self.config.image)
            container.with_kwargs(labels={LABEL: owner()}, **self._in_network(docker))
            container.with_envs(**self.config.environment)
            # Only on loopback, since the server has no authentication.
            container.ports[f"{CLIENT_PORT}/tcp"] = (LOOPBACK, self.config.client_port)
            self._container = container
            container.start()

    def wait_ready(self, timeout_s: float, given_up: threading.Event | None = None) -> None:
        """Wait until the server serves clients. Raises `EnvironmentFault` (with the end of its log), `StartGivenUp`."""

        def serving() -> bool:
            if given_up is not None and given_up.is_set():
                raise StartGivenUp(f"ZooKeeper server {self.number} was stopped before it served")
            if self._status() == "exited":
                raise self._does_not_serve("ended")
            for host, port in self._candidates():
                if server_mode(host, port, timeout_s=1.0) is not None:
                    self.host, self.client_port, self._found = host, port, True
                    return True
            return False

        try:
            wait_until(serving, timeout_s, f"ZooKeeper server {self.number} to serve", every_s=0.05)
        except WaitTimeout:
            raise self._does_not_serve(f"did not serve within {timeout_s:g} s") from None

    def mode(self) -> str | None:
        return server_mode(self.host, self.client_port, timeout_s=1.0)

    def pause(self) -> None:
        """`docker pause`: the engine's freezer stops all of its processes, as SIGSTOP does one."""
        with translated(f"pause ZooKeeper server {self.number}"):
            self._wrapped.pause()

    def resume(self) -> None:
        with translated(f"unpause ZooKeeper server {self.number}"):
            self._wrapped.unpause()

    def kill(self) -> None:
        """`docker kill`: SIGKILL, and wait for the container to end."""
        with translated(f"kill ZooKeeper server {self.number}"):
            self._wrapped.kill()
        wait_until(lambda: self._status() == "exited", _ENDED_S, f"ZooKeeper server {self.number} to end")

    def stop(self) -> None:
        """`docker stop`: SIGTERM, then SIGKILL if needed. Idempotent; wakes a paused server, and keeps its data."""
        if self._created() is None:
            return
        with translated(f"stop ZooKeeper server {self.number}"):
            if self._status() == "paused":
                self._wrapped.unpause()
            self._wrapped.stop(timeout=_STOP_S)

    def restart(self) -> None:
        """Restart the server with the same addresses and data, and wait until it serves."""
        self.stop()
        self.launch()
        self.wait_ready(START_TIMEOUT_S)

    def disconnect(self) -> None:
        """Take the container off its network: the others get no more packets, and its published port is closed."""
        with translated(f"disconnect ZooKeeper server {self.number}"):
            self._network().disconnect(self._wrapped)

    def connect(self) -> None:
        """Put it back, at the same address."""
        with translated(f"connect ZooKeeper server {self.number}"):
            address = {"ipv4_address": self.config.address} if self.config.address else {}
            self._network().connect(self._wrapped, **address)

    def log_tail(self, lines: int = 15) -> str:
        """The end of the container's output; empty if it cannot be read."""
        with contextlib.suppress(EnvironmentFault), translated("read a log"):
            if (created := self._created()) is not None:
                return str(created.logs(tail=lines).decode("utf-8", "replace")).rstrip("\n")
        return ""

    def keep_files(self) -> None:
        """Copy the transaction log and the output of a stopped container into the run folder.

        Without a transaction log there is none in the folder: the server ended before its first transaction.
        """
        if self._created() is None:
            return
        docker, _ = libraries()
        logs = self.data_dir / "version-2"
        logs.mkdir(parents=True, exist_ok=True)
        with translated(f"read the files of ZooKeeper server {self.number}"):
            self.log_path.write_bytes(self._wrapped.logs())
            try:
                chunks, _ = self._wrapped.get_archive(f"{LOG_DIR}/version-2")
            except docker.errors.NotFound:
                return
            archive = io.BytesIO(b"".join(chunks))
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                name = member.name.rpartition("/")[2]
                if member.isfile() and name.startswith("log.") and (content := tar.extractfile(member)) is not None:
                    (logs / name).write_bytes(content.read())

    def remove(self) -> None:
        """Remove the container with its volumes, whatever its state. Idempotent."""
        container, self._container = self._container, None
        if container is None:
            return
        docker, _ = libraries()
        # It may have been removed already, or the engine stopped.
        with contextlib.suppress(docker.errors.APIError, OSError):
            container.stop(force=True, delete_volume=True)

    def _created(self) -> Any:
        """Docker's container; None before there is one."""
        if self._container is None:
            return None
        with contextlib.suppress(importlib.import_module("testcontainers.core.exceptions").ContainerStartException):
            return self._container.get_wrapped_container()
        return None

    @property
    def _wrapped(self) -> Any:
        created = self._created()
        assert created is not None, f"ZooKeeper server {self.number} was not started"
        return created

    def _status(self) -> str:
        docker, _ = libraries()
        wrapped = self._wrapped
        try:
            wrapped.reload()
        except (docker.errors.APIError, OSError):
            return "gone"
        return str(wrapped.status)

    def _in_network(self, docker: ModuleType) -> dict[str, Any]:
        if not self.config.network:
            return {}
        endpoint = docker.types.EndpointConfig("1.40", ipv4_address=self.config.address)
        return {"network": self.config.network, "networking_config": {self.config.network: endpoint}}

    def _network(self) -> Any:
        return self._wrapped.client.networks.get(self.config.network or "bridge")

    def _candidates(self) -> list[tuple[str, int]]:
        """Possible addresses of the server: its published port or, from within another container, its own address."""
        if self._found:
            return [(self.host, self.client_port)]
        network = self._wrapped.attrs["NetworkSettings"]
        attached = [attachment.get("IPAddress") for attachment in (network.get("Networks") or {}).values()]
        return [(LOOPBACK, self.config.client_port), *((address, CLIENT_PORT) for address in attached if address)]

    def _does_not_serve(self, what: str) -> EnvironmentFault:
        return EnvironmentFault(
            f"ZooKeeper in a container of {self.config.image} {what}; end of its log:\n{self.log_tail()}"
        )
