"""asyncio's transports and servers on the simulated network: for clients of brokers, and for proxies."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from kernel.platform.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.network import Endpoint, ListeningSocket, Network, Timeline

_READ_BYTES = 256 * 1024
#: Unsent bytes above which a protocol is asked to pause, as by asyncio's default.
_HIGH_BYTES = 64 * 1024


class _Socket:
    """What callers ask of a transport's socket."""

    def __init__(self, port: int) -> None:
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        return LOOPBACK, self._port

    def setsockopt(self, *_: object) -> None:
        """Buffers have no size."""


class StreamTransport(asyncio.Transport):
    """A transport over an endpoint; callbacks run on the node, and in the context, that made it."""

    def __init__(self, loop: Timeline, endpoint: Endpoint, protocol: asyncio.Protocol) -> None:
        super().__init__(
            {
                "socket": _Socket(endpoint.port),
                "sockname": (LOOPBACK, endpoint.port),
                "peername": (LOOPBACK, endpoint.peer.port),
            }
        )
        self._loop = loop
        self._endpoint = endpoint
        self._protocol: asyncio.Protocol = protocol
        self._context = copy_context()
        self._unsent = bytearray()
        self._high = _HIGH_BYTES
        self._is_reading = True
        self._is_closing = False
        self._is_lost = False
        self._ends_after_unsent = False
        self._has_paused = False
        self._is_due = False
        endpoint.on_change = self._changed
        protocol.connection_made(self)
        self._changed()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """More can be read or sent: look at it in the next turn of the node."""
        if not self._is_due and not self._is_lost:
            self._is_due = True
            self._loop.call_soon(self._look, context=self._context)

    def _look(self) -> None:
        self._is_due = False
        if self._is_lost:
            return
        if self._unsent:
            self._send_rest()
        if self._is_reading and not self._is_closing and self._endpoint.is_readable:
            self._read()

    def _read(self) -> None:
        try:
            data = self._endpoint.recv(_READ_BYTES)
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._protocol.data_received(data)
            if not self._is_lost and self._endpoint.is_readable:
                self._changed()
        else:
            self._is_reading = False
            if not self._protocol.eof_received():
                self.close()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._changed()

    def is_reading(self) -> bool:
        return self._is_reading

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_lost or not data:
            return
        if not (self._unsent or self._is_closing or self._ends_after_unsent) and self._sent_at_once(data):
            return
        self._unsent += data
        self._send_rest()
        if len(self._unsent) > self._high and not self._has_paused:
            self._has_paused = True
            self._protocol.pause_writing()

    def _sent_at_once(self, data: bytes | bytearray | memoryview) -> bool:
        """Send it if there is room for all of it: as nearly always."""
        if not self._endpoint.has_room(len(data)):
            return False
        self._endpoint.send(data)
        return True

    def _send_rest(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._endpoint.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            self._loop.call_soon(self._lose, error, context=self._context)
            return
        if self._has_paused:
            self._has_paused = False
            self._protocol.resume_writing()
        if self._ends_after_unsent:
            self._endpoint.shut()
        if self._is_closing:
            self._loop.call_soon(self._lose, None, context=self._context)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._ends_after_unsent = True
        if not self._unsent:
            self._endpoint.shut()

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH_BYTES if high is None else high

    # -- ending ------------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing or self._endpoint.is_closed

    def close(self) -> None:
        """Close when all has been sent."""
        if not self._is_closing:
            self._is_closing = True
            if not self._unsent:
                self._loop.call_soon(self._lose, None, context=self._context)

    def abort(self) -> None:
        self._is_closing = True
        self._unsent.clear()
        self._endpoint.close()
        self._loop.call_soon(self._lose, None, context=self._context)

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._endpoint.close()
            self._protocol.connection_lost(error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol


class StreamServer(asyncio.AbstractServer):
    """A server of the loop's `create_server`."""

    def __init__(self, listening: ListeningSocket) -> None:
        self._listening = listening
        self._is_serving = True
        self.sockets = (_Socket(listening.port),)

    def close(self) -> None:
        self._is_serving = False
        self._listening.close()

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        """It serves from the start."""

    async def serve_forever(self) -> None:
        """Never return; cancelled, close."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.close()

    async def wait_closed(self) -> None:
        """Closing takes no time."""

    def get_loop(self) -> Any:
        return asyncio.get_running_loop()


async def connected(
    network: Network, protocol_factory: Callable[[], asyncio.Protocol], port: int
) -> tuple[StreamTransport, asyncio.Protocol]:
    """As `create_connection` of a loop. Raises `ConnectionRefusedError`."""
    endpoint = await network.connect(port)
    protocol = protocol_factory()
    return StreamTransport(network.loop, endpoint, protocol), protocol


def serving(network: Network, protocol_factory: Callable[[], asyncio.Protocol], port: int) -> StreamServer:
    """As `create_server` of a loop. Raises `EnvironmentFault` if the port is in use."""

    def accepted(endpoint: Endpoint) -> None:
        StreamTransport(network.loop, endpoint, protocol_factory())

    return StreamServer(network.listen(port, accepted))
