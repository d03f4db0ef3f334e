"""What the connections of one server share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.broker.loop.readiness import Readiness
    from kernel.broker.loop.turns import Turns
    from kernel.broker.server.budget import MemoryBudgets
    from kernel.broker.server.buffered_socket import BufferedSocket
    from kernel.broker.server.handlers import HandlerTable, Repeat, Response
    from kernel.broker.server.unsupported import UnsupportedRequests
    from kernel.platform.threads import Threads
    from kernel.wire.codec import Reader
    from kernel.wire.versions import Api


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionResources:
    """Made by the server when it starts to serve, with all handlers mounted, and handed to each connection."""

    frame_bytes_max: int
    memory: MemoryBudgets
    turns: Turns
    threads: Threads
    readiness: Readiness
    handlers: HandlerTable
    #: Hand-written readers of request bodies, by API and version.
    readers: dict[tuple[int, int], Reader]
    #: The fast paths of heartbeats, as far as the mounted handlers have them.
    repeats: dict[Api, Repeat]
    #: Where requests that are not served are reported.
    unsupported: UnsupportedRequests
    #: Keep a reference to a handler's task until it is done, and cancel it when the server stops.
    keep_task: Callable[[asyncio.Task[Response]], object]
    #: The connection is closed, and everything it had to send has been sent or dropped.
    on_released: Callable[[BufferedSocket], object]
