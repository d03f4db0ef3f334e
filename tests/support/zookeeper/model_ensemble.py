"""Modelled servers and clients without an event loop: the test moves the time, and says what arrives when."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from comparison.simulation.zookeeper.model.messages import Effect, HangUp, SendToClient, SendToPeer
from comparison.simulation.zookeeper.model.protocol import (
    Call,
    Connect,
    Connected,
    FromClient,
    Notification,
    Ping,
    Reply,
    Request,
)
from comparison.simulation.zookeeper.model.server import Identity, Server
from comparison.simulation.zookeeper.model.sessions import Limits

LIMITS = Limits(tick_ms=500, min_session_ms=200, max_session_ms=60_000)


@dataclass
class ModelClient:
    """A client, which remembers what has arrived."""

    ensemble: ModelEnsemble
    session_id: int = 0
    password: bytes = bytes(16)
    timeout_ms: int = 4000
    zxid: int = 0
    server: int = 0
    connection: int = 0
    is_connected: bool = False
    is_expired: bool = False
    xid: int = 0
    replies: list[Reply] = field(default_factory=list)
    fired: list[tuple[str, str]] = field(default_factory=list)

    def connect(self, server: int) -> ModelClient:
        """Begin a connection; `is_connected` says whether the server has accepted it."""
        self.disconnect()
        self.server, self.connection = server, self.ensemble.connection(self)
        self.ensemble.send(self, Connect(self.zxid, self.timeout_ms, self.session_id, self.password))
        return self

    def disconnect(self) -> None:
        if self.connection:
            self.ensemble.disconnect(self)
        self.is_connected, self.connection = False, 0

    def send(self, request: Request) -> None:
        self.xid += 1
        self.ensemble.send(self, Call(self.xid, request))

    def ping(self) -> None:
        self.ensemble.send(self, Ping())

    def ask(self, request: Request) -> Any:
        """Send a request, let everything arrive, and return the answer, or the code of the error."""
        self.send(request)
        self.ensemble.settle()
        reply = self.replies[-1]
        assert reply.xid == self.xid, f"{request} was not answered"
        return reply.code if reply.code else reply.answer

    def arrived(self, frame: object) -> None:
        match frame:
            case Connected(timeout_ms, session_id, password):
                self.is_connected = timeout_ms > 0
                self.is_expired = timeout_ms == 0
                self.session_id, self.password = session_id, password
            case Reply():
                self.zxid = frame.zxid
                self.replies.append(frame)
            case Notification(event, path):
                self.fired.append((event.name, path))

    def take(self) -> list[tuple[str, str]]:
        """The notifications since the last time."""
        fired, self.fired = self.fired, []
        return fired


class ModelEnsemble:
    """Servers 1 to `servers`, which are started and serve."""

    def __init__(self, servers: int = 1, limits: Limits = LIMITS) -> None:
        self.now_ms = 1_700_000_000_000
        numbers = range(1, servers + 1)
        self.servers = {n: Server(Identity(n, tuple(m for m in numbers if m != n)), limits) for n in numbers}
        self.dead: set[int] = set()
        #: What is under way, by (sender, receiver).
        self.peers: dict[tuple[int, int], deque[tuple[int, Any]]] = {
            (n, m): deque() for n in numbers for m in numbers if n != m
        }
        self.held: set[tuple[int, int]] = set()
        self._clients: dict[int, ModelClient] = {}
        for number in numbers:
            self._perform(number, self.servers[number].start(self.now_ms))
        self.advance(2000)

    @property
    def leader(self) -> int:
        (leader,) = (n for n in self.alive if self.servers[n].mode in ("leader", "standalone"))
        return leader

    @property
    def followers(self) -> list[int]:
        return [n for n in self.alive if self.servers[n].mode == "follower"]

    @property
    def alive(self) -> list[int]:
        return [n for n in self.servers if n not in self.dead]

    def client(self, server: int = 1, timeout_ms: int = 4000) -> ModelClient:
        """A client with a new session."""
        client = ModelClient(self, timeout_ms=timeout_ms).connect(server)
        self.settle()
        assert client.is_connected
        return client

    # -- time and arrivals -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Deliver everything that is not held."""
        while self.deliver():
            pass

    def deliver(self) -> bool:
        """Deliver one message; False if there is none."""
        for (sender, receiver), waiting in self.peers.items():
            if waiting and (sender, receiver) not in self.held:
                link, message = waiting.popleft()
                if receiver not in self.dead:
                    self._perform(receiver, self.servers[receiver].hear(self.now_ms, sender, link, message))
                return True
        return False

    def advance(self, ms: int) -> None:
        """Let time pass, tick by tick."""
        end_ms = self.now_ms + ms
        while True:
            self.settle()
            due = [(d, n) for n in self.alive if (d := self.servers[n].deadline_ms) is not None and d <= end_ms]
            if not due:
                break
            deadline_ms, number = min(due)
            self.now_ms = max(self.now_ms, deadline_ms)
            self._perform(number, self.servers[number].tick(self.now_ms))
        self.now_ms = end_ms

    # -- faults ------------------------------------------------------------------------------------------------------

    def hold(self, server: int) -> None:
        """Keep back what the leader sends to a follower."""
        self.held.add((self.leader, server))

    def cut(self, server: int) -> None:
        self.held |= {pair for pair in self.peers if server in pair}

    def heal(self) -> None:
        self.held.clear()
        self.settle()

    def kill(self, number: int) -> None:
        self.dead.add(number)
        self.servers[number].stop()
        for client in list(self._clients.values()):
            if client.server == number:
                client.disconnect()
        for pair, waiting in self.peers.items():
            if number in pair:
                waiting.clear()
        for other in self.alive:
            self._perform(other, self.servers[other].peer_lost(self.now_ms, number))

    def restart(self, number: int) -> None:
        self.dead.discard(number)
        self._perform(number, self.servers[number].start(self.now_ms))

    # -- clients -----------------------------------------------------------------------------------------------------

    def connection(self, client: ModelClient) -> int:
        number = max(self._clients, default=0) + 1
        self._clients[number] = client
        return number

    def send(self, client: ModelClient, frame: FromClient) -> None:
        self._perform(client.server, self.servers[client.server].receive(self.now_ms, client.connection, frame))

    def disconnect(self, client: ModelClient) -> None:
        self._clients[client.connection] = ModelClient(self)  # numbers are not used again
        if client.server not in self.dead:
            self.servers[client.server].disconnected(client.connection)

    def _perform(self, number: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendToClient(connection, frame):
                    self._clients[connection].arrived(frame)
                case HangUp(connection):
                    client = self._clients[connection]
                    client.is_connected, client.connection = False, 0
                case SendToPeer(peer, link, message):
                    self.peers[number, peer].append((link, message))
