"""ZooKeeper's rules without a ZooKeeper: a log of transactions, servers that have applied part of it, sessions.

Nothing runs by itself. `perform` performs one request of one session, as its server would. The caller decides which
server lags, which session ends and when notifications are delivered, so every interleaving can be written down or
drawn.

The rules (`test_interleavings_on_zookeeper.py` compares them with a real server, request by request):

- The leader decides writes one after the other, and gives each the log's next number (zxid). The writer's server has
  applied everything up to the write before it answers; other servers may lag.
- The session's own server answers reads from what it has applied: they may be stale, never torn.
- An ephemeral node belongs to a session; the session's end removes all its nodes in one transaction.
- A watch is one-shot and belongs to (session, path): `exists` and `getData` arm the data watch (`exists` even without a
  node), `getChildren` the child watch. A server fires when *it* applies the change.
- A deletion that fires both kinds of watch is notified once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

ROOT = "/"


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
class Node:
    data: bytes
    owner: int
    czxid: int
    mzxid: int
    pzxid: int
    version: int = 0
    cversion: int = 0
    names: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(
            self.czxid, self.mzxid, self.pzxid, self.version, self.cversion, self.owner, children=len(self.names)
        )


@dataclass(frozen=True, slots=True)
class Change:
    """Part of a transaction in the log: a decided create, delete or setData."""

    kind: str
    path: str
    data: bytes = b""
    owner: int = 0


Transaction = tuple[Change, ...]


class Tree:
    """Znodes after some number of transactions."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {ROOT: Node(b"", 0, 0, 0, 0)}

    def refusal(self, call: Call) -> str:
        """Why a write is refused now; empty if it is not."""
        node = self.nodes.get(call.path)
        match call.op:
            case "create":
                above = self.nodes.get(_parent(call.path))
                if above is None:
                    return "NoNode"
                if above.owner:
                    return "NoChildrenForEphemerals"
                return "NodeExists" if node is not None else ""
            case "delete" | "setData" | "check":
                if node is None:
                    return "NoNode"
                if call.version not in (-1, node.version):
                    return "BadVersion"
                return "NotEmpty" if call.op == "delete" and node.names else ""
        raise AssertionError(call)

    def apply(self, zxid: int, change: Change) -> list[tuple[str, str]]:
        """Apply a change. Returns the events that it fires, in order: (`data created`, path), ..."""
        path, above = change.path, _parent(change.path)
        if change.kind == "setData":
            node = self.nodes[path]
            node.data, node.mzxid, node.version = change.data, zxid, node.version + 1
            return [("changed", path)]
        parent = self.nodes[above]
        parent.cversion, parent.pzxid = parent.cversion + 1, zxid
        if change.kind == "create":
            self.nodes[path] = Node(change.data, change.owner, zxid, zxid, zxid)
            parent.names.add(path.rsplit("/", 1)[1])
            return [("created", path), ("children", above)]
        del self.nodes[path]
        parent.names.discard(path.rsplit("/", 1)[1])
        return [("deleted", path), ("children", above)]


@dataclass(slots=True)
class Server:
    """One server: how much it has applied, and the watches of the sessions connected to it."""

    number: int
    tree: Tree = field(default_factory=Tree)
    applied: int = 0
    lags: bool = False  #: applies only its own sessions' writes
    data_watches: dict[str, set[int]] = field(default_factory=dict)
    child_watches: dict[str, set[int]] = field(default_factory=dict)


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
        self.leader = Tree()
        self.servers = [Server(number) for number in range(servers)]
        self.sessions: dict[int, Session] = {}
        self.stale_reads = 0  #: reads answered by a server that lagged
        self.performed = 0  #: requests
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
        lost: set[str] = set()
        if session.server is not None:
            for watches in (session.server.data_watches, session.server.child_watches):
                lost |= {path for path, sessions in watches.items() if session.number in sessions}
                for sessions in watches.values():
                    sessions.discard(session.number)
            session.server = None
        return lost

    def connect(self, session: Session, server: int) -> bool:
        """Connect to a server. Returns False if it has not applied what the session has seen."""
        assert not session.ended
        if self.servers[server].applied < session.seen:
            return False
        session.server = self.servers[server]
        return True

    def _end(self, session: Session) -> None:
        session.ended = True
        mine = [path for path, node in self.leader.nodes.items() if node.owner == session.number]
        self._commit(tuple(Change("delete", path) for path in sorted(mine)))

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
            reply = self._write(session, call)
            self._catch_up(server)
            if not reply.error and call.op in ("create", "setData"):
                reply = replace(reply, stat=server.tree.nodes[call.path].stat())
        session.seen = max(session.seen, server.applied)
        return replace(reply, zxid=server.applied)

    def _read(self, session: Session, server: Server, call: Call) -> Reply:
        self.stale_reads += server.applied < len(self.log)
        node = server.tree.nodes.get(call.path)
        if call.watch and (node is not None or call.op == "exists"):
            watches = server.child_watches if call.op == "getChildren" else server.data_watches
            watches.setdefault(call.path, set()).add(session.number)
        if node is None:
            return Reply(error="NoNode")
        if call.op == "getChildren":
            return Reply(children=tuple(sorted(node.names)))
        return Reply(data=node.data if call.op == "getData" else b"", stat=node.stat())

    def _write(self, session: Session, call: Call) -> Reply:
        changes: list[Change] = []
        for number, part in enumerate(call.parts if call.op == "multi" else (call,)):
            # Parts of one transaction never depend on each other here.
            if error := self.leader.refusal(part):
                return Reply(error=error, part=number)
            if part.op != "check":
                changes.append(Change(part.op, part.path, part.data, session.number if part.ephemeral else 0))
        self._commit(tuple(changes))
        return Reply()

    # -- changes outside of sessions -------------------------------------------------------------------------------

    def put(self, path: str, data: bytes, owner: int = 0) -> None:
        """Create a node, with its parents, or replace its data."""
        if path in self.leader.nodes:
            self._commit((Change("setData", path, data),))
            return
        if _parent(path) not in self.leader.nodes:
            self.put(_parent(path), b"")
        self._commit((Change("create", path, data, owner),))

    def remove(self, path: str) -> None:
        if path in self.leader.nodes:
            self._commit((Change("delete", path),))

    def data(self, path: str) -> bytes | None:
        """The data at the leader."""
        node = self.leader.nodes.get(path)
        return None if node is None else node.data

    def children(self, path: str) -> tuple[str, ...]:
        node = self.leader.nodes.get(path)
        return () if node is None else tuple(sorted(node.names))

    # -- the log ---------------------------------------------------------------------------------------------------

    def lag(self, server: int) -> None:
        self.servers[server].lags = True

    def follow(self, server: int, transactions: int | None = None) -> None:
        """Apply some of the missing transactions; all of them (None) ends the lag."""
        if transactions is None:
            self.servers[server].lags = False
        self._catch_up(self.servers[server], transactions)

    def _commit(self, transaction: Transaction) -> None:
        self.log.append(transaction)
        for change in transaction:
            self.leader.apply(len(self.log), change)
        for server in self.servers:
            if not server.lags:
                self._catch_up(server)

    def _catch_up(self, server: Server, transactions: int | None = None) -> None:
        last = len(self.log) if transactions is None else min(len(self.log), server.applied + transactions)
        while server.applied < last:
            server.applied += 1
            for change in self.log[server.applied - 1]:
                for event, path in server.tree.apply(server.applied, change):
                    self._fire(server, event, path)

    def _fire(self, server: Server, event: str, path: str) -> None:
        notified: set[int] = set()
        if event != "children":
            notified |= server.data_watches.pop(path, set())
        if event in ("children", "deleted"):
            notified |= server.child_watches.pop(path, set())
        for number in sorted(notified):
            self.sessions[number].inbox.append(Notice(event, path, server.applied))


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT
