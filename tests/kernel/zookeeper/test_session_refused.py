"""A server that keeps the connection of an expired session: it answers reads and refuses every write.

Seen on an ensemble, when a member reconnected to a follower just as the leader ended its session: the follower never
broke the connection, and the write was repeated 700,000 times. Here a proxy refuses instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct

from tests.support.trace.tracers import ListTracer
from tests.support.wire.servers import serving
from tests.support.zookeeper.sessions import opened

_REPLY = struct.Struct("!iqi")  #: xid, zxid, error
_REQUEST = struct.Struct("!ii")  #: xid, type
_SET_DATA, _SESSION_EXPIRED = 5, -112


class RefusingProxy:
    """Between one client and a server; the first connection's writes are refused as if its session had expired."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self.connections = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection(*self._server)
        refused_to = writer if self.connections == 1 else None
        await asyncio.gather(_pass(reader, back, refused_to), _pass(there, writer, None))


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused_to: asyncio.StreamWriter | None
) -> None:
    """Forward one direction, frame by frame; a setData that is refused is not forwarded."""
    with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            size = await reader.readexactly(4)
            frame = await reader.readexactly(int.from_bytes(size, "big"))
            xid, kind = _REQUEST.unpack_from(frame)
            if refused_to is not None and xid > 0 and kind == _SET_DATA:
                reply = _REPLY.pack(xid, 1, _SESSION_EXPIRED)
                refused_to.write(len(reply).to_bytes(4, "big") + reply)
                continue
            writer.write(size + frame)
            await writer.drain()


async def test_write_refused_for_an_expired_session_makes_the_session_reconnect(chroot):
    address, _, folder = chroot.partition("/")
    host, _, port = address.partition(":")
    tracer = ListTracer()
    proxy = RefusingProxy(host, int(port))
    async with serving(proxy.accept) as through_port:
        through = f"127.0.0.1:{through_port}/{folder}"
        async with opened(through, tracer, retry_forever=True) as session:
            await session.create("/a", b"1")
            before = session.session_id
            await asyncio.wait_for(session.set("/a", b"2"), 60)
            assert (await session.get("/a"))[0] == b"2"
            # The server has answered that the session is alive, so it is the same one.
            assert (session.session_id, proxy.connections) == (before, 2)
    errors = [event["error"] for event in tracer.of("zk_op") if event["op"] == "setData"]
    assert errors[0] == "SessionExpired"
    assert errors[-1] is None
    assert len(errors) < 10
