"""The values of a ZooKeeper session: what is asked, what comes back, what is notified, how the session stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio


class SessionState(StrEnum):
    """How a session stands, as this side knows."""

    CONNECTED = "connected"  #: operations are being answered
    SUSPENDED = "suspended"  #: no server is reached; the session may live or be gone
    LOST = "lost"  #: a server said that the session is over; the next CONNECTED is a new one
    CLOSED = "closed"  #: ended by this side


def session_name(session_id: int) -> str:
    """A session id as ZooKeeper prints it; ids come as signed numbers."""
    return f"0x{session_id & (2**64 - 1):x}"


class SessionChange(NamedTuple):
    """One change of state. `new_session` is true for a CONNECTED with another session id than before."""

    state: SessionState
    session_id: int
    new_session: bool = False


class WatchEvent(StrEnum):
    """What a watch saw; `NONE` is the session's break, which took the watch away: read again and re-arm."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"
    NONE = "none"


class WatchFired(NamedTuple):
    """What a watch's callback is given.

    `zxid` is the change that fired it (servers since 3.9, else None). For `NONE` it is the last change that this
    side had seen when the connection broke: what Java's client sends with its watches, for the server to tell
    which of them would have fired meanwhile.
    """

    path: str
    event: WatchEvent
    zxid: int | None = None


WatchCallback = Callable[[WatchFired], None]


@dataclass(frozen=True, slots=True)
class ZnodeStat:
    """A znode's metadata, by ZooKeeper's own meanings. `ephemeral_owner` is a session id, 0 for persistent ones."""

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
    """Part of a transaction: it fails unless the znode has this data version."""

    path: str
    version: int


TransactionPart = Create | Delete | SetData | CheckVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation as the session performs it, once or, with retries, several times."""

    op: str  #: its name in the trace and in the protocol
    path: str  #: as the caller named it, without the chroot
    request: Any  #: kazoo's
    step: str = ""
    cause: str = ""
    watch: WatchCallback | None = None
    parts: tuple[TransactionPart, ...] = ()
    only_in: int = 0  #: the session that it may be sent in; 0: any, also a later one


@dataclass(slots=True, eq=False)
class Try:
    """One physical try of an operation."""

    operation: Operation
    future: asyncio.Future[Any]
