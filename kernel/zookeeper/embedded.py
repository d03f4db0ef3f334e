"""A real ZooKeeper without installing one: the server in PySpark's jars, one or an ensemble of three.

Everything is below the run folder, on loopback, on free ports, ready in about a second, and gone when the
process that started it is gone. Each server's log is `zookeeper-N/zookeeper.log`.

A start can be given up: another thread sets the event `given_up`, and `start` stops what it has started and raises
`StartGivenUp`.

Session timeouts are between `min_session_ms` and `max_session_ms`; ZooKeeper clamps others without a word,
and notices an expiry up to one tick late.
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

#: How long servers may take to serve; about a second on an idle machine.
START_TIMEOUT_S = 90.0

#: Ticks that a follower of an ensemble may take to connect to its leader.
INIT_LIMIT = 10

#: Between choosing free ports and listening on them, somebody else may take one: choose again.
_PORT_ATTEMPTS = 5


class QuorumPorts(NamedTuple):
    """The two ports by which the servers of an ensemble talk to one of them."""

    quorum: int
    election: int


#: `(i, j, real)` -> the ports that server i uses to reach server j, whose real ones are given. Called once for
#: each ordered pair, before the servers start; the proxy behind them must listen by then. It must
#: - retry its own connection to the real port for about two seconds (the peer may not listen yet; an accepted
#:   and then closed connection costs an election of initLimit),
#: - refuse election connections from i to j with i < j: the larger id calls back on the real address otherwise,
#:   past the proxy. Refused, the larger one calls by its own links.
QuorumLinks = Callable[[int, int, QuorumPorts], QuorumPorts]


class _Servers:
    """What one server and three have in common: start and stop as a whole."""

    servers: tuple[ServerProcess, ...] = ()

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all servers; what they stored stays. Idempotent."""
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
        """Start and wait until it serves.

        Raises `EnvironmentFault`: no Java, no room or right to write, the port in use (`PortInUse`), or
        whatever the server's log says.
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
    """Three servers that elect a leader; they go on while two of them reach each other.

    For a split brain a session must end before its server notices that it is cut off: session timeout <
    `sync_limit` x `tick_ms`, and the cut server must be a follower.
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
        """Start all three and wait until all serve and one leads. Raises as `EmbeddedZooKeeper.start`."""
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._start_on(free_ports(9))
            except PortInUse:
                self.stop()
                # A proxy has been told of these ports already; it cannot be told of others.
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
        """The server.N lines of one server's view."""
        lines = {}
        for peer, ports in real.items():
            used = ports if peer == number or self._quorum_links is None else self._quorum_links(number, peer, ports)
            lines[f"server.{peer}"] = f"{LOOPBACK}:{used.quorum}:{used.election}"
        return lines

    def leader(self, *, timeout_s: float = 15.0) -> ServerProcess:
        """The server that leads, once exactly one says so. Raises `EnvironmentFault` when none does in time."""

        def only_leader() -> ServerProcess | None:
            if self._given_up is not None and self._given_up.is_set():
                raise StartGivenUp("the ZooKeeper ensemble was stopped before one of its servers led")
            leaders = [server for server in self.servers if server.running and server.mode() == "leader"]
            return leaders[0] if len(leaders) == 1 else None

        try:
            leader = wait_until(only_leader, timeout_s, "one leader")
        except WaitTimeout:
            tails = "\n".join(f"server {server.number}:\n{server.log_tail(5)}" for server in self.servers)
            raise EnvironmentFault(
                f"no ZooKeeper server leads after {timeout_s:g} s; the ends of the logs:\n{tails}"
            ) from None
        assert leader is not None
        return leader

    def followers(self) -> tuple[ServerProcess, ...]:
        """The servers that follow, in order of their numbers."""
        return tuple(server for server in self.servers if server.running and server.mode() == "follower")


def _timing(tick_ms: int, min_session_ms: int, max_session_ms: int) -> dict[str, object]:
    return {"tickTime": tick_ms, "minSessionTimeout": min_session_ms, "maxSessionTimeout": max_session_ms}
