"""The broker's TCP side: frames in, handlers called, responses out in order.

Everything from outside is bounded: the size of a frame, the number of connections, what is read ahead of a request
that still waits, what is written ahead of a client that does not read (`served_connection`), and what all connections
hold together of requests and of answers (`budget`). Whatever is malformed
closes its own connection and nothing else, as Kafka does; ApiVersions alone has an answer for a version that is not
known (KIP-511).

While a request waits, its connection is muted: later frames are not served, so that responses keep their order.
A closed connection cancels a waiting Fetch. Any other waiting request is left to end by itself, its answer
dropped: a JoinGroup stays parked in its group when its member's connection breaks.

The loop's turns are short, so that nobody's heartbeat waits behind a large group: members that heartbeat are read
first, and all others, accepting, and the answers of thousands have a budget each (`readiness`, `accepting`, `turns`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.broker.loop.readiness import Readiness
from kernel.broker.loop.turns import Turns
from kernel.broker.server import api_versions
from kernel.broker.server.accepting import Listener
from kernel.broker.server.budget import Memory
from kernel.broker.server.handlers import ReadByHand, Repeatable, readers_of
from kernel.broker.server.served_connection import ServedConnection
from kernel.broker.settings.configuration import ANSWERS_BYTES_MAX, REQUESTS_BYTES_MAX
from kernel.errors import ConfigurationError
from kernel.wire.frames import MAX_FRAME_BYTES
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Set

    from kernel.broker.server.handlers import Answer, HandlerTable, Repeat, RequestContext
    from kernel.wire.codec import Reader

log = logging.getLogger(__name__)

#: Connections looked at in one piece, for whether they are idle.
SWEPT_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Kafka's socket.request.max.bytes, max.connections, connections.max.idle.ms and queued.max.request.bytes.

    `answers_bytes_max` is our own queued.max.response.bytes.
    """

    frame_bytes_max: int = MAX_FRAME_BYTES
    requests_bytes_max: int = REQUESTS_BYTES_MAX
    answers_bytes_max: int = ANSWERS_BYTES_MAX
    connections_max: int = 2**31 - 1
    idle_ms_max: int = 600_000


class BrokerServer:
    """Serves `handlers` on one loopback port; `port` 0 chooses a free one, known after `bind`."""

    def __init__(
        self,
        handlers: HandlerTable,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ServerLimits | None = None,
        turns: Turns | None = None,
    ) -> None:
        if host != "localhost" and not _is_loopback(host):
            raise ConfigurationError(f"the broker listens on loopback only, {host!r} is not: use 127.0.0.1")
        # Not the name: it may stand for two addresses, and port 0 would then be two different ports.
        self.host = "127.0.0.1" if host == "localhost" else host
        self.port = port
        self.limits = limits or ServerLimits()
        self.memory = Memory(
            requests_bytes_max=self.limits.requests_bytes_max,
            answers_bytes_max=self.limits.answers_bytes_max,
            frame_bytes_max=self.limits.frame_bytes_max,
        )
        self.turns = Turns() if turns is None else turns  # an empty one is false
        self.readiness: Readiness
        self.repeat_heartbeat: Repeat | None = None
        self.readers: dict[tuple[int, int], Reader] = {}
        self.handlers: HandlerTable = {Api.ApiVersions: self._api_versions}
        self.mount(handlers)
        self.connections: set[ServedConnection] = set()
        self._waiting: set[asyncio.Task[Answer]] = set()
        self._next_connection_id = 0
        self._listener: Listener | None = None
        self._sweeper: asyncio.Task[None] | None = None

    def mount(self, handlers: HandlerTable, *, instead: Set[Api] = frozenset()) -> None:
        """Add handlers; two for one API are a mistake of ours, unless it is among those that may be replaced."""
        twice = self.handlers.keys() & handlers.keys() - instead
        assert not twice, f"mounted twice: {', '.join(api.name for api in twice)}"
        self.readers.update(readers_of(handlers))
        self.handlers.update({api: h.handle if isinstance(h, ReadByHand) else h for api, h in handlers.items()})
        heartbeat = handlers.get(Api.Heartbeat)
        if isinstance(heartbeat, Repeatable):
            self.repeat_heartbeat = heartbeat.repeat

    async def bind(self) -> None:
        """Take the port without accepting anybody yet. Raises `EnvironmentFault` when it is taken."""
        self._listener = Listener(self.host, self.port)
        self.port = self._listener.port
        self.readiness = Readiness(asyncio.get_running_loop(), self.turns)

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self._listener is not None, "bind() comes first"
        self._listener.start(self._admit)
        self._sweeper = asyncio.create_task(self._close_idle(), name="close-idle-connections")

    async def start(self) -> None:
        await self.bind()
        await self.serve()

    async def stop(self) -> None:
        """Accept nobody, cancel what waits, close every connection. Idempotent."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for connection in list(self.connections):
            connection.abort()
        self.readiness.close()
        self.memory.close()
        # Only tasks are ours to cancel; a bare future belongs to the handler that will still complete it.
        tasks = list(self._waiting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _admit(self, accepted: socket.socket, host: str) -> None:
        if len(self.connections) >= self.limits.connections_max:
            log.warning("a connection was refused: max.connections=%d is reached", len(self.connections))
            accepted.close()
            return
        self._next_connection_id += 1
        self.connections.add(ServedConnection(self, accepted, host, self._next_connection_id))

    def wait_for(self, task: asyncio.Task[Answer]) -> None:
        """Keep a reference: the loop holds tasks weakly."""
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _api_versions(self, context: RequestContext, body: Any) -> Answer:
        return api_versions.answer(self.handlers, context, body)

    async def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit_s = self.limits.idle_ms_max / 1000
        while limit_s > 0:  # -1 keeps idle connections for ever
            await asyncio.sleep(min(max(limit_s / 2, 0.05), 60))
            self.turns.run_in_turns(self._sweep(loop.time() - limit_s))

    def _sweep(self, since: float) -> Iterator[None]:
        """In pieces: there may be many thousands."""
        for number, connection in enumerate(list(self.connections)):
            if connection.active_at < since and connection.is_closing:
                connection.abort()  # its client does not take what is still unsent
            elif connection.active_at < since:  # also when it waits: its request may be one that is never answered
                connection.close("idle for longer than connections.max.idle.ms")
            if number % SWEPT_AT_ONCE == 0:
                yield


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
