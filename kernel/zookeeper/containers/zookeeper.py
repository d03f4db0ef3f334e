"""`--zookeeper docker`: one server or an ensemble of three in containers, using testcontainers.

One server uses the engine's default network. An ensemble has a network of its own with fixed addresses, because the
names of servers that are not up yet do not resolve, which makes the first election take 11 s instead of 2. Its servers
reach each other directly or, where a run breaks the links between them, by proxies on this machine: at the network's
gateway, which is an address of this machine if the engine runs on it.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

from kernel.errors import EnvironmentFault
from kernel.platform.ports import free_ports
from kernel.zookeeper.containers.engine import chosen_image, engine, get_image, translated
from kernel.zookeeper.containers.ownership import LABEL, Guard, owner, remove_abandoned
from kernel.zookeeper.containers.server import (
    CLIENT_PORT,
    ELECTION_PORT,
    LOG_DIR,
    QUORUM_PORT,
    ContainerConfig,
    ServerContainer,
)
from kernel.zookeeper.server import START_TIMEOUT_S, PortInUse, StartGivenUp
from kernel.zookeeper.servers import NUMBERS, Limits, QuorumLinks, QuorumPorts, Servers, leader_of, peer_lines

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path

#: Another process may take a free port before the engine publishes it, or a network the same addresses.
_ATTEMPTS = 5
_FIRST_HOST = 11
_random = random.SystemRandom()


class DockerZooKeeper(Servers):
    """One server or three, with the same limits as the embedded ones."""

    def __init__(
        self,
        run_dir: Path,
        *,
        servers: int = 1,
        image: str | None = None,
        limits: Limits | None = None,
        quorum_links: QuorumLinks | None = None,
        given_up: threading.Event | None = None,
    ) -> None:
        self.image = image or chosen_image()
        self.servers: tuple[ServerContainer, ...] = ()
        self._run_dir = run_dir
        self._numbers = NUMBERS[:servers]
        self._lines = (limits or Limits()).lines(ensemble=True)
        self._links = quorum_links
        self._given_up = given_up
        self._client: Any = None
        self._network: Any = None
        self._addresses: ipaddress.IPv4Network | None = None
        self._guard: Guard | None = None

    def reach(self) -> str:
        """Make the ensemble's network: this machine's address in it. Raises `EnvironmentFault`."""
        self._begin()
        if self._network is None:
            self._make_network()
        assert self._addresses is not None
        return str(self._addresses[1])

    def start(self) -> Self:
        """Start the containers and wait until the servers serve.

        Raises `EnvironmentFault` if testcontainers is not installed, no engine answers, the image is neither present
        nor available, or a server does not serve (with the end of its log); `StartGivenUp` if another thread sets
        `given_up`.
        """
        try:
            self._begin()
            get_image(self._client, self.image)
            if len(self._numbers) > 1:
                self.reach()
            self._launch()
            for server in self.servers:
                server.wait_ready(START_TIMEOUT_S, self._given_up)
            if len(self.servers) > 1:
                leader_of(self.servers, given_up=self._given_up)
        except BaseException:
            with contextlib.suppress(EnvironmentFault):
                self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the servers, keep their transaction logs, and remove containers and network. Idempotent.

        Raises `EnvironmentFault` if a log cannot be kept; everything is removed nevertheless.
        """
        atexit.unregister(self.stop)
        try:
            if self.servers:
                with ThreadPoolExecutor(len(self.servers)) as pool:
                    list(pool.map(_end, self.servers))
        finally:
            network, self._network = self._network, None
            if network is not None:
                with contextlib.suppress(EnvironmentFault), translated("remove a network"):
                    network.remove()
            client, self._client = self._client, None
            if client is not None:
                client.close()
            guard, self._guard = self._guard, None
            if guard is not None:
                guard.dismiss()

    def _begin(self) -> None:
        """Once, before anything is created: find the engine, and remove what killed runs have left."""
        if self._client is not None:
            return
        self._client = engine()
        with translated("remove the containers of earlier runs"):
            remove_abandoned(self._client)
        self._guard = Guard()
        atexit.register(self.stop)

    def _make_network(self) -> None:
        for attempt in range(_ATTEMPTS):
            self._addresses = ipaddress.IPv4Network(f"10.213.{_random.randrange(256)}.0/24")
            pool = {"Subnet": str(self._addresses), "Gateway": str(self._addresses[1])}
            try:
                with translated(f"make a network {self._addresses}"):
                    self._network = self._client.networks.create(
                        f"rebalance-lab-{_random.randrange(16**8):08x}",
                        labels={LABEL: owner()},
                        ipam={"Driver": "default", "Config": [pool]},
                    )
            except EnvironmentFault:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _launch(self) -> None:
        """Create and start all containers at once, on other ports if one is in use."""
        for attempt in range(_ATTEMPTS):
            if self._given_up is not None and self._given_up.is_set():
                raise StartGivenUp("ZooKeeper in containers was stopped before it served")
            ports = free_ports(len(self._numbers))
            self.servers = tuple(
                ServerContainer(self._run_dir / f"zookeeper-{number}", self._config(number, port))
                for number, port in zip(self._numbers, ports, strict=True)
            )
            try:
                with ThreadPoolExecutor(len(self.servers)) as pool:
                    list(pool.map(ServerContainer.launch, self.servers))
            except PortInUse:
                for server in self.servers:
                    server.remove()
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _config(self, number: int, port: int) -> ContainerConfig:
        environment = _environment(self._lines)
        if len(self._numbers) == 1:
            return ContainerConfig(number=number, image=self.image, client_port=port, environment=environment)
        assert self._addresses is not None
        real = {
            each: QuorumPorts(QUORUM_PORT, ELECTION_PORT, str(self._addresses[_FIRST_HOST + each - 1]))
            for each in self._numbers
        }
        peers = peer_lines(number, real, self._links)
        servers = (
            f"server.{peer}={used.host}:{used.quorum}:{used.election};{CLIENT_PORT}" for peer, used in peers.items()
        )
        return ContainerConfig(
            number=number,
            image=self.image,
            client_port=port,
            environment={**environment, "ZOO_MY_ID": str(number), "ZOO_SERVERS": " ".join(servers)},
            network=str(self._network.name),
            address=real[number].host,
        )


def _environment(lines: Mapping[str, object]) -> dict[str, str]:
    """The official image's variables, for the same configuration as that of an embedded server."""
    extra = " ".join(f"{name}={lines[name]}" for name in ("minSessionTimeout", "maxSessionTimeout"))
    return {
        "ZOO_TICK_TIME": str(lines["tickTime"]),
        "ZOO_INIT_LIMIT": str(lines["initLimit"]),
        "ZOO_SYNC_LIMIT": str(lines["syncLimit"]),
        "ZOO_MAX_CLIENT_CNXNS": "0",
        "ZOO_ADMINSERVER_ENABLED": "false",
        "ZOO_4LW_COMMANDS_WHITELIST": "*",
        "ZOO_CFG_EXTRA": extra,
        "ZOO_DATA_LOG_DIR": LOG_DIR,
        "ZK_SERVER_HEAP": "512",
        # As `kernel.zookeeper.server`: by default each log file takes 64 MB, and each change an fsync.
        "SERVER_JVMFLAGS": "-Dzookeeper.preAllocSize=1024 -Dzookeeper.forceSync=no",
    }


def _end(server: ServerContainer) -> None:
    """Stop a server, keep its files and remove its container, also if it cannot be stopped any more."""
    try:
        with contextlib.suppress(EnvironmentFault):
            server.stop()
        server.keep_files()
    finally:
        server.remove()
