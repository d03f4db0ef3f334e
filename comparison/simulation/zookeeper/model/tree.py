"""Znodes after some number of transactions (DataTree): applies decided changes, answers reads, refuses nothing.

A transaction carries what was decided (`preparing.py`), so that every server that applies the same log has the same
tree. The tree also holds what must survive a server: the sessions, and whose each ephemeral znode is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from comparison.simulation.zookeeper.model.java import HashSet
from comparison.simulation.zookeeper.model.protocol import Code, EventType, Stat

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.protocol import Answer

ROOT = "/"
#: Every server has these, and refuses to delete them (ZooKeeperServer.isSpecialPath).
SPECIAL = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")


# -- decided changes ---------------------------------------------------------------------------------------------------


class CreateTxn(NamedTuple):
    path: str
    data: bytes | None
    owner: int  #: the session of an ephemeral znode, otherwise 0
    parent_creates: int  #: of the parent, this one included


class DeleteTxn(NamedTuple):
    path: str


class SetDataTxn(NamedTuple):
    path: str
    data: bytes | None
    version: int


class CheckTxn(NamedTuple):
    path: str


class ErrorTxn(NamedTuple):
    """Nothing changes. Refused requests have a zxid, too."""

    code: Code


PartTxn: TypeAlias = CreateTxn | DeleteTxn | SetDataTxn | CheckTxn | ErrorTxn


class MultiTxn(NamedTuple):
    """All of them, or with errors only, none."""

    parts: tuple[PartTxn, ...]


class CreateSessionTxn(NamedTuple):
    timeout_ms: int


class CloseSessionTxn(NamedTuple):
    """`paths`: its ephemeral znodes, in the order of their deletion."""

    paths: tuple[str, ...]


Change: TypeAlias = PartTxn | MultiTxn | CreateSessionTxn | CloseSessionTxn


class Origin(NamedTuple):
    """Who waits for the answer to a write: a request on a client's connection to a server."""

    server: int
    connection: int
    xid: int


class Transaction(NamedTuple):
    """An entry of the log."""

    zxid: int
    time_ms: int
    session_id: int
    change: Change
    origin: Origin | None


class Trigger(NamedTuple):
    """Something has happened to the znode, for which watches may be armed."""

    event: EventType
    path: str


class Applied(NamedTuple):
    """What a transaction gave its client, and what it triggers, in this order."""

    code: Code
    answer: Answer
    triggers: list[Trigger]


# -- the tree ----------------------------------------------------------------------------------------------------------


class Znode:
    """A node. `creates` counts the children ever created; a client's cversion also counts those that were deleted."""

    __slots__ = ("children", "creates", "ctime", "czxid", "data", "mtime", "mzxid", "owner", "pzxid", "version")

    def __init__(self, data: bytes | None, owner: int, zxid: int, time_ms: int) -> None:
        self.data = data
        self.owner = owner
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = time_ms
        self.version = self.creates = 0
        self.children: dict[str, None] = {}  #: names, in the order of creation

    def stat(self) -> Stat:
        """As DataNode.copyStat computes it."""
        children = len(self.children)
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            2 * self.creates - children,
            0,
            self.owner,
            len(self.data) if self.data else 0,
            children,
            self.pzxid,
        )


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or ROOT


class DataTree:
    """See the module."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {}
        self.sessions: dict[int, int] = {}  #: session id -> timeout in ms
        self.applied = 0  #: the last zxid
        #: Successful reads and applied writes by the first component of the path (ServerMetrics ..._per_namespace).
        self.reads: dict[str, int] = {}
        self.writes: dict[str, int] = {}
        self._ephemerals: dict[int, HashSet] = {}
        for path in SPECIAL:
            self.nodes[path] = Znode(b"", 0, 0, 0)
            if path != ROOT:
                # Set up without counting as creates: the root of a new server has the cversion -1.
                self.nodes[parent_of(path)].children[path.rpartition("/")[2]] = None

    def ephemerals(self, session_id: int) -> HashSet:
        """A copy of the paths of a session's znodes."""
        owned = self._ephemerals.get(session_id)
        return HashSet() if owned is None else owned.clone()

    @property
    def ephemeral_count(self) -> int:
        return sum(map(len, self._ephemerals.values()))

    # -- reads -------------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> tuple[Code, Stat | None]:
        node = self._read(path)
        return (Code.NO_NODE, None) if node is None else (Code.OK, node.stat())

    def get(self, path: str) -> tuple[Code, tuple[bytes | None, Stat] | None]:
        node = self._read(path)
        return (Code.NO_NODE, None) if node is None else (Code.OK, (node.data, node.stat()))

    def names(self, path: str) -> tuple[Code, tuple[str, ...] | None]:
        node = self._read(path)
        return (Code.NO_NODE, None) if node is None else (Code.OK, tuple(node.children))

    def _read(self, path: str) -> Znode | None:
        node = self.nodes.get(path)
        if node is not None:
            _count(self.reads, path)
        return node

    # -- writes ------------------------------------------------------------------------------------------------------

    def apply(self, txn: Transaction) -> Applied:
        """Apply the next transaction of the log."""
        triggers: list[Trigger] = []
        code, answer = self._perform(txn, txn.change, triggers)
        self.applied = txn.zxid
        return Applied(code, answer, triggers)

    def _perform(self, txn: Transaction, change: Change, triggers: list[Trigger]) -> tuple[Code, Answer]:
        match change:
            case CreateTxn(path):
                self._create(txn, change)
                triggers += (
                    Trigger(EventType.CREATED, path),
                    Trigger(EventType.CHILDREN_CHANGED, parent_of(path)),
                )
                return Code.OK, path
            case DeleteTxn(path):
                self._delete(txn, path, triggers)
            case SetDataTxn(path, data, version):
                node = self.nodes[path]
                node.data, node.version, node.mzxid, node.mtime = data, version, txn.zxid, txn.time_ms
                _count(self.writes, path)
                triggers.append(Trigger(EventType.DATA_CHANGED, path))
                return Code.OK, node.stat()
            case MultiTxn(parts):
                return Code.OK, self._multi(txn, parts, triggers)
            case ErrorTxn(code):
                return code, None
            case CreateSessionTxn(timeout_ms):
                self.sessions[txn.session_id] = timeout_ms
            case CloseSessionTxn(paths):
                self.sessions.pop(txn.session_id, None)
                for path in paths:
                    self._delete(txn, path, triggers)
                self._ephemerals.pop(txn.session_id, None)
        return Code.OK, None

    def _create(self, txn: Transaction, change: CreateTxn) -> None:
        above = self.nodes[parent_of(change.path)]
        above.creates, above.pzxid = change.parent_creates, txn.zxid
        above.children[change.path.rpartition("/")[2]] = None
        self.nodes[change.path] = Znode(change.data, change.owner, txn.zxid, txn.time_ms)
        if change.owner:
            self._ephemerals.setdefault(change.owner, HashSet()).add(change.path)
        _count(self.writes, change.path)

    def _delete(self, txn: Transaction, path: str, triggers: list[Trigger]) -> None:
        node = self.nodes.pop(path)
        above = self.nodes[parent_of(path)]
        above.pzxid = txn.zxid
        del above.children[path.rpartition("/")[2]]
        if node.owner:
            self._ephemerals[node.owner].discard(path)
        _count(self.writes, path)
        triggers += (Trigger(EventType.DELETED, path), Trigger(EventType.CHILDREN_CHANGED, parent_of(path)))

    def _multi(
        self, txn: Transaction, parts: tuple[PartTxn, ...], triggers: list[Trigger]
    ) -> tuple[str | Stat | Code | None, ...]:
        """The answers of the parts, or their codes: those before a failed one are OK (DataTree.processTxn)."""
        if any(isinstance(part, ErrorTxn) for part in parts):
            return tuple(part.code if isinstance(part, ErrorTxn) else Code.OK for part in parts)
        answers: list[str | Stat | Code | None] = []
        for part in parts:
            _, answer = self._perform(txn, part, triggers)
            assert answer is None or isinstance(answer, str | Stat)
            answers.append(answer)
        return tuple(answers)


def _count(counts: dict[str, int], path: str) -> None:
    """Count an operation by the first component of its path; those on the root are not (PathUtils.getTopNamespace)."""
    namespace = path[1:].partition("/")[0]
    if namespace:
        counts[namespace] = counts.get(namespace, 0) + 1
