"""What clients and servers say to each other, as values. Names and numbers are those of ZooKeeper's protocol."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias


class Code(IntEnum):
    """The error codes of KeeperException that the model gives."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    SESSION_MOVED = -118


class EventType(IntEnum):
    """What a watch reports (Watcher.Event.EventType)."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class Stat(NamedTuple):
    """A znode's metadata, in the order of the protocol. Times are in ms; `ephemeral_owner` is a session id or 0."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    children: int
    pzxid: int


# -- requests ----------------------------------------------------------------------------------------------------------


class Create(NamedTuple):
    """Create a znode that anybody may change (OPEN_ACL_UNSAFE). Answered with its path."""

    path: str
    data: bytes | None
    ephemeral: bool = False
    sequential: bool = False


class Delete(NamedTuple):
    """Delete a znode without children; version -1 matches any. Answered with None."""

    path: str
    version: int = -1


class SetData(NamedTuple):
    """Replace the data; version -1 matches any. Answered with the new `Stat`."""

    path: str
    data: bytes | None
    version: int = -1


class CheckVersion(NamedTuple):
    """Only as part of a `Multi`: fail unless the znode has this version. Answered with None."""

    path: str
    version: int


Part: TypeAlias = Create | Delete | SetData | CheckVersion


class Multi(NamedTuple):
    """All parts or none. Answered with a tuple of each part's answer, or of each part's `Code` if one failed.

    The parts before the failed one then have OK, those after it RUNTIME_INCONSISTENCY.
    """

    parts: tuple[Part, ...]


class Sync(NamedTuple):
    """Make the server catch up with the leader. Answered with the path."""

    path: str


class Exists(NamedTuple):
    """Answered with the `Stat`. Arms the data watch, even if there is no such znode."""

    path: str
    watch: bool = False


class GetData(NamedTuple):
    """Answered with (data, `Stat`). Arms the data watch of a znode that is there."""

    path: str
    watch: bool = False


class GetChildren(NamedTuple):
    """Answered with a tuple of names. Arms the child watch of a znode that is there."""

    path: str
    watch: bool = False


class CloseSession(NamedTuple):
    """End the session and its ephemeral znodes. Answered with None, and the server closes the connection."""


class CreateSession(NamedTuple):
    """Between servers: a session begins."""

    timeout_ms: int


Write: TypeAlias = Create | Delete | SetData | Multi | CloseSession | CreateSession
Read: TypeAlias = Exists | GetData | GetChildren
Request: TypeAlias = Create | Delete | SetData | Multi | Sync | Exists | GetData | GetChildren | CloseSession
Answer: TypeAlias = (
    "str | Stat | tuple[bytes | None, Stat] | tuple[str, ...] | tuple[str | Stat | Code | None, ...] | None"
)


# -- frames: client to server ----------------------------------------------------------------------------------------


class Connect(NamedTuple):
    """The first frame of a connection. `session_id` 0 asks for a new session."""

    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes


class Call(NamedTuple):
    """A request under the client's own number."""

    xid: int
    request: Request


class Ping(NamedTuple):
    """Keeps the session alive. Answered with `Pong`."""


FromClient: TypeAlias = Connect | Call | Ping


# -- frames: server to client ----------------------------------------------------------------------------------------


class Connected(NamedTuple):
    """The reply to `Connect`. With `timeout_ms` 0 there is no such session, and the server closes the connection."""

    timeout_ms: int
    session_id: int
    password: bytes


class Reply(NamedTuple):
    """The answer to a `Call`. `zxid` is the last change that the server has applied."""

    xid: int
    zxid: int
    code: Code
    answer: Answer


class Notification(NamedTuple):
    """A watch has fired, because of the change `zxid`."""

    event: EventType
    path: str
    zxid: int


class Pong(NamedTuple):
    zxid: int


FromServer: TypeAlias = Connected | Reply | Notification | Pong
