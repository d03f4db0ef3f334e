"""The broker's TCP side: frames in, handlers called, responses out in order.

Everything from outside is bounded: the size of a frame, the number of connections, what is read ahead of a
request that still waits (64 KiB), what is written ahead of a client that does not read. Whatever is malformed
closes its own connection and nothing else, as Kafka does; ApiVersions alone has an answer for a version that
is not known (KIP-511).

While a request waits, its connection is muted: later frames stay unread, so that responses keep their order.
A closed connection cancels a waiting Fetch. Any other waiting request is left to end by itself, its answer
dropped: a JoinGroup stays parked in its group when its member's connection breaks.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import re
from collections.abc import Awaitable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.broker.handlers import Encoded, RequestContext
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.wire.codec import decode_request, encode_response, response_with
from kernel.wire.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kernel.wire.frames import MAX_FRAME_BYTES, FrameBuffer
from kernel.wire.versions import SERVED, Api

if TYPE_CHECKING:
    from kernel.broker.handlers import Answer, HandlerTable

log = logging.getLogger(__name__)

#: Unread bytes kept for a muted connection before its socket is no longer read.
READ_AHEAD_BYTES = 64 * 1024
#: Requests of one connection served before the others get their turn.
TURN_REQUESTS = 32

#: ApiVersionsRequest.java, SOFTWARE_NAME_VERSION_PATTERN.
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Kafka's socket.request.max.bytes, max.connections and connections.max.idle.ms."""

    frame_bytes_max: int = MAX_FRAME_BYTES
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
    ) -> None:
        if host != "localhost" and not _is_loopback(host):
            raise ConfigurationError(f"the broker listens on loopback only, {host!r} is not: use 127.0.0.1")
        # Not the name: it may stand for two addresses, and port 0 would then be two different ports.
        self.host = "127.0.0.1" if host == "localhost" else host
        self.port = port
        self.limits = limits or ServerLimits()
        self.handlers: HandlerTable = {Api.ApiVersions: self._api_versions}
        self.mount(handlers)
        self.connections: set[_Connection] = set()
        self._waiting: set[asyncio.Task[Answer]] = set()
        self._next_connection_id = 0
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    def mount(self, handlers: HandlerTable, *, instead: Set[Api] = frozenset()) -> None:
        """Add handlers; two for one API are a mistake of ours, unless it is among those that may be replaced."""
        twice = self.handlers.keys() & handlers.keys() - instead
        assert not twice, f"mounted twice: {', '.join(api.name for api in twice)}"
        self.handlers.update(handlers)

    async def bind(self) -> None:
        """Take the port without accepting anybody yet. Raises `EnvironmentFault` when it is taken."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Connection(self), self.host, self.port, backlog=1024, start_serving=False
            )
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise EnvironmentFault(
                    f"cannot listen on {self.host}:{self.port}: {error.strerror}; choose another port (0: a free one)"
                ) from error
            raise
        self.port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self._server is not None, "bind() comes first"
        await self._server.start_serving()
        self._sweeper = asyncio.create_task(self._close_idle(), name="close-idle-connections")

    async def start(self) -> None:
        await self.bind()
        await self.serve()

    async def stop(self) -> None:
        """Accept nobody, cancel what waits, close every connection. Idempotent."""
        if self._server is not None:
            await self._accept_nobody(self._server)
            self._server = None
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None
        for connection in list(self.connections):
            connection.abort()
        # Only tasks are ours to cancel; a bare future belongs to the handler that will still complete it.
        tasks = list(self._waiting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the aborted transports report their end in the next turn of the loop

    async def _accept_nobody(self, server: asyncio.Server) -> None:
        """Close the listening sockets, but let connections become known that were accepted a moment ago.

        asyncio accepts in three turns of its loop, and loses a connection, socket and all, when the server is closed
        between them (cpython#109564). Clients reconnect in just that moment: others were closed with the broker before.
        """
        loop = asyncio.get_running_loop()
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()

    def admit(self, connection: _Connection) -> int | None:
        """The new connection's id; None when there are too many, or when it comes while the server stops."""
        if self._server is None:
            return None
        if len(self.connections) >= self.limits.connections_max:
            log.warning("a connection was refused: max.connections=%d is reached", len(self.connections))
            return None
        self.connections.add(connection)
        self._next_connection_id += 1
        return self._next_connection_id

    def wait_for(self, task: asyncio.Task[Answer]) -> None:
        """Keep a reference: the loop holds tasks weakly."""
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def advertised(self) -> list[dict[str, int]]:
        """The rows of ApiVersions: what is mounted."""
        return [
            {"api_key": api, "min_version": SERVED[api][0], "max_version": SERVED[api][1]}
            for api in sorted(self.handlers)
        ]

    def _api_versions(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        named = (body.client_software_name, body.client_software_version) if context.version >= 3 else ()
        if not all(_SOFTWARE_NAME.fullmatch(name) for name in named):
            return {"error_code": ErrorCode.invalid_request, "api_keys": ()}
        return {"error_code": ErrorCode.none, "api_keys": self.advertised()}

    async def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit_s = self.limits.idle_ms_max / 1000
        while limit_s > 0:  # -1 keeps idle connections for ever
            await asyncio.sleep(min(max(limit_s / 2, 0.05), 60))
            for connection in list(self.connections):
                if not connection.waits and loop.time() - connection.active_at > limit_s:
                    connection.close("idle for longer than connections.max.idle.ms")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Connection(asyncio.Protocol):
    """One client's connection: a buffer of frames and at most one request that waits."""

    __slots__ = (
        "_buffer",
        "_future",
        "_host",
        "_id",
        "_loop",
        "_open",
        "_reading",
        "_server",
        "_transport",
        "_turn",
        "_writable",
        "active_at",
    )

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = FrameBuffer(server.limits.frame_bytes_max)
        self._future: tuple[asyncio.Future[Answer], RequestContext] | None = None
        self._id = 0
        self._host = ""
        self._reading = True
        self._writable = True
        self._turn: asyncio.Handle | None = None  # the next turn is due: nothing is served before it
        self._open = False
        self._transport: asyncio.Transport
        self.active_at = self._loop.time()

    @property
    def waits(self) -> bool:
        return self._future is not None

    # -- asyncio.Protocol ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        connection_id = self._server.admit(self)
        if connection_id is None:
            transport.abort()
            return
        self._id = connection_id
        self._transport = transport
        self._open = True
        peer = transport.get_extra_info("peername")
        self._host = str(peer[0]) if peer else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        self._server.connections.discard(self)
        if self._turn is not None:
            self._turn.cancel()
        if self._future is not None:
            future, context = self._future
            if context.api is Api.Fetch:
                future.cancel()

    def data_received(self, data: bytes) -> None:
        self.active_at = self._loop.time()
        idle = self._future is None and self._turn is None and self._writable
        if idle and (frame := self._buffer.whole(data)) is not None:
            self._serve_whole(frame)
            return
        self._buffer.feed(data)
        if idle:
            self._serve_buffered()
        elif self._reading and len(self._buffer) > READ_AHEAD_BYTES and self._open:
            self._reading = False
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self._future is None and self._turn is None:
            self._serve_turn()

    # -- ending ------------------------------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Close after what was answered has been written."""
        if self._open:
            log.info("connection %d from %s closed: %s", self._id, self._host, why)
            self._open = False
            self._transport.close()

    def abort(self) -> None:
        """Close now, also when `close` is still writing to a client that does not read."""
        self._open = False
        self._transport.abort()

    # -- serving -----------------------------------------------------------------------------------------------------

    def _serve_buffered(self) -> None:
        """Serve whole frames until one waits, the client does not read, or the turn is over."""
        self._turn = None
        try:
            for _ in range(TURN_REQUESTS):
                if not self._open or not self._writable:
                    return
                frame = self._buffer.next_frame()
                if frame is None:
                    break
                self._serve(frame)
                if self._future is not None:
                    return
            else:
                self._turn = self._loop.call_soon(self._serve_turn)
                return
        except ProtocolError as error:
            self.close(str(error))
            return
        if not self._reading and self._open:
            self._reading = True
            self._transport.resume_reading()

    def _serve_whole(self, frame: bytes) -> None:
        """The short way of the common case: one request in one piece, and nothing before it."""
        try:
            if self._open:
                self._serve(frame)
        except ProtocolError as error:
            self.close(str(error))

    def _serve_turn(self) -> None:
        """As `_serve_buffered`, from the loop: there, a mistake of ours would not close the connection by itself."""
        served = False
        try:
            self._serve_buffered()
            served = True
        finally:
            if not served:
                self.abort()

    def _serve(self, frame: bytes) -> None:
        try:
            request = decode_request(frame)
        except UnsupportedVersion as error:
            if error.api_key != Api.ApiVersions:
                raise
            self._write_unsupported_api_versions(error.correlation_id)
            return
        api, version, correlation_id, client_id, body = request
        handler = self._server.handlers.get(api)
        if handler is None:
            raise UnsupportedVersion(api, version, correlation_id)
        context = RequestContext(self._id, client_id or "", self._host, api, version, correlation_id)
        answer = handler(context, body)
        if isinstance(answer, Mapping | Encoded):
            self._write(context, answer)
        elif answer is not None:
            self._await(context, answer)

    def _await(self, context: RequestContext, answer: Awaitable[Answer]) -> None:
        future = asyncio.ensure_future(answer)
        if future.done() and not future.cancelled() and future.exception() is None:
            self._write(context, future.result())
            return
        self._future = (future, context)
        if isinstance(future, asyncio.Task):
            self._server.wait_for(future)
        future.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future[Answer]) -> None:
        assert self._future is not None
        _, context = self._future
        self._future = None
        if future.cancelled():
            self.close(f"{context.api.name} was cancelled")
            return
        error = future.exception()
        if isinstance(error, ProtocolError):
            self.close(str(error))
            return
        if error is not None:
            self._loop.call_exception_handler(
                {
                    "message": f"{context.api.name} version {context.version} failed",
                    "exception": error,
                    "future": future,
                }
            )
            self.abort()
            return
        self._write(context, future.result())
        if self._writable:
            self._serve_turn()

    def _write(self, context: RequestContext, answer: Answer) -> None:
        if answer is None or not self._open:
            return
        if isinstance(answer, Encoded):
            self._transport.write(response_with(context.correlation_id, answer.tail))
        else:
            self._transport.write(encode_response(context.api, context.version, context.correlation_id, answer))

    def _write_unsupported_api_versions(self, correlation_id: int) -> None:
        """KIP-511: a version-0 body whatever was asked for, naming the versions of ApiVersions itself."""
        lowest, highest = SERVED[Api.ApiVersions]
        answer = {
            "error_code": ErrorCode.unsupported_version,
            "api_keys": [{"api_key": Api.ApiVersions, "min_version": lowest, "max_version": highest}],
        }
        if self._open:
            self._transport.write(encode_response(Api.ApiVersions, 0, correlation_id, answer))
