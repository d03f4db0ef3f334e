"""ZooKeeper's frames at the server's end: requests decoded, replies encoded (jute, zookeeper.jute)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from comparison.simulation.zookeeper.model.protocol import (
    Answer,
    Call,
    CheckVersion,
    CloseSession,
    Code,
    Connect,
    Connected,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Notification,
    Part,
    Ping,
    Pong,
    Reply,
    Request,
    SetData,
    Stat,
    Sync,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: jute.maxbuffer of servers: the longest request, without its length field (BinaryInputArchive.maxBuffer).
FRAME_MAX = 0xFFFFF

_LENGTH = struct.Struct(">i")
_CONNECT = struct.Struct(">iqiq")  #: protocol version, last zxid seen, timeout, session id
_CONNECTED = struct.Struct(">iiq")  #: protocol version, timeout, session id
_CALL = struct.Struct(">ii")  #: xid, type
_REPLY = struct.Struct(">iqi")  #: xid, zxid, error
_STAT = struct.Struct(">qqqqiiiqiiq")
_MULTI = struct.Struct(">i?i")  #: type, done, error
_INT = struct.Struct(">i")
_TWO_INTS = struct.Struct(">ii")

_NOTIFICATION_XID, _PING_XID = -1, -2
_SYNC_CONNECTED = 3  #: the state in a notification (KeeperState)
_EPHEMERAL, _SEQUENTIAL = 1, 2
_ERROR_TYPE = -1
_TYPES: dict[type[Part], int] = {Create: 1, Delete: 2, SetData: 5, CheckVersion: 13}


class MalformedFrame(Exception):
    """What a client has sent is no request that the model knows. A server closes the connection."""


class _Reader:
    """Reads the fields of a frame in order."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 0

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        fields = layout.unpack_from(self._frame, self._at)
        self._at += layout.size
        return fields

    def number(self) -> int:
        return self.fields(_INT)[0]

    def flag(self) -> bool:
        self._at += 1
        return self._frame[self._at - 1] != 0

    def buffer(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        taken = self._frame[self._at : self._at + length]
        if len(taken) < length:
            raise MalformedFrame(f"a field of {length} bytes has {len(taken)}")
        self._at += length
        return taken

    def text(self) -> str:
        return (self.buffer() or b"").decode()


# -- from clients ------------------------------------------------------------------------------------------------------


def connect(frame: bytes) -> Connect:
    """The first frame of a connection."""
    reader = _Reader(frame)
    try:
        _, last_zxid_seen, timeout_ms, session_id = reader.fields(_CONNECT)
        return Connect(last_zxid_seen, timeout_ms, session_id, reader.buffer() or b"")
    except struct.error as error:
        raise MalformedFrame(str(error)) from error


def call(frame: bytes) -> Call | Ping:
    """Any later frame."""
    reader = _Reader(frame)
    try:
        xid, kind = reader.fields(_CALL)
        if xid == _PING_XID:
            return Ping()
        return Call(xid, _REQUESTS[kind](reader))
    except (struct.error, LookupError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"{type(error).__name__}: {error}") from error


def _create(reader: _Reader) -> Create:
    path, data = reader.text(), reader.buffer()
    for _ in range(reader.number()):  # access control: permissions, scheme, id
        reader.number()
        reader.text()
        reader.text()
    flags = reader.number()
    return Create(path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL))


def _delete(reader: _Reader) -> Delete:
    return Delete(reader.text(), reader.number())


def _set_data(reader: _Reader) -> SetData:
    return SetData(reader.text(), reader.buffer(), reader.number())


def _check(reader: _Reader) -> CheckVersion:
    return CheckVersion(reader.text(), reader.number())


def _multi(reader: _Reader) -> Multi:
    parts: list[Part] = []
    while True:
        kind, is_done, _ = reader.fields(_MULTI)
        if is_done:
            return Multi(tuple(parts))
        parts.append(_PARTS[kind](reader))


_PARTS: dict[int, Callable[[_Reader], Part]] = {1: _create, 2: _delete, 5: _set_data, 13: _check}
_REQUESTS: dict[int, Callable[[_Reader], Request]] = {
    1: _create,
    2: _delete,
    3: lambda reader: Exists(reader.text(), reader.flag()),
    4: lambda reader: GetData(reader.text(), reader.flag()),
    5: _set_data,
    8: lambda reader: GetChildren(reader.text(), reader.flag()),
    9: lambda reader: Sync(reader.text()),
    14: _multi,
    -11: lambda _: CloseSession(),
}


# -- to clients --------------------------------------------------------------------------------------------------------


def encoded(frame: Connected | Notification | Pong) -> bytes:
    """A frame with its length."""
    match frame:
        case Connected(timeout_ms, session_id, password):
            return _framed(_CONNECTED.pack(0, timeout_ms, session_id) + _buffer(password) + b"\0")
        case Notification(event, path, zxid):
            body = _TWO_INTS.pack(event, _SYNC_CONNECTED) + _text(path)
            return _framed(_REPLY.pack(_NOTIFICATION_XID, zxid, 0) + body)
        case Pong(zxid):
            return _framed(_REPLY.pack(_PING_XID, zxid, 0))


def encoded_reply(request: Request, reply: Reply) -> bytes:
    """The reply to a request, with its length."""
    head = _REPLY.pack(reply.xid, reply.zxid, reply.code)
    return _framed(head if reply.code else head + _answer(request, reply.answer))


def _answer(request: Request, answer: Answer) -> bytes:
    match request:
        case GetData():
            data, stat = cast("tuple[bytes | None, Stat]", answer)
            return _buffer(data) + _STAT.pack(*stat)
        case GetChildren():
            names = cast("tuple[str, ...]", answer)
            return b"".join((_INT.pack(len(names)), *map(_text, names)))
        case Multi(parts):
            answers = cast("tuple[str | Stat | Code | None, ...]", answer)
            return b"".join(map(_part, parts, answers)) + _MULTI.pack(_ERROR_TYPE, True, -1)
    return _one(cast("str | Stat | None", answer))


def _part(part: Part, answer: str | Stat | Code | None) -> bytes:
    if isinstance(answer, Code):
        return _MULTI.pack(_ERROR_TYPE, False, answer) + _INT.pack(answer)
    return _MULTI.pack(_TYPES[type(part)], False, 0) + _one(answer)


def _one(answer: str | Stat | None) -> bytes:
    if isinstance(answer, Stat):
        return _STAT.pack(*answer)
    return _text(answer) if isinstance(answer, str) else b""


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def _buffer(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def _framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body
