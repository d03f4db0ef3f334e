"""Run a real ZooKeeper without installing one: a server or an ensemble of three, from PySpark's jars.

All files are in the run folder. The servers listen on free loopback ports, start in about a second, and end with the
process that started them. Each server logs to `zookeeper-N/zookeeper.log`.

To cancel a start, set the event `given_up` in another thread: `start` stops the servers and raises `StartGivenUp`.

Session timeouts are between `min_session_ms` and `max_session_ms`; ZooKeeper silently clamps others, and notices an
expiry up to one tick late.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from kernel.errors import EnvironmentFault
from kernel.ports import LOOPBACK, free_ports
from kernel.waiting import WaitTimeout, wait_until
from kernel.zookeeper.server import (
    PortInUse,
    ServerConfig,
    ServerProcess,
    StartGivenUp,
    require_free,
    wait_for_all,
)

if TYPE_CHECKING:
    import threading

#: How long servers may take to start; they need about a second on an idle machine.
START_TIMEOUT_S = 90.0

#: Ticks that a follower of an ensemble may take to connect to its leader.
INIT_LIMIT = 10

#: Another process may take a free port before the server listens on it; then others are chosen.
_PORT_ATTEMPTS = 5


class QuorumPorts(NamedTuple):
    """The two ports of a server for the other servers of its ensemble."""

    quorum: int
    election: int


#: `(i, j, real)` -> the ports that server i uses to reach server j, whose real ports are given. Called once for each
#: ordered pair before the servers start; a proxy must then listen on these ports. It must
#: - retry its own connection to the real port for about two seconds. The peer may not listen yet, and an accepted but
#:   then closed connection costs an election initLimit ticks.
#: - refuse election connections from i to j with i < j. Otherwise the larger id connects back to the real address,
#:   past the proxy; once refused, it connects through its own links.
QuorumLinks = Callable[[int, int, QuorumPorts], QuorumPorts]


class _Servers:
    """One or more servers that start and stop together."""

    servers: tuple[ServerProcess, ...] = ()

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all servers and keep their data. Idempotent."""
        for server in self.servers:
            server.terminate()  # all at once, then wait for each
        for server in self.servers:
            server.stop()

    @property
    def connect_string(self) -> str:
        """host:port of every server, in order."""
        return ",".join(server.address for server in self.servers)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class EmbeddedZooKeeper(_Servers):
    """One server."""

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
        self._lines = _timing(tick_ms, min_session_ms, max_session_ms)
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
                self._start_on(self._port or free_ports(1)[0])
            except PortInUse:
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
        self._lines = _timing(tick_ms, min_session_ms, max_session_ms) | {
            "initLimit": INIT_LIMIT,
            "syncLimit": sync_limit,
        }
        self._quorum_links = quorum_links

    def start(self) -> Self:
        """Start all three and wait until they serve and one leads. Raises as `EmbeddedZooKeeper.start`."""
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._start_on(free_ports(9))
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
        numbers = (1, 2, 3)
        real = {number: QuorumPorts(*ports[3 + 2 * i : 5 + 2 * i]) for i, number in enumerate(numbers)}
        self.servers = tuple(
            ServerProcess(
                self._run_dir / f"zookeeper-{number}",
                ServerConfig(
                    number=number,
                    client_port=ports[i],
                    lines=self._lines | self._peers(number, real),
                ),
            )
            for i, number in enumerate(numbers)
        )
        for server in self.servers:
            server.launch()
        wait_for_all(self.servers, START_TIMEOUT_S, self._given_up)
        self.leader()

    def _peers(self, number: int, real: dict[int, QuorumPorts]) -> dict[str, str]:
        """The server.N lines in one server's configuration."""
        lines = {}
        for peer, ports in real.items():
            used = ports if peer == number or self._quorum_links is None else self._quorum_links(number, peer, ports)
            lines[f"server.{peer}"] = f"{LOOPBACK}:{used.quorum}:{used.election}"
        return lines

    def leader(self, *, timeout_s: float = 15.0) -> ServerProcess:
        """Wait for exactly one leader and return it. Raises `EnvironmentFault` after `timeout_s`."""

        def only_leader() -> ServerProcess | None:
            if self._given_up is not None and self._given_up.is_set():
                raise StartGivenUp("the ZooKeeper ensemble was stopped before one of its servers led")
            leaders = [server for server in self.servers if server.running and server.mode() == "leader"]
            return leaders[0] if len(leaders) == 1 else None

        try:
            leader = wait_until(only_leader, timeout_s, "a leader")
        except WaitTimeout:
            tails = "\n".join(f"server {server.number}:\n{server.log_tail(5)}" for server in self.servers)
            raise EnvironmentFault(
                f"no ZooKeeper server became leader within {timeout_s:g} s; ends of the logs:\n{tails}"
            ) from None
        assert leader is not None
        return leader

    def followers(self) -> tuple[ServerProcess, ...]:
        """The followers, sorted by number."""
        return tuple(server for server in self.servers if server.running and server.mode() == "follower")


def _timing(tick_ms: int, min_session_ms: int, max_session_ms: int) -> dict[str, object]:
    return {"tickTime": tick_ms, "minSessionTimeout": min_session_ms, "maxSessionTimeout": max_session_ms}
