"""A server's side towards its clients: connections, the order of answers, reads, watches.

In ZooKeeper: NIOServerCnxn, CommitProcessor and FinalRequestProcessor.

A client's requests are answered in its order. Writes are handed on at once; a read that comes behind a write waits
until this server has applied it, so a client sees its own writes. A read is answered from what this server has applied,
which may be old. Notifications of a change are sent before anything that shows the change.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from comparison.simulation.zookeeper.model.messages import HangUp, SendToClient
from comparison.simulation.zookeeper.model.protocol import (
    Answer,
    CloseSession,
    Code,
    Connect,
    Connected,
    CreateSession,
    Exists,
    FromClient,
    GetChildren,
    GetData,
    Notification,
    Ping,
    Pong,
    Read,
    Reply,
    Sync,
    Write,
)
from comparison.simulation.zookeeper.model.sessions import Limits, first_session_id, password_of
from comparison.simulation.zookeeper.model.tree import CloseSessionTxn, Origin
from comparison.simulation.zookeeper.model.watches import WatchTable

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.messages import Effect
    from comparison.simulation.zookeeper.model.tree import Applied, DataTree, Transaction

#: Of a `Connected` without a session.
NO_PASSWORD = bytes(16)


class Role(Protocol):
    """What a serving server does with what only a leader can decide; the leader does it itself."""

    def submit(self, now_ms: int, origin: Origin, session_id: int, write: Write) -> None: ...

    def sync(self, origin: Origin) -> None: ...

    def touch(self, now_ms: int, session_id: int, timeout_ms: int) -> bool:
        """A sign of life. Returns False if there is no such session, as far as this server knows."""

    def revalidate(self, now_ms: int, connection: int, session_id: int, timeout_ms: int) -> None:
        """Leads to a call of `revalidated`."""


class _Pending(NamedTuple):
    """A request that waits; `request` is None for a ping."""

    xid: int
    request: Read | Write | Sync | None


@dataclass(slots=True)
class _Connection:
    session_id: int
    timeout_ms: int
    is_established: bool = False
    early: list[FromClient] = field(default_factory=list)  #: sent before the server has answered the `Connect`
    pending: deque[_Pending] = field(default_factory=deque)


class ClientService:
    """See the module. The world numbers connections; `serve` and `close` say when there is a role."""

    def __init__(self, server: int, tree: DataTree, limits: Limits, effects: list[Effect]) -> None:
        self.watches = WatchTable()
        self.received = self.sent = 0  #: packets, pings included
        self._server = server
        self._tree = tree
        self._limits = limits
        self._effects = effects
        self._connections: dict[int, _Connection] = {}
        self._by_session: dict[int, int] = {}
        self._next_session_id = 0
        self._role: Role | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def outstanding(self) -> int:
        return sum(len(connection.pending) for connection in self._connections.values())

    def serve(self, now_ms: int, role: Role) -> None:
        if not self._next_session_id:
            self._next_session_id = first_session_id(self._server, now_ms)
        self._role = role

    def close(self) -> None:
        """There is no quorum any more: end all connections."""
        self._role = None
        for number in list(self._connections):
            self._hang_up(number)

    # -- from clients --------------------------------------------------------------------------------------------------

    def receive(self, now_ms: int, number: int, frame: FromClient) -> None:
        """A client has sent a frame on this connection; the first one is a `Connect`."""
        self.received += 1
        connection = self._connections.get(number)
        if isinstance(frame, Connect):
            self._connect(now_ms, number, frame)
        elif connection is None or self._role is None:
            self._effects.append(HangUp(number))
        elif not connection.is_established:
            connection.early.append(frame)
        elif isinstance(frame, Ping):
            self._request(now_ms, number, connection, _Pending(0, None))
        else:
            self._request(now_ms, number, connection, _Pending(frame.xid, frame.request))

    def disconnected(self, number: int) -> None:
        """The client, or the network, has ended the connection. Its session goes on."""
        connection = self._connections.pop(number, None)
        self.watches.drop(number)
        if connection is not None and self._by_session.get(connection.session_id) == number:
            del self._by_session[connection.session_id]

    def _connect(self, now_ms: int, number: int, connect: Connect) -> None:
        if self._role is None or connect.last_zxid_seen > self._tree.applied:
            # It would show the client an older state than it has seen. It tries another server.
            self._effects.append(HangUp(number))
            return
        timeout_ms = self._limits.granted(connect.timeout_ms)
        session_id = connect.session_id
        if not session_id:
            session_id = self._next_session_id
            self._next_session_id += 1
        elif (earlier := self._by_session.get(session_id)) is not None:
            self._hang_up(earlier)
        self._connections[number] = _Connection(session_id, timeout_ms)
        self._by_session[session_id] = number
        if not connect.session_id:
            self._role.submit(now_ms, Origin(self._server, number, 0), session_id, CreateSession(timeout_ms))
        elif connect.password == password_of(session_id):
            self._role.revalidate(now_ms, number, session_id, timeout_ms)
        else:
            self.revalidated(now_ms, number, session_id, is_valid=False)

    def revalidated(self, now_ms: int, number: int, session_id: int, *, is_valid: bool) -> None:
        connection = self._connections.get(number)
        if connection is None or connection.session_id != session_id:
            return
        if is_valid:
            self._established(now_ms, number, connection)
        else:
            self._send(SendToClient(number, Connected(0, 0, NO_PASSWORD)))
            self._hang_up(number)

    def _established(self, now_ms: int, number: int, connection: _Connection) -> None:
        connection.is_established = True
        session_id = connection.session_id
        self._send(SendToClient(number, Connected(connection.timeout_ms, session_id, password_of(session_id))))
        early, connection.early = connection.early, []
        for frame in early:
            self.receive(now_ms, number, frame)

    def _request(self, now_ms: int, number: int, connection: _Connection, pending: _Pending) -> None:
        assert self._role is not None
        if not self._role.touch(now_ms, connection.session_id, connection.timeout_ms):
            return  # "Dropping request": the session is ending, and then the connection
        request = pending.request
        if request is None or isinstance(request, Read):
            if connection.pending:
                connection.pending.append(pending)
            else:
                self._read(number, pending)
            return
        connection.pending.append(pending)
        origin = Origin(self._server, number, pending.xid)
        if isinstance(request, Sync):
            self._role.sync(origin)
        else:
            self._role.submit(now_ms, origin, connection.session_id, request)

    # -- answers -------------------------------------------------------------------------------------------------------

    def applied(self, now_ms: int, txn: Transaction, applied: Applied) -> None:
        """This server has applied a transaction, perhaps of one of its clients."""
        for event, path in applied.triggers:
            for watching in self.watches.trigger(event, path):
                self._send(SendToClient(watching, Notification(event, path, txn.zxid)))
        if txn.origin is not None and txn.origin.server == self._server:
            self.completed(now_ms, txn.origin, applied.code, applied.answer)
        if isinstance(txn.change, CloseSessionTxn) and (number := self._by_session.get(txn.session_id)) is not None:
            self._hang_up(number)

    def completed(self, now_ms: int, origin: Origin, code: Code = Code.OK, answer: Answer = None) -> None:
        """A write or sync of one of this server's clients is done."""
        number = origin.connection
        connection = self._connections.get(number)
        if connection is None:
            return
        if not connection.is_established:
            self._established(now_ms, number, connection)
            return
        xid, request = connection.pending.popleft()
        assert xid == origin.xid, f"request {origin.xid} is done, {xid} is next"
        if code is Code.SESSION_MOVED or (isinstance(answer, tuple) and Code.SESSION_MOVED in answer):
            self._hang_up(number)  # an error of the connection (ZOOKEEPER-710)
            return
        if isinstance(request, Sync):
            answer = request.path
        self._send(SendToClient(number, Reply(xid, self._tree.applied, code, answer)))
        if isinstance(request, CloseSession):
            self._hang_up(number)
            return
        while connection.pending and not isinstance(connection.pending[0].request, Write | Sync):
            self._read(number, connection.pending.popleft())

    def _read(self, number: int, pending: _Pending) -> None:
        code: Code
        answer: Answer
        match pending.request:
            case Exists(path, watch):
                code, answer = self._tree.exists(path)
                if watch:
                    self.watches.arm_data(path, number)
            case GetData(path, watch):
                code, answer = self._tree.get(path)
                if watch and code is Code.OK:
                    self.watches.arm_data(path, number)
            case GetChildren(path, watch):
                code, answer = self._tree.names(path)
                if watch and code is Code.OK:
                    self.watches.arm_children(path, number)
            case _:
                self._send(SendToClient(number, Pong(self._tree.applied)))
                return
        self._send(SendToClient(number, Reply(pending.xid, self._tree.applied, code, answer)))

    def _send(self, effect: SendToClient) -> None:
        self.sent += 1
        self._effects.append(effect)

    def _hang_up(self, number: int) -> None:
        self.disconnected(number)
        self._effects.append(HangUp(number))
