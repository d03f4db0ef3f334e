"""Servers of one test, on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kernel.platform.ports import LOOPBACK
from kernel.tasks import close_server

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[int]:
    """A server whose connections `handler` serves; yields its port, a free one for 0."""
    server = await asyncio.start_server(handler, LOOPBACK, port)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        await close_server(server)
