"""ZooKeeper servers that a run has started, whatever they run in: what can be done to them, and which of them leads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from kernel.errors import EnvironmentFault
from kernel.platform.ports import LOOPBACK
from kernel.waiting import WaitTimeout, wait_until
from kernel.zookeeper.server import START_TIMEOUT_S, StartGivenUp

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

#: Ticks that a follower of an ensemble may take to connect to its leader.
INIT_LIMIT = 10

#: The ids of an ensemble's servers.
NUMBERS = (1, 2, 3)

AnyServer = TypeVar("AnyServer", bound="Server")


class QuorumPorts(NamedTuple):
    """The two ports of a server for the other servers of its ensemble, and its address."""

    quorum: int
    election: int
    host: str = LOOPBACK


#: `(i, j, real)` -> the ports that server i uses to reach server j, whose real ports are given. Called once for each
#: ordered pair before the servers start; a proxy must then listen on these ports. It must
#: - retry its own connection to the real port for about two seconds. The peer may not listen yet, and an accepted but
#:   then closed connection costs an election initLimit ticks.
#: - refuse election connections from i to j with i < j. Otherwise the larger id connects back to the real address,
#:   past the proxy; once refused, it connects through its own links.
QuorumLinks = Callable[[int, int, QuorumPorts], QuorumPorts]


class Server(Protocol):
    """A server that a scenario can pause, kill, restart and take off its network."""

    @property
    def number(self) -> int:
        """Its id in an ensemble; 1 for a single server."""

    @property
    def host(self) -> str: ...

    @property
    def client_port(self) -> int: ...

    @property
    def address(self) -> str: ...

    @property
    def data_dir(self) -> Path:
        """The folder of its transaction log, complete once the server has been stopped for good."""

    @property
    def running(self) -> bool:
        """Whether it exists (it may be paused)."""

    def launch(self) -> None:
        """Start it without waiting. Raises `EnvironmentFault` if that fails."""

    def wait_ready(self, timeout_s: float, given_up: threading.Event | None = None) -> None:
        """Wait until it serves clients. Raises `EnvironmentFault`, or `StartGivenUp` if `given_up` is set meanwhile."""

    def mode(self) -> str | None:
        """standalone, leader or follower; None if it does not serve, after a second if it is paused."""

    def pause(self) -> None:
        """Stop it: it keeps its connections and ports but does nothing."""

    def resume(self) -> None: ...

    def kill(self) -> None:
        """End it without warning, and wait for the end."""

    def stop(self) -> None:
        """Shut it down. Idempotent; wakes a paused server."""

    def restart(self) -> None:
        """Restart it with the same address and data, and wait until it serves."""

    def log_tail(self, lines: int = 15) -> str:
        """The end of its log; empty if there is none."""


@runtime_checkable
class Detachable(Protocol):
    """A server that has a network of its own, which it can be taken off."""

    def disconnect(self) -> None:
        """Nobody reaches it any more, nor does it reach anybody. Raises `EnvironmentFault`."""

    def connect(self) -> None:
        """Put it back, at the same address."""


class Servers(ABC):
    """One or three servers that start and stop together. Of three, two that can reach each other serve.

    For a split brain, a session must expire before its server notices that it is cut off: the session timeout must be
    below `sync_limit` x `tick_ms`, and the cut server must be a follower.
    """

    servers: tuple[Server, ...]

    @abstractmethod
    def reach(self) -> str:
        """The address of this machine at which the servers reach proxies; before `start`."""

    @abstractmethod
    def start(self) -> Self:
        """Start all and wait until they serve and, if there are three, one leads.

        Raises `EnvironmentFault`, and `StartGivenUp` if another thread sets `given_up`.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop all and keep their transaction logs. Idempotent."""

    @property
    def connect_string(self) -> str:
        """host:port of every server, in order."""
        return connect_string(self.servers)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits on time of servers; `sync_limit`, in ticks, only in an ensemble."""

    tick_ms: int = 500
    sync_limit: int = 6
    min_session_ms: int = 200
    max_session_ms: int = 60_000

    def lines(self, *, ensemble: bool) -> dict[str, object]:
        """Their lines in zoo.cfg."""
        lines: dict[str, object] = {
            "tickTime": self.tick_ms,
            "minSessionTimeout": self.min_session_ms,
            "maxSessionTimeout": self.max_session_ms,
        }
        return {**lines, "initLimit": INIT_LIMIT, "syncLimit": self.sync_limit} if ensemble else lines


def connect_string(servers: Sequence[Server]) -> str:
    """host:port of every server, in order."""
    return ",".join(server.address for server in servers)


def leader_of(servers: Sequence[AnyServer], *, given_up: threading.Event | None = None) -> AnyServer:
    """Wait for exactly one leader and return it. Raises `EnvironmentFault`."""

    def only_leader() -> AnyServer | None:
        if given_up is not None and given_up.is_set():
            raise StartGivenUp("the ZooKeeper ensemble was stopped before one of its servers led")
        leaders = [server for server in servers if server.running and server.mode() == "leader"]
        return leaders[0] if len(leaders) == 1 else None

    return _waited_for(only_leader, servers, "leader")


def follower_of(servers: Sequence[AnyServer]) -> AnyServer:
    """Wait for a follower and return the one with the lowest number. Raises `EnvironmentFault`."""
    return _waited_for(lambda: next(iter(followers_of(servers)), None), servers, "follower")


def _waited_for(found: Callable[[], AnyServer | None], servers: Sequence[AnyServer], role: str) -> AnyServer:
    try:
        server = wait_until(found, START_TIMEOUT_S, f"a {role}")
    except WaitTimeout:
        tails = "\n".join(f"server {server.number}:\n{server.log_tail(5)}" for server in servers)
        raise EnvironmentFault(
            f"no ZooKeeper server became {role} within {START_TIMEOUT_S:g} s; ends of the logs:\n{tails}"
        ) from None
    assert server is not None
    return server


def followers_of(servers: Sequence[AnyServer]) -> tuple[AnyServer, ...]:
    """Those that say within a second that they follow, sorted by number."""
    return tuple(server for server in servers if server.running and server.mode() == "follower")


def peer_lines(number: int, real: dict[int, QuorumPorts], links: QuorumLinks | None) -> dict[int, QuorumPorts]:
    """By which ports one server of an ensemble reaches each of them; itself by its real ones."""
    return {
        peer: ports if peer == number or links is None else links(number, peer, ports) for peer, ports in real.items()
    }
