"""Modelled servers on an event loop, which clients reach on sockets, real or simulated ones.

Clients speak ZooKeeper's protocol to them, so nothing else about a client has to be modelled: our `Bridge`,
`end_session` and `four_letter` work, as do proxies between them and the servers. What servers say to each other goes
over links with a delay, which can be cut.

A server runs in the context in which it was started. So it belongs to the host of the simulated world that starts it,
and is frozen with it.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.connections import ClientConnection
from comparison.simulation.zookeeper.links import Link
from comparison.simulation.zookeeper.model.four_letter_words import four_letter_word
from comparison.simulation.zookeeper.model.messages import HangUp, SendToClient, SendToPeer
from comparison.simulation.zookeeper.model.server import Identity, Server
from comparison.simulation.zookeeper.model.sessions import Limits
from kernel.platform.ports import LOOPBACK

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.messages import Effect, PeerMessage
    from comparison.simulation.zookeeper.model.protocol import FromClient

#: The next delay of what one server sends to another, in seconds.
Delay = Callable[[int, int], float]


class SimulatedServer:
    """One server: a process that can be killed and started again, with the same port and history."""

    def __init__(self, identity: Identity, limits: Limits, peers: Peers, wall_ms: Callable[[], int]) -> None:
        self.number = identity.number
        self.model = Server(identity, limits)
        self.port = 0
        self.is_running = False
        self._peers = peers
        self._wall_ms = wall_ms
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._connections: dict[int, ClientConnection] = {}
        self._numbers = itertools.count(1)
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticks_ms = 0  #: when it is set

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def mode(self) -> str | None:
        """standalone, leader or follower; None if it does not serve."""
        return self.model.mode if self.is_running else None

    async def start(self) -> None:
        """Listen, on any port the first time, and begin to look for the others."""
        assert not self.is_running
        self._context = contextvars.copy_context()
        self._listener = await self._loop.create_server(self._accept, LOOPBACK, self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        self.is_running = True
        self._perform(self.model.start(self._wall_ms()))

    def kill(self) -> None:
        """End the process. Its connections are closed; the other servers learn of it a delay later."""
        if not self.is_running:
            return
        self.is_running = False
        self._cancel()
        self.model.stop()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections.values()):
            connection.abort()
        self._connections.clear()
        self._peers.end(self.number)

    # -- clients -------------------------------------------------------------------------------------------------------

    def _accept(self) -> ClientConnection:
        connection = ClientConnection(self._receive, self._lost, partial(four_letter_word, self.model))
        connection.number = next(self._numbers)
        self._connections[connection.number] = connection
        return connection

    def _receive(self, connection: ClientConnection, frame: FromClient) -> None:
        if self.is_running:
            self._perform(self.model.receive(self._wall_ms(), connection.number, frame))

    def _lost(self, connection: ClientConnection) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self.model.disconnected(connection.number)

    # -- other servers, and time ---------------------------------------------------------------------------------------

    def hear(self, sender: int, message: tuple[int, PeerMessage] | None) -> None:
        """A message with the number of its link; None: the sender has ended."""
        if not self.is_running:
            return
        now_ms = self._wall_ms()
        if message is None:
            self._perform(self.model.peer_lost(now_ms, sender))
        else:
            self._perform(self.model.hear(now_ms, sender, *message))

    @property
    def context(self) -> contextvars.Context:
        """Where it runs."""
        return self._context

    def _tick(self) -> None:
        self._timer = None
        self._perform(self.model.tick(self._wall_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendToClient(number, frame):
                    if (connection := self._connections.get(number)) is not None:
                        connection.send(frame)
                case HangUp(number):
                    if (connection := self._connections.pop(number, None)) is not None:
                        connection.close()
                case SendToPeer(peer, link, message):
                    self._peers.send(self.number, peer, (link, message))
        self._set_timer()

    def _set_timer(self) -> None:
        """Most events put the deadline off. A tick that comes too early does nothing, so the timer may stay."""
        deadline_ms = self.model.deadline_ms
        if deadline_ms is None or (self._timer is not None and self._ticks_ms <= deadline_ms):
            return
        self._cancel()
        self._ticks_ms = deadline_ms
        wait_s = max(deadline_ms - self._wall_ms(), 0) / 1000
        self._timer = self._loop.call_later(wait_s, self._tick, context=self._context)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Peers:
    """The links between the servers."""

    def __init__(self, delay_s: Delay) -> None:
        self.servers: dict[int, SimulatedServer] = {}
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._links: dict[tuple[int, int], Link[tuple[int, PeerMessage] | None]] = {}
        self._cut: set[tuple[int, int]] = set()
        self._extra_s: dict[tuple[int, int], float] = {}

    def send(self, sender: int, receiver: int, message: tuple[int, PeerMessage] | None) -> None:
        if not self.servers[receiver].is_running:
            return
        pair = (sender, receiver)
        if pair not in self._links:
            self._links[pair] = Link(
                self._loop,
                lambda: self._delay_s(*pair) + self._extra_s.get(pair, 0.0),
                partial(self.servers[receiver].hear, sender),
                lambda: pair in self._cut,
                lambda: self.servers[receiver].context,
            )
        self._links[pair].send(message)

    def cut(self, sender: int, receiver: int) -> None:
        """From now on nothing of what one sends arrives at the other; it does once the cut has healed."""
        self._cut.add((sender, receiver))

    def delay(self, sender: int, receiver: int, by_s: float) -> None:
        """From now on what one sends takes so much longer to the other; 0: as usual."""
        self._extra_s[sender, receiver] = by_s

    def mend(self, sender: int, receiver: int) -> None:
        """End a cut: what was held arrives."""
        self._cut.discard((sender, receiver))
        if (link := self._links.get((sender, receiver))) is not None:
            link.resume()

    def reset(self, one: int, other: int) -> None:
        """The connections of two servers end: what is under way is lost, and both notice."""
        for sender, receiver in ((one, other), (other, one)):
            if (link := self._links.get((sender, receiver))) is not None:
                link.clear()
            self.send(sender, receiver, None)

    def heal(self) -> None:
        self._cut.clear()
        for link in self._links.values():
            link.resume()

    def end(self, server: int) -> None:
        """A server has ended: its connections with the others end, and what is under way to it is lost."""
        for other in self.servers:
            if other != server:
                if (link := self._links.get((other, server))) is not None:
                    link.clear()
                self.send(server, other, None)


class SimulatedZooKeeper:
    """One server, or an ensemble of three. `wall_ms` is the servers' clock, by which sessions expire, too."""

    def __init__(
        self,
        delay_s: Delay,
        wall_ms: Callable[[], int],
        *,
        servers: int = 1,
        limits: Limits | None = None,
    ) -> None:
        self.peers = Peers(delay_s)
        numbers = range(1, servers + 1)
        for number in numbers:
            others = tuple(other for other in numbers if other != number)
            self.peers.servers[number] = SimulatedServer(
                Identity(number, others), limits or Limits(), self.peers, wall_ms
            )

    @property
    def servers(self) -> tuple[SimulatedServer, ...]:
        return tuple(self.peers.servers.values())

    @property
    def connect_string(self) -> str:
        """host:port of every server, in order; after the start."""
        return ",".join(server.address for server in self.servers)

    async def start(self) -> None:
        """Start all servers, all in the caller's context; they serve once they have elected a leader."""
        for server in self.servers:
            await server.start()

    def stop(self) -> None:
        for server in self.servers:
            server.kill()

    @property
    def leader(self) -> SimulatedServer | None:
        """The server that leads, or serves alone."""
        return next((server for server in self.servers if server.mode in ("leader", "standalone")), None)
