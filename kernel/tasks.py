"""The end of what nobody waits for any more: tasks, and servers with their connections."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_and_wait(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel what still runs of these, and wait for the end of all; what they raise is dropped. None is no task."""
    begun = [task for task in tasks if task is not None]
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)


async def close_server(server: asyncio.AbstractServer) -> None:
    """Close a server. A connection that it has accepted by then reaches its handler, or the protocol, first.

    asyncio's own loses those that it accepted in its last turn, and leaves their sockets to the garbage collector
    (cpython#109564). A simulated one loses none.
    """
    try:
        if isinstance(server, asyncio.Server):
            loop = server.get_loop()
            for listening in server.sockets:
                loop.remove_reader(listening)
            for _ in range(3):  # until there is a transport, its protocol knows of it, and the handler's task runs
                await asyncio.sleep(0)
    finally:
        server.close()
