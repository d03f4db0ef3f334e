"""The leader's decision on a write: the change that it makes, or the error (PrepRequestProcessor).

The order of checks is the server's, so a request that is wrong in two ways gets the same error. Decisions are made
ahead of the tree: writes that are proposed and not committed yet, and the earlier parts of the same transaction, are
seen as if they were applied.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from comparison.simulation.zookeeper.model.protocol import (
    CheckVersion,
    CloseSession,
    Code,
    Create,
    CreateSession,
    Delete,
    Multi,
    Part,
    SetData,
    Write,
)
from comparison.simulation.zookeeper.model.tree import (
    ROOT,
    SPECIAL,
    Change,
    CheckTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    PartTxn,
    SetDataTxn,
    parent_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.zookeeper.model.tree import DataTree

ANY_VERSION = -1
#: PathUtils.validatePath: an empty, "." or ".." component, a slash at the end, or a character that is not plain.
_INVALID = re.compile(r"//|/\.{1,2}(/|\Z)|/\Z|[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")


class Refused(Exception):
    """A check has failed."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class Outlook(NamedTuple):
    """What the next write will find at a path, as far as decisions depend on it (ChangeRecord)."""

    version: int
    owner: int
    creates: int
    children: int


class Preparation:
    """Decides writes one after the other. `check` gives the error of a session, or OK."""

    def __init__(self, tree: DataTree, check: Callable[[int, int], Code]) -> None:
        self._tree = tree
        self._check = check
        #: Decided and not applied: the outlook on a path (None: no znode), and the write that it comes from.
        self._outlooks: dict[str, tuple[int, Outlook | None]] = {}
        self._decided: deque[tuple[int, str]] = deque()
        #: Of the write that is being decided; a failed transaction forgets them.
        self._fresh: dict[str, Outlook | None] = {}

    def decide(self, zxid: int, session_id: int, owner: int, write: Write) -> Change:
        """Decide the write `zxid` of a session that came over the server `owner`."""
        self._fresh = {}
        try:
            change = self._decision(session_id, owner, write)
        except Refused as refused:
            return ErrorTxn(refused.code)
        for path, outlook in self._fresh.items():
            self._outlooks[path] = (zxid, outlook)
            self._decided.append((zxid, path))
        return change

    def applied(self, zxid: int) -> None:
        """The tree has caught up to this write."""
        while self._decided and self._decided[0][0] <= zxid:
            at, path = self._decided.popleft()
            if self._outlooks[path][0] == at:
                del self._outlooks[path]

    # -- one write ---------------------------------------------------------------------------------------------------

    def _decision(self, session_id: int, owner: int, write: Write) -> Change:
        match write:
            case Multi(parts):
                return self._multi(session_id, owner, parts)
            case CloseSession():
                return self._close(session_id)
            case CreateSession(timeout_ms):
                return CreateSessionTxn(timeout_ms)
        return self._part(session_id, owner, write)

    def _multi(self, session_id: int, owner: int, parts: tuple[Part, ...]) -> MultiTxn:
        decided: list[PartTxn] = []
        for part in parts:
            if decided and isinstance(decided[-1], ErrorTxn):
                decided.append(ErrorTxn(Code.RUNTIME_INCONSISTENCY))
                continue
            try:
                decided.append(self._part(session_id, owner, part))
            except Refused as refused:
                self._fresh.clear()
                decided.append(ErrorTxn(refused.code))
        return MultiTxn(tuple(decided))

    def _close(self, session_id: int) -> CloseSessionTxn:
        """Its znodes in the order of the server's set; also those that are only decided."""
        owned = self._tree.ephemerals(session_id)
        for _, path in self._decided:
            outlook = self._outlooks[path][1]
            if outlook is None:
                owned.discard(path)
            elif outlook.owner == session_id:
                owned.add(path)
        for path in owned:
            self._fresh[path] = None
            above = parent_of(path)
            self._fresh[above] = (found := self._at(above))._replace(children=found.children - 1)
        return CloseSessionTxn(tuple(owned))

    def _part(self, session_id: int, owner: int, part: Part) -> PartTxn:
        if (code := self._check(session_id, owner)) is not Code.OK:
            raise Refused(code)
        match part:
            case Create():
                return self._create(session_id, part)
            case Delete(path, version):
                return self._delete(path, version)
            case SetData(path, data, version):
                _validate(path)
                found = self._at(path)
                new = _next_version(found.version, version)
                self._fresh[path] = found._replace(version=new)
                return SetDataTxn(path, data, new)
            case CheckVersion(path, version):
                _validate(path)
                _next_version(self._at(path).version, version)
                return CheckTxn(path)

    def _create(self, session_id: int, create: Create) -> CreateTxn:
        path = create.path
        above = _parent(path)
        parent = self._at(above)
        if create.sequential:
            path = f"{path}{parent.creates:010d}"
        _validate(path)
        if self._look(path) is not None:
            raise Refused(Code.NODE_EXISTS)
        if parent.owner:
            raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
        owner = session_id if create.ephemeral else 0
        creates = parent.creates + 1
        self._fresh[above] = parent._replace(creates=creates, children=parent.children + 1)
        self._fresh[path] = Outlook(0, owner, 0, 0)
        return CreateTxn(path, create.data, owner, creates)

    def _delete(self, path: str, version: int) -> DeleteTxn:
        above = _parent(path)
        if path in SPECIAL:
            raise Refused(Code.BAD_ARGUMENTS)
        parent, found = self._at(above), self._at(path)
        _next_version(found.version, version)
        if found.children:
            raise Refused(Code.NOT_EMPTY)
        self._fresh[above] = parent._replace(children=parent.children - 1)
        self._fresh[path] = None
        return DeleteTxn(path)

    # -- what the write will find --------------------------------------------------------------------------------------

    def _at(self, path: str) -> Outlook:
        """Raises `Refused` if there will be no such znode."""
        if (found := self._look(path)) is None:
            raise Refused(Code.NO_NODE)
        return found

    def _look(self, path: str) -> Outlook | None:
        if path in self._fresh:
            return self._fresh[path]
        if path in self._outlooks:
            return self._outlooks[path][1]
        node = self._tree.nodes.get(path)
        return None if node is None else Outlook(node.version, node.owner, node.creates, len(node.children))


def _parent(path: str) -> str:
    if "/" not in path or "\0" in path:
        raise Refused(Code.BAD_ARGUMENTS)
    return path[: path.rindex("/")] or ROOT


def _validate(path: str) -> None:
    if not path.startswith("/") or (path != ROOT and _INVALID.search(path)):
        raise Refused(Code.BAD_ARGUMENTS)


def _next_version(version: int, expected: int) -> int:
    if expected not in (ANY_VERSION, version):
        raise Refused(Code.BAD_VERSION)
    return version + 1
