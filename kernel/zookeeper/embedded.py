"""Run a real ZooKeeper without installing one: a server or an ensemble of three, from PySpark's jars.

All files are in the run folder. The servers listen on free loopback ports, start in about a second, and end with the
process that started them. Each server logs to `zookeeper-N/zookeeper.log`.

To cancel a start, set the event `given_up` in another thread: `start` stops the servers and raises `StartGivenUp`.

Session timeouts are between `min_session_ms` and `max_session_ms`; ZooKeeper silently clamps others, and notices an
expiry up to one tick late.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from kernel.platform.ports import LOOPBACK, ReservedPorts
from kernel.zookeeper.server import START_TIMEOUT_S, PortInUse, ServerConfig, ServerProcess, require_free
from kernel.zookeeper.servers import NUMBERS, Limits, QuorumLinks, QuorumPorts, Servers, leader_of, peer_lines

if TYPE_CHECKING:
    import threading

#: Another process may take a free port before the server listens on it; then others are chosen.
_PORT_ATTEMPTS = 5


class EmbeddedZooKeeper(Servers):
    """One server or three on this machine."""

    def __init__(
        self,
        run_dir: Path,
        *,
        servers: int = 1,
        limits: Limits | None = None,
        port: int | None = None,
        quorum_links: QuorumLinks | None = None,
        given_up: threading.Event | None = None,
    ) -> None:
        self.servers: tuple[ServerProcess, ...] = ()
        self._run_dir = Path(run_dir).resolve()
        self._numbers = NUMBERS[:servers]
        self._lines = (limits or Limits()).lines(ensemble=servers > 1)
        self._port = port
        self._links = quorum_links
        self._given_up = given_up
        self._reserved: ReservedPorts | None = None

    def start(self) -> Self:
        """See `Servers.start`.

        Raises `EnvironmentFault` if there is no Java, the folder is full or not writable, a port is in use
        (`PortInUse`), or a server fails (with the end of its log).
        """
        if self._port is not None:
            require_free(self._port)
        # Proxies already use the ports of their links, and cannot switch to others.
        attempts = _PORT_ATTEMPTS if self._port is None and self._links is None else 1
        for attempt in range(1, attempts + 1):
            try:
                self._start_on([self._port] if self._port is not None else self._reserve())
            except PortInUse:
                self.stop()
                if attempt == attempts:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def _reserve(self) -> list[int]:
        """Ports for as long as the servers may be started again: one of each server for clients, then its others."""
        if self._reserved is not None:
            self._reserved.release()
        count = len(self._numbers)
        self._reserved = ReservedPorts(count if count == 1 else 3 * count)
        return self._reserved.numbers

    def _start_on(self, ports: list[int]) -> None:
        clients, rest = ports[: len(self._numbers)], iter(ports[len(self._numbers) :])
        real = {
            number: QuorumPorts(quorum, election)
            for number, quorum, election in zip(self._numbers, rest, rest, strict=False)
        }
        self.servers = tuple(
            ServerProcess(
                self._run_dir / f"zookeeper-{number}",
                ServerConfig(number=number, client_port=port, lines=self._lines | self._peers(number, real)),
            )
            for number, port in zip(self._numbers, clients, strict=True)
        )
        for server in self.servers:
            server.launch()
        for server in self.servers:
            server.wait_ready(START_TIMEOUT_S, self._given_up)
        if real:
            leader_of(self.servers, given_up=self._given_up)

    def _peers(self, number: int, real: dict[int, QuorumPorts]) -> dict[str, str]:
        """The server.N lines in one server's configuration; none outside an ensemble."""
        used = peer_lines(number, real, self._links)
        return {f"server.{peer}": f"{ports.host}:{ports.quorum}:{ports.election}" for peer, ports in used.items()}

    def stop(self) -> None:
        for server in self.servers:
            server.terminate()  # all at once, then wait for each
        for server in self.servers:
            server.stop()
        if self._reserved is not None:
            self._reserved.release()

    def reach(self) -> str:
        return LOOPBACK
