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
from kernel.zookeeper.server import (
    START_TIMEOUT_S,
    PortInUse,
    ServerConfig,
    ServerProcess,
    require_free,
    wait_for_all,
)
from kernel.zookeeper.servers import (
    NUMBERS,
    Limits,
    QuorumLinks,
    QuorumPorts,
    connect_string,
    followers_of,
    leader_of,
    peer_lines,
)

if TYPE_CHECKING:
    import threading

#: Another process may take a free port before the server listens on it; then others are chosen.
_PORT_ATTEMPTS = 5


class _Servers:
    """One or more servers that start and stop together."""

    servers: tuple[ServerProcess, ...] = ()
    _reserved: ReservedPorts | None = None

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all servers and keep their data. Idempotent."""
        for server in self.servers:
            server.terminate()  # all at once, then wait for each
        for server in self.servers:
            server.stop()
        if self._reserved is not None:
            self._reserved.release()

    def _reserve(self, number: int) -> list[int]:
        """Ports for as long as the servers may be started again."""
        if self._reserved is not None:
            self._reserved.release()
        self._reserved = ReservedPorts(number)
        return self._reserved.numbers

    @property
    def connect_string(self) -> str:
        """host:port of every server, in order."""
        return connect_string(self.servers)

    def reach(self) -> str:
        """The address of this machine at which the servers reach proxies."""
        return LOOPBACK

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class EmbeddedZooKeeper(_Servers):
    """A single embedded server."""

    def __init__(
        self,
        run_dir: Path,
        *,
        tick_ms: int = 500,
        min_session_ms: int = 200,
        max_session_ms: int = 60_000,
        port: int | None = None,
        given_up: threading.Event | None = None,
    ) -> None:
        self._run_dir = Path(run_dir).resolve()
        self._given_up = given_up
        limits = Limits(tick_ms=tick_ms, min_session_ms=min_session_ms, max_session_ms=max_session_ms)
        self._lines = limits.lines(ensemble=False)
        self._port = port

    def start(self) -> Self:
        """Start the server and wait until it serves.

        Raises `EnvironmentFault` if there is no Java, the folder is full or not writable, the port is in use
        (`PortInUse`), or the server fails (with the end of its log).
        """
        if self._port is not None:
            require_free(self._port)
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._start_on(self._port or self._reserve(1)[0])
            except PortInUse:
                self.stop()
                if self._port is not None or attempt == _PORT_ATTEMPTS - 1:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def _start_on(self, port: int) -> None:
        config = ServerConfig(number=1, client_port=port, lines=self._lines)
        server = ServerProcess(self._run_dir / "zookeeper-1", config)
        self.servers = (server,)
        server.launch()
        server.wait_ready(START_TIMEOUT_S, self._given_up)


class ZooKeeperEnsemble(_Servers):
    """Three servers that elect a leader; they serve while two of them can reach each other.

    For a split brain, a session must expire before its server notices that it is cut off: the session timeout must be
    below `sync_limit` x `tick_ms`, and the cut server must be a follower.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        tick_ms: int = 500,
        sync_limit: int = 6,
        min_session_ms: int = 200,
        max_session_ms: int = 60_000,
        quorum_links: QuorumLinks | None = None,
        given_up: threading.Event | None = None,
    ) -> None:
        self._run_dir = Path(run_dir).resolve()
        self._given_up = given_up
        limits = Limits(
            tick_ms=tick_ms, sync_limit=sync_limit, min_session_ms=min_session_ms, max_session_ms=max_session_ms
        )
        self._lines = limits.lines(ensemble=True)
        self._quorum_links = quorum_links

    def start(self) -> Self:
        """Start all three and wait until they serve and one leads. Raises as `EmbeddedZooKeeper.start`."""
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._start_on(self._reserve(9))
            except PortInUse:
                self.stop()
                # A proxy already uses these ports and cannot switch to others.
                if self._quorum_links is not None or attempt == _PORT_ATTEMPTS - 1:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def _start_on(self, ports: list[int]) -> None:
        real = {number: QuorumPorts(ports[3 + 2 * i], ports[4 + 2 * i]) for i, number in enumerate(NUMBERS)}
        self.servers = tuple(
            ServerProcess(
                self._run_dir / f"zookeeper-{number}",
                ServerConfig(
                    number=number,
                    client_port=ports[i],
                    lines=self._lines | self._peers(number, real),
                ),
            )
            for i, number in enumerate(NUMBERS)
        )
        for server in self.servers:
            server.launch()
        wait_for_all(self.servers, START_TIMEOUT_S, self._given_up)
        self.leader()

    def _peers(self, number: int, real: dict[int, QuorumPorts]) -> dict[str, str]:
        """The server.N lines in one server's configuration."""
        used = peer_lines(number, real, self._quorum_links)
        return {f"server.{peer}": f"{ports.host}:{ports.quorum}:{ports.election}" for peer, ports in used.items()}

    def leader(self) -> ServerProcess:
        """Wait for exactly one leader and return it. Raises `EnvironmentFault`."""
        return leader_of(self.servers, given_up=self._given_up)

    def followers(self) -> tuple[ServerProcess, ...]:
        """The followers, sorted by number."""
        return followers_of(self.servers)
