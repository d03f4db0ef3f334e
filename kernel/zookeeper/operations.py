"""The values of a ZooKeeper session: operations, results, watch events and session states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio


class SessionState(StrEnum):
    """The state of a session as this client sees it."""

    CONNECTED = "connected"  #: a server answers operations
    SUSPENDED = "suspended"  #: disconnected; the session may have expired
    LOST = "lost"  #: a server reported that the session expired; the next CONNECTED is a new one
    CLOSED = "closed"  #: closed by this client


def session_name(session_id: int) -> str:
    """A session id, a signed number, as ZooKeeper prints it."""
    return f"0x{session_id & (2**64 - 1):x}"


class SessionChange(NamedTuple):
    """A state change. `new_session` is true for a CONNECTED with a different session id."""

    state: SessionState
    session_id: int
    new_session: bool = False


class WatchEvent(StrEnum):
    """What a watch reports. `NONE`: the connection broke, which removed the watch. Read again to arm it."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"
    NONE = "none"


class WatchFired(NamedTuple):
    """The argument of a watch callback.

    `zxid` is the change that fired the watch (None from servers before 3.9). For `NONE` it is the last change that
    this client had seen when the connection broke. Java's client sends it when it restores its watches, so that the
    server can find those that would have fired meanwhile.
    """

    path: str
    event: WatchEvent
    zxid: int | None = None


WatchCallback = Callable[[WatchFired], None]


@dataclass(frozen=True, slots=True)
class ZnodeStat:
    """ZooKeeper's metadata of a znode. `ephemeral_owner` is a session id, 0 for a persistent znode."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    children: int
    pzxid: int


@dataclass(frozen=True, slots=True)
class Create:
    """Part of a transaction: create a znode."""

    path: str
    data: bytes | None = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Part of a transaction: delete a znode."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class SetData:
    """Part of a transaction: replace a znode's data."""

    path: str
    data: bytes | None
    version: int = -1


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Part of a transaction: fail unless the znode has this data version."""

    path: str
    version: int


TransactionPart = Create | Delete | SetData | CheckVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation that a session performs once or, with retries, several times."""

    op: str  #: its name in the trace and in the protocol
    path: str  #: the caller's path, without the chroot
    request: Any  #: kazoo's request
    step: str = ""
    cause: str = ""
    watch: WatchCallback | None = None
    parts: tuple[TransactionPart, ...] = ()
    only_in: int = 0  #: the only session to send it in; 0: any, also a later one


@dataclass(slots=True, eq=False)
class Attempt:
    """One request of an operation, and the future of its reply."""

    operation: Operation
    future: asyncio.Future[Any]
    _sent_s: float | None = None

    def mark_sent(self) -> None:
        self._sent_s = self.future.get_loop().time()

    @property
    def latency_ns(self) -> int | None:
        """How long ago it was sent; None: it was not."""
        return None if self._sent_s is None else int((self.future.get_loop().time() - self._sent_s) * 1e9)
