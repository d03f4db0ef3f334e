"""ZooKeeper as a test of interleavings needs it: servers that have applied part of a log, and sessions.

The rules are those of the simulation's model (`comparison.simulation.zookeeper.model`), whose trees, decisions and
watches this puts together without messages: `perform` performs one request of one session at once. The caller decides
which server lags, which session ends and when notifications are delivered, so every interleaving can be written down
or drawn. (`test_interleavings_on_zookeeper.py` compares it with a real server, request by request.)

- The leader decides writes one after the other, and gives each that is granted the log's next number (zxid). The
  writer's server has applied everything up to the write before it answers; other servers may lag.
- The session's own server answers reads from what it has applied: they may be stale, never torn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from comparison.simulation.zookeeper.model import protocol
from comparison.simulation.zookeeper.model.preparing import Preparation
from comparison.simulation.zookeeper.model.protocol import Code, EventType
from comparison.simulation.zookeeper.model.tree import (
    Change,
    CloseSessionTxn,
    CreateTxn,
    DataTree,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetDataTxn,
    Transaction,
    parent_of,
)
from comparison.simulation.zookeeper.model.watches import WatchTable

_ERRORS = {
    Code.NO_NODE: "NoNode",
    Code.NODE_EXISTS: "NodeExists",
    Code.BAD_VERSION: "BadVersion",
    Code.NOT_EMPTY: "NotEmpty",
    Code.NO_CHILDREN_FOR_EPHEMERALS: "NoChildrenForEphemerals",
}
_EVENTS = {
    EventType.CREATED: "created",
    EventType.DELETED: "deleted",
    EventType.DATA_CHANGED: "changed",
    EventType.CHILDREN_CHANGED: "children",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request, named as in the protocol. `version` -1 matches any; `parts` are those of a `multi`.

    With `only_in`, the member sends it in that session or not at all.
    """

    op: str
    path: str
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False
    watch: bool = False
    parts: tuple[Call, ...] = ()
    only_in: int = 0

    def write(self) -> protocol.Create | protocol.Delete | protocol.SetData | protocol.Multi:
        """The model's request, for a write."""
        if self.op == "multi":
            return protocol.Multi(tuple(part.part() for part in self.parts))
        part = self.part()
        assert not isinstance(part, protocol.CheckVersion)
        return part

    def part(self) -> protocol.Part:
        match self.op:
            case "create":
                return protocol.Create(self.path, self.data, self.ephemeral)
            case "delete":
                return protocol.Delete(self.path, self.version)
            case "setData":
                return protocol.SetData(self.path, self.data, self.version)
            case "check":
                return protocol.CheckVersion(self.path, self.version)
        raise AssertionError(self)


@dataclass(frozen=True, slots=True)
class Stat:
    """The part of a node's metadata that is used; `owner` is the session of an ephemeral node, otherwise 0."""

    czxid: int
    mzxid: int
    pzxid: int
    version: int
    cversion: int
    owner: int
    children: int


@dataclass(frozen=True, slots=True)
class Reply:
    """`error` is the name of a class of `kernel.zookeeper.errors`, or empty."""

    data: bytes = b""
    children: tuple[str, ...] = ()
    stat: Stat | None = None
    error: str = ""
    part: int = 0  #: of a `multi`: the one that failed
    zxid: int = 0  #: the last zxid applied by the answering server


@dataclass(frozen=True, slots=True)
class Notice:
    """A watch has fired: created, deleted, changed or children."""

    event: str
    path: str
    zxid: int = field(default=0, compare=False)


@dataclass(slots=True)
class Server:
    """One server: what it has applied, and the watches of the sessions connected to it."""

    number: int
    tree: DataTree = field(default_factory=DataTree)
    lags: bool = False  #: applies only its own sessions' writes
    watches: WatchTable = field(default_factory=WatchTable)

    @property
    def applied(self) -> int:
        return self.tree.applied


@dataclass(slots=True)
class Session:
    """A session: its server while connected, and its undelivered notifications."""

    number: int
    server: Server | None
    seen: int = 0  #: the newest zxid that it has seen; it connects only to servers that have applied that
    ended: bool = False
    inbox: deque[Notice] = field(default_factory=deque)


class ModelZooKeeper:
    """The ensemble. Server 0 lags only on request."""

    def __init__(self, servers: int = 1) -> None:
        self.log: list[Transaction] = []
        self.leader = DataTree()
        self.servers = [Server(number) for number in range(servers)]
        self.sessions: dict[int, Session] = {}
        self.stale_reads = 0  #: reads answered by a server that lagged
        self.performed = 0  #: requests
        self._preparation = Preparation(self.leader, lambda _session, _server: Code.OK)
        self._next = 1

    # -- sessions --------------------------------------------------------------------------------------------------

    def open(self, server: int = 0) -> Session:
        session = Session(self._next, self.servers[server])
        self._next += 1
        self.sessions[session.number] = session
        return session

    def close(self, session: Session) -> None:
        """End the session by the client: one transaction removes its nodes."""
        if not session.ended:
            self._end(session)
            if session.server is not None:
                self._catch_up(session.server)
        self.disconnect(session)

    def expire(self, session: Session) -> None:
        """End the session by the leader; the client finds out when it reconnects."""
        if not session.ended:
            self._end(session)
        self.disconnect(session)

    def disconnect(self, session: Session) -> set[str]:
        """Break the connection. Returns the paths whose watches are lost."""
        server, session.server = session.server, None
        return set() if server is None else server.watches.drop(session.number)

    def connect(self, session: Session, server: int) -> bool:
        """Connect to a server. Returns False if it has not applied what the session has seen."""
        assert not session.ended
        if self.servers[server].applied < session.seen:
            return False
        session.server = self.servers[server]
        return True

    def _end(self, session: Session) -> None:
        session.ended = True
        self._write(session.number, protocol.CloseSession())

    # -- requests --------------------------------------------------------------------------------------------------

    def perform(self, session: Session, call: Call) -> Reply:
        """Perform one request of a connected session."""
        server = session.server
        assert server is not None, f"session {session.number} is not connected"
        assert not session.ended
        self.performed += 1
        if call.op in ("exists", "getData", "getChildren"):
            reply = self._read(session, server, call)
        elif call.op == "sync":
            self._catch_up(server)
            reply = Reply()
        else:
            reply = self._write(session.number, call.write())
            self._catch_up(server)
            if not reply.error and call.op in ("create", "setData"):
                reply = replace(reply, stat=_stat(server.tree.nodes[call.path].stat()))
        session.seen = max(session.seen, server.applied)
        return replace(reply, zxid=server.applied)

    def _read(self, session: Session, server: Server, call: Call) -> Reply:
        self.stale_reads += server.applied < len(self.log)
        node = server.tree.nodes.get(call.path)
        if call.watch and (node is not None or call.op == "exists"):
            arm = server.watches.arm_children if call.op == "getChildren" else server.watches.arm_data
            arm(call.path, session.number)
        if node is None:
            return Reply(error="NoNode")
        if call.op == "getChildren":
            return Reply(children=tuple(sorted(node.children)))
        return Reply(data=node.data or b"" if call.op == "getData" else b"", stat=_stat(node.stat()))

    def _write(self, session: int, write: protocol.Write) -> Reply:
        zxid = len(self.log) + 1
        change = self._preparation.decide(zxid, session, 0, write)
        for number, part in enumerate(_parts(change)):
            if isinstance(part, ErrorTxn):
                return Reply(error=_ERRORS[part.code], part=number)
        self.log.append(txn := Transaction(zxid, 0, session, change, None))
        self.leader.apply(txn)
        self._preparation.applied(zxid)
        for server in self.servers:
            if not server.lags:
                self._catch_up(server)
        return Reply()

    # -- changes outside of sessions -------------------------------------------------------------------------------

    def put(self, path: str, data: bytes, owner: int = 0) -> None:
        """Create a node, with its parents, or replace its data."""
        if path in self.leader.nodes:
            self._write(0, protocol.SetData(path, data))
            return
        if parent_of(path) not in self.leader.nodes:
            self.put(parent_of(path), b"")
        self._write(owner, protocol.Create(path, data, ephemeral=owner != 0))

    def remove(self, path: str) -> None:
        if path in self.leader.nodes:
            self._write(0, protocol.Delete(path))

    def data(self, path: str) -> bytes | None:
        """The data at the leader."""
        node = self.leader.nodes.get(path)
        return None if node is None else node.data

    def children(self, path: str) -> tuple[str, ...]:
        node = self.leader.nodes.get(path)
        return () if node is None else tuple(sorted(node.children))

    # -- the log ---------------------------------------------------------------------------------------------------

    def changed_since(self, zxid: int) -> set[str]:
        """The paths that later transactions have changed."""
        changed: set[str] = set()
        for txn in self.log[zxid:]:
            for part in _parts(txn.change):
                if isinstance(part, CreateTxn | DeleteTxn | SetDataTxn):
                    changed.add(part.path)
                elif isinstance(part, CloseSessionTxn):
                    changed.update(part.paths)
        return changed

    def lag(self, server: int) -> None:
        self.servers[server].lags = True

    def follow(self, server: int, transactions: int | None = None) -> None:
        """Apply some of the missing transactions; all of them (None) ends the lag."""
        if transactions is None:
            self.servers[server].lags = False
        self._catch_up(self.servers[server], transactions)

    def _catch_up(self, server: Server, transactions: int | None = None) -> None:
        last = len(self.log) if transactions is None else min(len(self.log), server.applied + transactions)
        while server.applied < last:
            for event, path in server.tree.apply(self.log[server.applied]).triggers:
                self._fire(server, event, path)

    def _fire(self, server: Server, event: EventType, path: str) -> None:
        for number in server.watches.trigger(event, path):
            self.sessions[number].inbox.append(Notice(_EVENTS[event], path, server.applied))


def _parts(change: Change) -> tuple[Change, ...]:
    return change.parts if isinstance(change, MultiTxn) else (change,)


def _stat(stat: protocol.Stat) -> Stat:
    return Stat(stat.czxid, stat.mzxid, stat.pzxid, stat.version, stat.cversion, stat.ephemeral_owner, stat.children)
