"""Archive the classes that a ZooKeeper server loads, so that later ones start sooner (see `class_archives`).

Run it as `python -m kernel.zookeeper.training`.

It starts a server, lets a client use it, and stops it. Without Java 25, or if it fails, it says so and succeeds, for
the archive is only a matter of speed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from kernel.errors import EnvironmentFault, RebalanceLabError
from kernel.platform.class_archives import make_once
from kernel.platform.jre import find_java
from kernel.platform.ports import free_ports
from kernel.platform.swept_folder import swept_folder
from kernel.zookeeper.server import ServerConfig, ServerProcess, archive_of

if TYPE_CHECKING:
    from pathlib import Path

_START_S = 60.0
#: The JVM writes the archive as it ends.
_WRITTEN_S = 120.0


def train() -> str:
    """Make the archive if there is none; what was done, as a line for the user."""
    java = find_java()
    return make_once("ZooKeeper", java, archive_of(java), _serve_once)


def _serve_once(part: Path) -> None:
    with swept_folder("rebalance-lab-training-") as (folder, _):
        (port,) = free_ports(1)
        server = ServerProcess(folder, ServerConfig(number=1, client_port=port, archive_to=part.resolve()))
        try:
            server.launch()
            server.wait_ready(_START_S)
            _use(f"{server.host}:{port}")
        finally:
            server.stop(grace_s=_WRITTEN_S)


def _use(address: str) -> None:
    client = KazooClient(hosts=address)
    try:
        client.start(timeout=_START_S)
        client.create("/owner", b"a", ephemeral=True)
        client.get_children("/", watch=lambda _: None)
        client.set("/owner", b"b")
        client.get("/owner")
        client.delete("/owner")
    except (KazooException, KazooTimeoutError) as error:
        raise EnvironmentFault(f"ZooKeeper could not be used: {error}") from error
    finally:
        client.stop()
        client.close()


def main() -> None:
    try:
        outcome = train()
    except (RebalanceLabError, OSError) as error:
        outcome = f"ZooKeeper's classes are not archived ({error}): servers only take longer to start"
    sys.stdout.write(f"{outcome}\n")


if __name__ == "__main__":
    main()
