"""End the session of a dead process, using its id and password.

After a process is killed, ZooKeeper keeps its session and the ephemeral znodes until the timeout. A client that has
the session's id and password can take it over and close it. Connect and closeSession go out in one packet: between two
packets, an owner that is still alive could take the session back.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from itertools import cycle

from kazoo.hosts import collect_hosts

#: How long to wait for one server in the first round, and how much longer in each later one. A server that is starting
#: may accept a connection and never answer; one that lags or is busy would be late every time.
_ANSWER_S = 2.0
#: The pause between two attempts.
_PAUSE_S = 0.1
_CLOSE_SESSION = -11
_LENGTH = struct.Struct(">i")
#: ConnectRequest: protocol version, last zxid seen, timeout, session id, length of the password.
_CONNECT = struct.Struct(">iqiqi")
#: ConnectResponse: protocol version, timeout (0: there is no such session).
_CONNECTED = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """The credentials of a session; with them, another client can take it over."""

    session_id: int
    password: bytes = field(repr=False)


async def end_session(connect_string: str, credentials: SessionCredentials, *, timeout_s: float) -> bool:
    """Close the session and its ephemeral znodes. Returns True once they are gone, also if the session was over.

    Returns False if no server confirms it within `timeout_s`; the session then ends by its own timeout.
    """
    servers, _ = collect_hosts(connect_string)
    try:
        async with asyncio.timeout(timeout_s):
            for number, (host, port) in enumerate(cycle(servers)):
                if await _ended_by(host, port, credentials, _ANSWER_S * (1 + number // len(servers))):
                    return True
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        pass
    return False


async def _ended_by(host: str, port: int, credentials: SessionCredentials, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_packet(credentials))
                _, timeout_ms = _CONNECTED.unpack_from(await _frame(reader))
                if timeout_ms > 0:
                    await _frame(reader)  # the reply to closeSession
                return True
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError, struct.error):
        return False


def _packet(credentials: SessionCredentials) -> bytes:
    password = credentials.password
    connect = _CONNECT.pack(0, 0, 10_000, credentials.session_id, len(password)) + password + b"\0"
    close = struct.pack(">ii", 1, _CLOSE_SESSION)
    return b"".join(_LENGTH.pack(len(frame)) + frame for frame in (connect, close))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if not 0 <= length <= 1024:
        raise EOFError(f"a reply of {length} bytes is not ZooKeeper's")
    return await reader.readexactly(length)
