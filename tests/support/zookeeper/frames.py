"""The part of ZooKeeper's wire format that a proxy has to read: requests, replies and watch notifications by frame.

A frame is a length (int32) and its bytes. The first one in each direction is the connect request and its response;
then a request is (xid, type, body) and a reply (xid, zxid, error, body), where xid -1 is a watch notification and
-2 the answer to a ping. Taken from zookeeper.jute and `ZooDefs.OpCode` of ZooKeeper 3.4 to 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

OPERATIONS = {
    -11: "closeSession",
    1: "create",
    2: "delete",
    3: "exists",
    4: "getData",
    5: "setData",
    6: "getACL",
    7: "setACL",
    8: "getChildren",
    9: "sync",
    11: "ping",
    12: "getChildren2",
    13: "check",
    14: "multi",
    15: "create2",
    100: "auth",
    101: "setWatches",
    105: "setWatches2",
}
ERRORS = {
    0: "ok",
    -2: "RuntimeInconsistency",
    -4: "ConnectionLoss",
    -7: "OperationTimeout",
    -101: "NoNode",
    -102: "NoAuth",
    -103: "BadVersion",
    -108: "NoChildrenForEphemerals",
    -110: "NodeExists",
    -111: "NotEmpty",
    -112: "SessionExpired",
    -118: "SessionMoved",
}
EVENTS = {-1: "none", 1: "created", 2: "deleted", 3: "changed", 4: "children"}
NOTIFICATION, PING = -1, -2
#: The kinds of watches in setWatches, in this order.
_WATCH_LISTS = ("data", "exist", "child", "persistent", "recursive")


class Jute:
    """Reads the fields of a frame, one after the other."""

    def __init__(self, frame: bytes, at: int = 0) -> None:
        self.frame = frame
        self.at = at

    def _take(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self.frame, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def long(self) -> int:
        return self._take(">q")

    def buffer(self) -> bytes | None:
        length = self.int()
        if length < 0:
            return None
        self.at += length
        return self.frame[self.at - length : self.at]

    def text(self) -> str:
        return (self.buffer() or b"").decode()

    @property
    def rest(self) -> int:
        return len(self.frame) - self.at

    def bool(self) -> bool:
        return bool(self._take(">b"))

    def int(self) -> int:
        return self._take(">i")


@dataclass
class Request:
    """A request. `path` is without the chroot; `version` is -1 for any."""

    op: str
    path: str = ""
    data: bytes | None = None  #: of a create or setData; None is ZooKeeper's null, not b""
    ephemeral: bool = False
    watch: bool = False
    version: int = -1
    watches: tuple[tuple[str, str], ...] = ()  #: of setWatches: (data, exist or child; path)
    parts: tuple[Request, ...] = ()  #: of a multi


@dataclass(frozen=True)
class Connect:
    """The first request of a connection; `session` is 0 for a new one."""

    timeout_ms: int
    session: int


@dataclass(frozen=True)
class Connected:
    """The first reply; its timeout is 0 if the server no longer has the session."""

    timeout_ms: int
    session: int
    password: bytes


@dataclass(frozen=True)
class Reply:
    xid: int
    result: str  #: "ok" or the error's name
    event: str = ""  #: of a notification
    path: str = ""  #: of a notification


def connect(frame: bytes) -> Connect:
    read = Jute(frame)
    read.int()  # protocol version
    read.long()  # last zxid seen
    return Connect(read.int(), read.long())


def connected(frame: bytes) -> Connected:
    read = Jute(frame)
    read.int()
    return Connected(read.int(), read.long(), read.buffer() or b"")


def request(frame: bytes, relative: Callable[[str], str] = str) -> tuple[int, Request]:
    """(xid, request); `relative` removes a chroot from a path."""
    read = Jute(frame)
    xid, kind = read.int(), read.int()
    return xid, _body(OPERATIONS.get(kind, f"type {kind}"), read, relative)


def _body(op: str, read: Jute, relative: Callable[[str], str]) -> Request:
    match op:
        case "create" | "create2":
            path, data = relative(read.text()), read.buffer()
            for _ in range(read.int()):
                read.int(), read.text(), read.text()  # an entry of the access list: permissions, scheme, id
            return Request("create", path, data=data, ephemeral=bool(read.int() & 1))
        case "exists" | "getData" | "getChildren" | "getChildren2":
            return Request(op.rstrip("2"), relative(read.text()), watch=read.bool())
        case "setData":
            return Request(op, relative(read.text()), data=read.buffer(), version=read.int())
        case "delete" | "check":
            return Request(op, relative(read.text()), version=read.int())
        case "sync" | "getACL":
            return Request(op, relative(read.text()))
        case "setWatches" | "setWatches2":
            return Request("setWatches", watches=_watches(read, relative))
        case "multi":
            return Request(op, parts=(parts := _parts(read, relative)), path=parts[0].path if parts else "")
    return Request(op)


def _watches(read: Jute, relative: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    read.long()  # the last zxid that the client has seen
    found = []
    for kind in _WATCH_LISTS:
        if read.rest:
            found += [(kind, relative(read.text())) for _ in range(read.int())]
    return tuple(found)


def _parts(read: Jute, relative: Callable[[str], str]) -> tuple[Request, ...]:
    parts = []
    while True:
        kind, done, _ = read.int(), read.bool(), read.int()
        if done:
            return tuple(parts)
        parts.append(_body(OPERATIONS.get(kind, f"type {kind}"), read, relative))


def reply(frame: bytes, relative: Callable[[str], str] = str) -> Reply:
    read = Jute(frame)
    xid = read.int()
    read.long()  # zxid
    error = read.int()
    if xid != NOTIFICATION:
        return Reply(xid, ERRORS.get(error, str(error)))
    event = EVENTS[read.int()]
    read.int()  # the session's state
    return Reply(xid, "ok", event, relative(read.text()))


@dataclass
class Frames:
    """Cuts a stream of bytes into frames. Four-letter words such as `mntr` have no frames and pass unchanged."""

    plain: bool = False
    _rest: bytes = field(default=b"", repr=False)
    _any: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """Whole frames, each with its length."""
        self._rest += data
        if not self._any and len(self._rest) >= 4:
            self._any = True
            self.plain = self.plain or self._rest[:4].isalpha()
        if self.plain:
            data, self._rest = self._rest, b""
            return [data]
        frames = []
        at = 0
        while len(self._rest) - at >= 4:
            end = at + 4 + int.from_bytes(self._rest[at : at + 4], "big")
            if end > len(self._rest):
                break
            frames.append(self._rest[at:end])
            at = end
        self._rest = self._rest[at:]
        return frames
