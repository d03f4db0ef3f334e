"""A ZooKeeper that greets, answers pings, and answers each request with what a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from typing import Self

from kernel.tasks import close_server

_PASSWORD = b"p" * 16
_PING, _CLOSE = 11, -11


def greeting(timeout_ms: int) -> bytes:
    """ConnectResponse: protocol version, timeout, session id, password, read-only."""
    return struct.pack(">iiqi", 0, timeout_ms, 7, len(_PASSWORD)) + _PASSWORD + b"\0"


GREETING = greeting(10_000)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def reply(xid: int, body: bytes, code: int = 0) -> bytes:
    """A reply, or with xid -1 a notification."""
    return struct.pack(">iqi", xid, 1, code) + body


class ScriptedZooKeeper:
    """`answer(xid)` is what it sends for a request, `greeting` for a Connect, `lag_s` after it."""

    def __init__(self, *, greeting: bytes | None = None, timeout_ms: int = 10_000, lag_s: float = 0.0) -> None:
        self.lag_s = lag_s
        self.greeting = frame(_greeting(timeout_ms)) if greeting is None else greeting
        self.answer: Callable[[int], bytes] = lambda xid: frame(reply(xid, b""))
        self.connections = self.requests = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await close_server(self._server)
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await _frame_from(reader)
            await asyncio.sleep(self.lag_s)
            writer.write(self.greeting)
            while True:
                xid, kind = struct.unpack_from(">ii", await _frame_from(reader))
                if kind in (_PING, _CLOSE):
                    writer.write(frame(reply(xid, b"")))
                else:
                    self.requests += 1
                    writer.write(self.answer(xid))
        writer.close()


_greeting = greeting


async def _frame_from(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)
