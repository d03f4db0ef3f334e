"""The Docker engine: a client of it, its image of ZooKeeper, and its errors in our words.

The image is the official one, unless the environment variable ZOOKEEPER_IMAGE names another, such as the one that
`docker/build_image.py` builds without a registry.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from typing import TYPE_CHECKING, Any

from kernel.errors import EnvironmentFault
from kernel.zookeeper.server import PortInUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

OFFICIAL_IMAGE = "zookeeper:3.9.5"
IMAGE_VARIABLE = "ZOOKEEPER_IMAGE"

_IN_USE = ("port is already allocated", "address already in use")


def chosen_image() -> str:
    return os.environ.get(IMAGE_VARIABLE) or OFFICIAL_IMAGE


def engine() -> Any:
    """A client of the Docker engine. Raises `EnvironmentFault`."""
    docker, _ = libraries()
    try:
        _probe()
        client = docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise EnvironmentFault(
            f"no Docker engine answers ({error}). Start one, or omit --zookeeper docker (the embedded server needs "
            "none)."
        ) from error
    return client


def get_image(client: Any, image: str) -> None:
    """Pull the image unless it is present. Raises `EnvironmentFault` with the remedy."""
    docker, _ = libraries()
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        try:
            client.images.pull(image)
        except docker.errors.APIError as error:
            raise EnvironmentFault(
                f"Docker has no image {image} and cannot pull it ({error.explanation or error}). Build one "
                f"without a registry with 'python docker/build_image.py' and set {IMAGE_VARIABLE} to its name, or "
                "omit --zookeeper docker: the embedded server needs no Docker."
            ) from error


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the engine's errors into `EnvironmentFault`, or `PortInUse` if that is what it says."""
    docker, _ = libraries()
    try:
        yield
    except docker.errors.APIError as error:
        said = str(error.explanation or error)
        kind = PortInUse if any(text in said for text in _IN_USE) else EnvironmentFault
        raise kind(f"Docker cannot {doing}: {said}") from error
    except OSError as error:  # requests' errors are some
        raise EnvironmentFault(f"Docker cannot {doing}: {error}") from error


def libraries() -> tuple[ModuleType, ModuleType]:
    """Import docker and testcontainers.core.container late: they are rarely needed and slow to import.

    Ryuk, the reaper of testcontainers, is another image that runs beside ours; `ownership` does its work. Whoever wants
    it nevertheless sets TESTCONTAINERS_RYUK_DISABLED=false. The variable is read during the import.
    """
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    try:
        return importlib.import_module("docker"), importlib.import_module("testcontainers.core.container")
    except ImportError as error:
        raise EnvironmentFault(
            "--zookeeper docker needs the package testcontainers. Run 'pip install testcontainers'."
        ) from error


def _probe() -> None:
    """Raise OSError if nothing listens on the engine's socket. docker's own client would leak a socket."""
    host = os.environ.get("DOCKER_HOST", "").strip() or "unix:///var/run/docker.sock"
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            probe.connect(host.removeprefix("unix://"))
