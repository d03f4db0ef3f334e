"""The broker's TCP server: reads frames, calls handlers, sends responses in order.

All input is bounded: the size of a frame, the number of connections, the bytes read ahead of a pending request and
written ahead of a client that does not read (`served_connection`), and the requests and responses held by all
connections together (`budget`). A malformed request closes its own connection and nothing else, as in Kafka; only
ApiVersions responds to an unknown version (KIP-511).

While a request is pending, its connection is muted: later frames are not served, so that responses keep their order.
Closing a connection cancels a pending Fetch. Any other pending request runs on, and its response is dropped: a
JoinGroup stays parked in its group when its member's connection breaks.

The loop's turns are short, so that no heartbeat waits behind a large group: connections of members that heartbeat are
read first; reading the others, accepting, and bulk responses have a time budget each (`readiness`, `accepting`,
`turns`).
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
from kernel.broker.server.budget import MemoryBudgets
from kernel.broker.server.connection_resources import ConnectionResources
from kernel.broker.server.handlers import ReadByHand, Repeatable, readers_of
from kernel.broker.server.served_connection import ServedConnection
from kernel.broker.server.unsupported import UnsupportedRequests
from kernel.broker.settings.setting_table import REQUESTS_BYTES_MAX, RESPONSES_BYTES_MAX
from kernel.errors import ConfigurationError
from kernel.runtime import REAL, Runtime
from kernel.tasks import cancel_and_wait
from kernel.wire.frames import MAX_FRAME_BYTES
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Set

    from kernel.broker.server.handlers import HandlerTable, Repeat, RequestContext, Response
    from kernel.wire.codec import Reader

log = logging.getLogger(__name__)

#: Connections checked for idleness in one piece of work.
SWEPT_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Kafka's socket.request.max.bytes, max.connections, connections.max.idle.ms and queued.max.request.bytes.

    `responses_bytes_max` is our own queued.max.response.bytes.
    """

    frame_bytes_max: int = MAX_FRAME_BYTES
    requests_bytes_max: int = REQUESTS_BYTES_MAX
    responses_bytes_max: int = RESPONSES_BYTES_MAX
    connections_max: int = 2**31 - 1
    idle_ms_max: int = 600_000


class BrokerServer:
    """Serves `handlers` on one loopback port. Port 0 chooses a free one, known after `bind`."""

    def __init__(
        self,
        handlers: HandlerTable,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ServerLimits | None = None,
        runtime: Runtime = REAL,
    ) -> None:
        if host != "localhost" and not _is_loopback(host):
            raise ConfigurationError(f"the broker listens on loopback addresses only, not on {host!r}. Use 127.0.0.1")
        # Not the name: it may resolve to two addresses, and port 0 would then be two different ports.
        self.host = "127.0.0.1" if host == "localhost" else host
        self.port = port
        self.limits = limits or ServerLimits()
        self.memory = MemoryBudgets(
            requests_bytes_max=self.limits.requests_bytes_max,
            responses_bytes_max=self.limits.responses_bytes_max,
            frame_bytes_max=self.limits.frame_bytes_max,
        )
        self.turns = Turns(runtime.stopwatch)
        self._runtime = runtime
        self.readiness: Readiness
        self.connections: set[ServedConnection] = set()
        self._repeats: dict[Api, Repeat] = {}
        self._readers: dict[tuple[int, int], Reader] = {}
        self._handlers: HandlerTable = {Api.ApiVersions: self._api_versions}
        self.mount(handlers)
        self._resources: ConnectionResources
        self._tasks: set[asyncio.Task[Response]] = set()
        self._next_connection_id = 0
        self._listener: Listener | None = None
        self._sweeper: asyncio.Task[None] | None = None

    def mount(self, handlers: HandlerTable, *, instead: Set[Api] = frozenset()) -> None:
        """Add handlers before `serve`. At most one per API, except that those of `instead` may be replaced."""
        twice = self._handlers.keys() & handlers.keys() - instead
        assert not twice, f"mounted twice: {', '.join(api.name for api in twice)}"
        self._readers.update(readers_of(handlers))
        self._handlers.update({api: h.handle if isinstance(h, ReadByHand) else h for api, h in handlers.items()})
        self._repeats.update({api: h.repeat for api, h in handlers.items() if isinstance(h, Repeatable)})

    async def bind(self) -> None:
        """Bind the port without accepting connections yet. Raises `EnvironmentFault` if it is in use."""
        self._listener = self._runtime.edge(Listener)(self.host, self.port, self._runtime.stopwatch)
        self.port = self._listener.port
        loop, stopwatch = asyncio.get_running_loop(), self._runtime.stopwatch
        self.readiness = self._runtime.edge(Readiness)(loop, self.turns, stopwatch)

    async def serve(self) -> None:
        """Start accepting connections."""
        assert self._listener is not None, "bind() comes first"
        self._resources = ConnectionResources(
            frame_bytes_max=self.limits.frame_bytes_max,
            memory=self.memory,
            turns=self.turns,
            threads=self._runtime.threads,
            readiness=self.readiness,
            handlers=self._handlers,
            readers=self._readers,
            repeats=self._repeats,
            unsupported=UnsupportedRequests(self._handlers),
            keep_task=self._keep_task,
            on_released=self.connections.discard,
        )
        self._listener.start(self._admit)
        self._sweeper = asyncio.create_task(self._close_idle(), name="close-idle-connections")

    async def start(self) -> None:
        await self.bind()
        await self.serve()

    async def stop(self) -> None:
        """Stop accepting, close every connection, cancel pending requests. Idempotent."""
        await cancel_and_wait(self._sweeper)
        self._sweeper = None
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for connection in list(self.connections):
            connection.abort()
        self.readiness.close()
        self.memory.close()
        # Only tasks are ours to cancel; a bare future belongs to the handler that will complete it.
        tasks = list(self._tasks)
        await cancel_and_wait(*tasks)

    def _admit(self, accepted: socket.socket, host: str) -> None:
        if len(self.connections) >= self.limits.connections_max:
            log.warning("refused a connection: max.connections=%d is reached", len(self.connections))
            accepted.close()
            return
        self._next_connection_id += 1
        self.connections.add(ServedConnection(self._resources, accepted, host, self._next_connection_id))

    def _keep_task(self, task: asyncio.Task[Response]) -> None:
        """Keep a reference: the loop holds tasks weakly."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _api_versions(self, context: RequestContext, body: Any) -> Response:
        return api_versions.response_for(self._handlers, context, body)

    async def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit_s = self.limits.idle_ms_max / 1000
        while limit_s > 0:  # -1 keeps idle connections forever
            await asyncio.sleep(min(max(limit_s / 2, 0.05), 60))
            self.turns.run_in_turns(self._sweep(loop.time() - limit_s))

    def _sweep(self, since: float) -> Iterator[None]:
        """Check in pieces: there may be many thousands of connections."""
        for number, connection in enumerate(list(self.connections)):
            if connection.active_at < since and connection.is_closing:
                connection.abort()  # its client does not read its last responses
            elif connection.active_at < since:  # even with a pending request, which may never be answered
                connection.close("idle for longer than connections.max.idle.ms")
            if number % SWEPT_AT_ONCE == 0:
                yield


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
