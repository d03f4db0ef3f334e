"""`--zookeeper docker`: run a server in a container, using testcontainers.

The image is the official one, unless the environment variable ZOOKEEPER_IMAGE names another, such as the one that
`docker/build_image.py` builds without a registry. The container publishes its port on loopback and is removed at the
end, at the latest by `atexit`. A killed run leaves its container behind; the next run that uses Docker finds it by its
label and removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import socket
from typing import TYPE_CHECKING, Any, Self

import psutil

from kernel.errors import EnvironmentFault
from kernel.trace.writer import boot_id
from kernel.waiting import WaitTimeout, wait_until
from kernel.zookeeper.counters import server_mode

if TYPE_CHECKING:
    from types import ModuleType

OFFICIAL_IMAGE = "zookeeper:3.9.5"
IMAGE_VARIABLE = "ZOOKEEPER_IMAGE"

#: The label of our containers. Its value identifies the owner: boot id, process id and start time of the process.
LABEL = "org.rebalance-lab.zookeeper"

_CLIENT_PORT = 2181
_START_TIMEOUT_S = 60.0


class DockerZooKeeper:
    """A server in a container, with the same limits on session timeouts as the embedded one."""

    def __init__(
        self,
        image: str | None = None,
        *,
        tick_ms: int = 500,
        min_session_ms: int = 200,
        max_session_ms: int = 60_000,
    ) -> None:
        self.image = image or os.environ.get(IMAGE_VARIABLE) or OFFICIAL_IMAGE
        self.addresses: tuple[tuple[str, int], ...] = ()
        self._environment = {
            "ZOO_TICK_TIME": str(tick_ms),
            "ZOO_MAX_CLIENT_CNXNS": "0",
            "ZOO_ADMINSERVER_ENABLED": "false",
            "ZOO_4LW_COMMANDS_WHITELIST": "*",
            "ZOO_CFG_EXTRA": f"minSessionTimeout={min_session_ms} maxSessionTimeout={max_session_ms}",
        }
        self._container: Any = None

    @property
    def connect_string(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def start(self) -> Self:
        """Start the container and wait until the server serves.

        Raises `EnvironmentFault` if testcontainers is not installed, no engine answers, the image is neither present
        nor available, or the server does not serve (with the end of its log).
        """
        docker, container_module = _libraries()
        client = engine()
        try:
            remove_abandoned(client)
            self._get_image(docker, client)
        finally:
            client.close()
        container = container_module.DockerContainer(self.image, labels={LABEL: owner()})
        container.with_envs(**self._environment)
        # A tuple of one means any port of that address: only loopback, since the server has no authentication.
        container.ports[f"{_CLIENT_PORT}/tcp"] = ("127.0.0.1",)
        self._container = container
        atexit.register(self.stop)
        try:
            container.start()
            self.addresses = (self._wait_serving(),)
        except docker.errors.APIError as error:
            self.stop()
            raise EnvironmentFault(f"Docker cannot start {self.image}: {error.explanation or error}") from error
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove the container and its data. Idempotent."""
        container, self._container = self._container, None
        if container is None:
            return
        atexit.unregister(self.stop)
        docker, _ = _libraries()
        # It may have been removed already, or the engine stopped.
        with contextlib.suppress(docker.errors.APIError, OSError):
            container.stop(force=True, delete_volume=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait_serving(self) -> tuple[str, int]:
        wrapped = self._container.get_wrapped_container()

        def serving() -> tuple[str, int] | None:
            wrapped.reload()
            for host, port in _candidates(wrapped.attrs["NetworkSettings"]):
                if server_mode(host, port, timeout_s=1.0) is not None:
                    return host, port
            if wrapped.status == "exited":
                raise self._does_not_serve("ended")
            return None

        try:
            address = wait_until(serving, _START_TIMEOUT_S, "ZooKeeper in a container", every_s=0.05)
        except WaitTimeout:
            raise self._does_not_serve(f"did not serve within {_START_TIMEOUT_S:g} s") from None
        assert address is not None
        return address

    def _does_not_serve(self, what: str) -> EnvironmentFault:
        log = self._container.get_wrapped_container().logs(tail=15).decode("utf-8", "replace")
        return EnvironmentFault(f"ZooKeeper in a container of {self.image} {what}; end of its log:\n{log}")

    def _get_image(self, docker: ModuleType, client: Any) -> None:
        try:
            client.images.get(self.image)
        except docker.errors.ImageNotFound:
            try:
                client.images.pull(self.image)
            except docker.errors.APIError as error:
                raise EnvironmentFault(
                    f"Docker has no image {self.image} and cannot pull it ({error.explanation or error}). Build one "
                    f"without a registry with 'python docker/build_image.py' and set {IMAGE_VARIABLE} to its name, or "
                    "omit --zookeeper docker: the embedded server needs no Docker."
                ) from error


def _candidates(network: dict[str, Any]) -> list[tuple[str, int]]:
    """Possible addresses of the server: its published port or, from within another container, its own address."""
    published = (network.get("Ports") or {}).get(f"{_CLIENT_PORT}/tcp") or []
    found = [("127.0.0.1", int(binding["HostPort"])) for binding in published]
    attached = [attachment.get("IPAddress") for attachment in (network.get("Networks") or {}).values()]
    return found + [(address, _CLIENT_PORT) for address in attached if address]


def owner() -> str:
    """A label value that identifies this process uniquely."""
    return f"{boot_id()}/{os.getpid()}/{psutil.Process().create_time():.2f}"


def remove_abandoned(client: Any) -> list[str]:
    """Remove containers whose owners on this machine have ended; returns their ids."""
    removed = []
    for container in client.containers.list(all=True, filters={"label": LABEL}):
        if _abandoned(container.labels.get(LABEL, "")):
            container.remove(force=True, v=True)
            removed.append(str(container.id))
    return removed


def _abandoned(label: str) -> bool:
    boot, _, process = label.partition("/")
    pid, _, started = process.partition("/")
    if boot != boot_id() or not pid.isdigit():
        return False  # from another machine or an earlier boot, so the owner is unknown
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != started
    except psutil.NoSuchProcess:
        return True


def engine() -> Any:
    """A client of the Docker engine. Raises `EnvironmentFault`."""
    docker, _ = _libraries()
    try:
        _probe()
        client = docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise EnvironmentFault(
            f"no Docker engine answers ({error}): start one, or omit --zookeeper docker (the embedded server needs "
            "none)."
        ) from error
    return client


def _probe() -> None:
    """Raise OSError if nothing listens on the engine's socket. docker's own client would leak a socket."""
    host = os.environ.get("DOCKER_HOST", "").strip() or "unix:///var/run/docker.sock"
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            probe.connect(host.removeprefix("unix://"))


def _libraries() -> tuple[ModuleType, ModuleType]:
    """Import docker and testcontainers.core.container late: they are rarely needed and slow to import."""
    # Ryuk, its reaper, would need another image and outlive us. The variable is read during the import.
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    try:
        return importlib.import_module("docker"), importlib.import_module("testcontainers.core.container")
    except ImportError as error:
        raise EnvironmentFault(
            "--zookeeper docker needs the package testcontainers: run 'pip install testcontainers'."
        ) from error
