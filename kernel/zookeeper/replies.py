"""Read what a server sends: frames, bounded before they are buffered, and replies, which may be malformed.

Whoever listens at a ZooKeeper's address may send anything. A frame that cannot be one of ZooKeeper's raises
`MalformedFrame`, which ends the connection as if it had been lost. A reply that is one in its frame, with an error code
or a body that cannot be read, is the error of its request alone.
"""

from __future__ import annotations

import struct
from typing import Any

from kazoo.exceptions import EXCEPTIONS, ConnectionDropped, NoNodeError, ZookeeperError
from kazoo.protocol.serialization import Connect, Create, Exists, GetChildren, ReplyHeader, Transaction, Watch

from kernel.zookeeper.watches import EVENTS

#: jute.maxbuffer of the Java client up to 3.5, which every client of Kafka's ZooKeeper era is (ClientCnxn.packetLen);
#: 3.6 lowered it to just under 1 MB (ZKClientConfig.CLIENT_MAX_PACKET_LENGTH_DEFAULT).
FRAME_MAX = 4096 * 1024
#: Of a session's password, also when the session has expired (ZooKeeperServer.finishSessionInit).
PASSWORD_BYTES = 16
_LENGTH = struct.Struct(">i")
#: What reading fields beyond the end of a frame, or wrong ones, raises in kazoo.
_UNREADABLE = (RuntimeError, LookupError, ValueError, TypeError, struct.error)


class MalformedFrame(ConnectionDropped):  # type: ignore[misc]  # kazoo has no type information
    """What arrived cannot be ZooKeeper's."""


class UnreadableReply(Exception):
    """A reply has an unknown error code, or a body that does not fit the request."""


def announced(received: bytes | bytearray) -> int:
    """The length of the frame that begins here. Raises `MalformedFrame` if no client would take so long a one."""
    (length,) = _LENGTH.unpack_from(received)
    if not 0 <= length <= FRAME_MAX:
        raise MalformedFrame(f"a reply of {length} bytes was announced (jute.maxbuffer is {FRAME_MAX})")
    return int(length)


def is_whole(received: bytearray) -> bool:
    """Whether all of the first frame has arrived. Raises as `announced`."""
    return len(received) >= _LENGTH.size and len(received) - _LENGTH.size >= announced(received)


def greeting(frame: bytes) -> Connect:
    """The reply to a Connect. Raises `MalformedFrame`."""
    try:
        connected, _ = Connect.deserialize(frame, 0)
    except _UNREADABLE as error:
        raise MalformedFrame(f"the reply to the greeting cannot be read ({error})") from error
    if connected.passwd is None or len(connected.passwd) != PASSWORD_BYTES:
        raise MalformedFrame(f"the reply to the greeting has no password of {PASSWORD_BYTES} bytes")
    return connected


def header(frame: bytes) -> tuple[ReplyHeader, int]:
    """The header of a reply, and where its body begins. Raises `MalformedFrame`."""
    try:
        found, offset = ReplyHeader.deserialize(frame, 0)
    except _UNREADABLE as error:
        raise MalformedFrame(f"a reply of {len(frame)} bytes has no header") from error
    return found, offset


def notification(frame: bytes, offset: int) -> tuple[int, str]:
    """Kind and path of a watch notification. Raises `MalformedFrame`."""
    try:
        watch, _ = Watch.deserialize(frame, offset)
    except _UNREADABLE as error:
        raise MalformedFrame(f"a notification cannot be read ({error})") from error
    if watch.type not in EVENTS or not watch.path:
        raise MalformedFrame(f"a notification of the type {watch.type} for the path {watch.path!r}")
    return watch.type, watch.path


def answer(request: Any, code: int, frame: bytes, offset: int) -> Any:
    """The value of a reply. Raises kazoo's error for its error code, or `UnreadableReply`."""
    if code == NoNodeError.code and isinstance(request, Exists):
        return None
    if code:
        if code not in EXCEPTIONS:  # looking it up would raise
            raise UnreadableReply(f"unknown error code {code}")
        raise EXCEPTIONS[code]
    if not hasattr(request, "deserialize"):
        return None
    try:
        value = request.deserialize(frame, offset)
    except _UNREADABLE as error:
        raise UnreadableReply(f"malformed reply ({error})") from error
    if not _fits(request, value):
        raise UnreadableReply("malformed reply")
    return value


def _fits(request: Any, value: Any) -> bool:
    match request:
        case Create():
            return isinstance(value, str)
        case GetChildren():
            return all(isinstance(name, str) for name in value)
        case Transaction():
            return len(value) == len(request.operations) or any(isinstance(each, ZookeeperError) for each in value)
    return True
