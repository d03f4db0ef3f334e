"""A client's connection to a broker: requests pipelined by correlation id, versions negotiated.

A request timeout closes the connection, as in Kafka's clients: later responses would be late as well. Cancelling a
caller leaves the connection open; its response is dropped.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.errors import Unavailable
from kernel.trace.writer import SilentTracer
from kernel.wire.codec import correlation_of, decode_response, encode_request
from kernel.wire.errors import ErrorCode, MalformedFrame, ProtocolError, error_name
from kernel.wire.frames import MAX_FRAME_BYTES, FrameBuffer
from kernel.wire.versions import SERVED, Api, negotiated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.trace.writer import Tracer

REQUEST_TIMEOUT_MS = 30_000  #: Kafka's request.timeout.ms

_SOFTWARE = {"client_software_name": "rebalance-lab", "client_software_version": "0.1.0"}


class Disconnected(Unavailable):
    """The connection is closed; whether the request was carried out is unknown."""


class RequestTimedOut(Disconnected):
    """No response in time; the connection was closed, and whether the request was carried out is unknown."""


class UnsupportedByBroker(Unavailable):
    """The broker and this client have no version of this API in common."""


class _Sent(NamedTuple):
    api: Api
    version: int
    future: asyncio.Future[Any]


class BrokerConnection:
    """Created by `open`. Calls may be concurrent.

    `member` and `stream` identify the caller in the trace; they may be set at any time.
    """

    def __init__(
        self, host: str, port: int, client_id: str, *, node_id: int = -1, tracer: Tracer | None = None
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.node_id = node_id
        self.member: str | None = None
        self.stream: int | None = None
        self.offered: Mapping[int, tuple[int, int]] = {}  #: the broker's versions, by API key
        self._tracer = tracer or SilentTracer()
        self._traces = not isinstance(self._tracer, SilentTracer)
        self._sent: dict[int, _Sent] = {}
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._ended: asyncio.Future[None] | None = None

    @classmethod
    async def open(  # noqa: PLR0913  # what a caller may know of a broker, and wants of its connection
        cls,
        host: str,
        port: int,
        client_id: str,
        *,
        timeout_ms: int = 10_000,
        node_id: int = -1,
        tracer: Tracer | None = None,
        receive_buffer_bytes: int | None = None,
        offered: Mapping[int, tuple[int, int]] | None = None,
    ) -> BrokerConnection:
        """Connect and negotiate versions. Raises `Unavailable` on failure or after `timeout_ms`.

        `receive_buffer_bytes` sets SO_RCVBUF; None leaves it to the system. `offered`: the versions of a broker from
        before ApiVersions, which is not asked for them.
        """
        connection = cls(host, port, client_id, node_id=node_id, tracer=tracer)
        loop = asyncio.get_running_loop()
        connection._ended = loop.create_future()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await loop.create_connection(lambda: _ClientProtocol(connection), host, port)
                if receive_buffer_bytes is not None:
                    connection._ask_for_buffer(receive_buffer_bytes)
                if offered is None:
                    await connection._negotiate()
                else:
                    connection.offered = offered
        except TimeoutError as error:
            connection.close()
            raise Unavailable(f"the broker at {host}:{port} did not answer within {timeout_ms} ms") from error
        except OSError as error:
            raise Unavailable(f"no broker answers at {host}:{port}: {_reason(error)}") from error
        except (asyncio.CancelledError, Disconnected, ProtocolError):
            connection.close()
            raise
        return connection

    @property
    def closed(self) -> bool:
        return self._transport is None

    def version_of(self, api: Api) -> int:
        """The version that `call` uses by default. Raises `UnsupportedByBroker`."""
        version = negotiated(api, self.offered)
        if version is None:
            raise UnsupportedByBroker(
                f"{self.host}:{self.port} offers versions {self.offered.get(api)} of {api.name},"
                f" this client supports {SERVED[api]}"
            )
        return version

    async def call(
        self,
        api: Api,
        body: Mapping[str, Any],
        *,
        version: int | None = None,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        group: str | None = None,
    ) -> Any:
        """Return kio's entity. Raises `Disconnected`, `RequestTimedOut`, `UnsupportedByBroker`, `ProtocolError`.

        `body` is for `kernel.wire.writing`; `group` goes into the trace.
        """
        chosen = self.version_of(api) if version is None else version
        correlation_id, future = self._send(api, chosen, body)
        timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._time_out, correlation_id, timeout_ms)
        error = "CANCELLED"
        try:
            answer = await future
            error = error_of(answer) if self._traces else ""
        except RequestTimedOut:
            error = "TIMED_OUT"
            raise
        except Disconnected:
            error = "DISCONNECTED"
            raise
        except ProtocolError:
            error = "MALFORMED"
            raise
        finally:
            timer.cancel()
            if self._traces:
                self._trace(api, chosen, correlation_id, error, group)
        return answer

    def send_only(self, api: Api, body: Mapping[str, Any]) -> None:
        """Send a request that has no response (Produce with acks=0). Raises `Disconnected`."""
        self._correlation_id += 1
        self._write(encode_request(api, self.version_of(api), self._correlation_id, self.client_id, body))

    def close(self) -> None:
        """Close the connection. Pending calls raise `Disconnected`. Idempotent."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._fail_all(Disconnected(f"the connection to {self.host}:{self.port} was closed"))

    async def wait_closed(self) -> None:
        """Wait until the socket is closed, after `close`."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    # -- internals ---------------------------------------------------------------------------------------------------

    def _ask_for_buffer(self, size: int) -> None:
        if self._transport is not None:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    def _send(self, api: Api, version: int, body: Mapping[str, Any]) -> tuple[int, asyncio.Future[Any]]:
        self._correlation_id += 1
        correlation_id = self._correlation_id
        frame = encode_request(api, version, correlation_id, self.client_id, body)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._write(frame)
        self._sent[correlation_id] = _Sent(api, version, future)
        return correlation_id, future

    def _write(self, frame: bytes) -> None:
        if self._transport is None:
            raise Disconnected(f"the connection to {self.host}:{self.port} is closed")
        self._transport.write(frame)

    async def _negotiate(self) -> None:
        """Send ApiVersions 3; a broker that responds with 35 includes its own highest version (KIP-511)."""
        version = 3
        while True:
            correlation_id, future = self._send(Api.ApiVersions, version, _SOFTWARE if version >= 3 else {})
            answer = await future
            self._trace(Api.ApiVersions, version, correlation_id, error_of(answer), None)
            offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
            if answer.error_code is ErrorCode.none:
                self.offered = offered
                return
            if answer.error_code is not ErrorCode.unsupported_version or version == 0:
                raise ProtocolError(f"ApiVersions was answered with {error_name(answer.error_code)}")
            version = min(offered.get(Api.ApiVersions, (0, 0))[1], version - 1)

    def _trace(self, api: Api, version: int, correlation_id: int, error: str, group: str | None) -> None:
        self._tracer.emit(
            "request_answered",
            member=self.member,
            stream=self.stream,
            api=api.name,
            version=version,
            correlation=correlation_id,
            broker=self.node_id,
            error=error,
            group=group,
        )

    def _time_out(self, correlation_id: int, timeout_ms: int) -> None:
        late = self._sent.get(correlation_id)
        if late is None:
            return  # answered in the same turn of the loop, before its caller could cancel the timer
        error = RequestTimedOut(f"{late.api.name} was not answered by {self.host}:{self.port} within {timeout_ms} ms")
        self._fail_all(error)
        self.close()

    def connected(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def answered(self, frame: bytes) -> None:
        """Handle a frame. Raises `ProtocolError`; drops a late response to a cancelled call."""
        sent = self._sent.pop(correlation_of(frame), None)
        if sent is None:
            raise ProtocolError(f"{self.host}:{self.port} answered a request that was never sent")
        # A broker that does not know our version of ApiVersions responds with version 0 (KIP-511).
        version = 0 if sent.api is Api.ApiVersions and frame[4:6] == b"\0\x23" else sent.version
        try:
            _, answer = decode_response(sent.api, version, frame)
        except ProtocolError as error:
            nonsense = MalformedFrame(f"{self.host}:{self.port} answered {sent.api.name} with nonsense: {error}")
            if not sent.future.done():
                sent.future.set_exception(nonsense)
            raise nonsense from error
        if not sent.future.done():
            sent.future.set_result(answer)

    def broken(self, why: str) -> None:
        """The broker has closed the connection, or sent garbage."""
        self._fail_all(Disconnected(f"the connection to {self.host}:{self.port} ended: {why}"))
        self.close()

    def ended(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _fail_all(self, error: Disconnected) -> None:
        waiting, self._sent = self._sent, {}
        for sent in waiting.values():
            if not sent.future.done():
                sent.future.set_exception(error)


class _ClientProtocol(asyncio.Protocol):
    """The asyncio protocol of a `BrokerConnection`."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._buffer = FrameBuffer(MAX_FRAME_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection.connected(transport)

    def data_received(self, data: bytes) -> None:
        self._buffer.feed(data)
        try:
            while (frame := self._buffer.next_frame()) is not None:
                self._connection.answered(frame)
        except ProtocolError as error:
            self._connection.broken(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.broken("closed by the broker" if exc is None else str(exc))
        self._connection.ended()


def error_of(answer: Any) -> str:
    """The first error in a response, at the top or in any partition, by Kafka's name; '' if there is none."""
    code = getattr(answer, "error_code", ErrorCode.none)
    if code != ErrorCode.none:
        return error_name(code)
    for name in getattr(answer, "__slots__", ()):
        value = getattr(answer, name)
        if isinstance(value, tuple) and value and hasattr(value[0], "__slots__"):  # not numbers or names
            for element in value:
                if found := error_of(element):
                    return found
    return ""


def _reason(error: OSError) -> str:
    """Why nobody answers. The message of asyncio names the address instead, that of a name's lookup says it well."""
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno)
