"""One client's connection: frames in, at most one pending request, responses out in order.

A request on an idle connection is served as it is read; reading has a time budget in each turn of the loop
(`kernel.broker.loop.readiness`). Prompt connections, which are read before all others so that their heartbeats are
answered immediately, are the exception: only their heartbeats are served as they are read. Their other requests, and
requests that arrive after another one, wait for a turn (`kernel.broker.loop.turns`). While a request waits for its turn
or its response, the connection is muted: up to 64 KiB and two reads of later frames are buffered, the rest stays
unread.

Requests of a client that has gone are still served, as in Kafka: records sent with acks=0 are stored, and a LeaveGroup
after a commit counts although no client waits for its response. So the socket is read to its end, at the usual pace,
even when it can no longer be written to. Only a Fetch is cancelled when its client goes; any other pending request is
left alone unless more was received after it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE
from kernel.broker.server import api_versions
from kernel.broker.server.budget import FREE_BYTES
from kernel.broker.server.connection_state import IDLE, PARTIAL, QUEUED, UNREAD, WAITING
from kernel.broker.server.handlers import DeferredResponse, Encoded, RequestContext, Rows
from kernel.broker.server.responding_connection import RespondingConnection
from kernel.wire.codec import decode_request
from kernel.wire.errors import ProtocolError, UnsupportedVersion
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket

    from kernel.broker.server.connection_resources import ConnectionResources
    from kernel.broker.server.handlers import CachedResponse

#: Bytes buffered for a muted connection before its socket is no longer read.
READ_AHEAD_BYTES = 64 * 1024
#: Heartbeats of one connection served before other connections get a turn.
TURN_REQUESTS = 32

_NAMES = {int(api).to_bytes(2, "big"): api.name for api in Api}
_HEARTBEAT, _JOIN_GROUP = (int(api).to_bytes(2, "big") for api in (Api.Heartbeat, Api.JoinGroup))
#: Requests that are cached. Only the first costs little enough to be served as it is read when it is not.
_REPEATED = (Api.Heartbeat, Api.ConsumerGroupHeartbeat)
#: The usual types of immediate responses; testing for `Awaitable` takes longer.
_IMMEDIATE = (Encoded, dict, type(None))


class ServedConnection(RespondingConnection):
    """An accepted connection, until it is closed. `buffered_socket.py` explains the chain of base classes."""

    __slots__ = ("_api_key", "_cached_prefix", "_cached_response", "_cached_suffix")

    def __init__(self, resources: ConnectionResources, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(resources, accepted, host, connection_id)
        self._api_key = b""  # of the last request served
        #: Answers a repetition of the last heartbeat, whose bytes before and after the correlation id follow.
        self._cached_response: CachedResponse | None = None
        self._cached_prefix = self._cached_suffix = b""

    @property
    def last_read(self) -> str:
        """The name of the last request."""
        return _NAMES.get(self._api_key, "request")

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            if self._state is IDLE:
                data = self._receive(self._memory.first_bytes)
            elif receivable := self._receivable():
                data = self._receive(receivable)
            else:
                self._watch(self._events & ~READABLE)
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._lose()
            self._end()
            return
        self.active_at = self._readiness.now
        cached_response = self._cached_response
        # The fast path of most requests to a coordinator: the same heartbeat again.
        if (
            cached_response is not None
            and self._state is IDLE
            and data[12:] == self._cached_suffix
            and data[:8] == self._cached_prefix
        ):
            tail = cached_response()
            if tail is not None:
                self._send((len(tail) + 4).to_bytes(4, "big") + data[8:12] + tail)
                return
        self._received(data)

    def _received(self, data: bytes) -> None:
        if not data:
            self._end()
        elif self._state is IDLE and (frame := self._buffer.whole(data)) is not None:
            if self.is_prompt:
                self._begin(frame)
            else:  # this is its turn: reading patient connections has its own budget
                if len(frame) > FREE_BYTES:
                    self._at_work = len(frame)
                    self._account()
                self._serve_or_close(frame)
        else:
            self._buffer.feed(data)
            self._moved += len(data)
            self._account()
            if self._state is IDLE or self._state is PARTIAL:
                self._serve_buffered()
            elif len(self._buffer) > READ_AHEAD_BYTES:
                self._watch(self._events & ~READABLE)

    def _end(self) -> None:
        """Everything the client sent has been received."""
        self._has_ended = True
        self._watch(self._events & ~READABLE)
        if self._state is IDLE or self._state is PARTIAL:
            self._close()
        elif self._state is WAITING:
            self._leave_waiting()
        elif self._state is UNREAD and not self._buffer.has_frame:
            self._close()

    # -- serving -----------------------------------------------------------------------------------------------------

    def _begin(self, frame: bytes) -> None:
        """Handle a frame with no other request pending: serve a heartbeat now, queue anything else."""
        if frame[:2] == _HEARTBEAT:
            self._serve_or_close(frame)
        else:
            self._at_work = len(frame) if len(frame) > FREE_BYTES else 0
            if frame[:2] == _JOIN_GROUP and self.is_prompt:
                self._move(prompt=False)
            self._frame = frame
            self._state = QUEUED
            self._resources.turns.soon(self._on_turn, _NAMES.get(frame[:2], "request"))

    def _on_turn(self) -> None:
        """Serve the request that waited for its turn, and those buffered after it."""
        with self._abort_on_error():
            if self._state is QUEUED:  # else it was aborted
                self._state = IDLE
                frame, self._frame = self._frame, None
                if frame is not None:
                    self._serve_or_close(frame)
                if self._state is IDLE:
                    self._serve_buffered()

    def _serve_buffered(self) -> None:
        """Serve complete buffered frames until one has to wait."""
        for _ in range(TURN_REQUESTS):
            try:
                frame = self._buffer.next_frame()
            except ProtocolError as error:
                self.close(str(error))
                return
            if frame is None:
                self._pause()
                return
            self._state = IDLE
            self._begin(frame)
            if self._state is not IDLE:
                return
        self._state = QUEUED
        self._resources.turns.soon(self._on_turn, "Heartbeat")

    def _pause(self) -> None:
        """No complete frame is left in the buffer."""
        self._state = PARTIAL if len(self._buffer) else IDLE
        if self._reserved:
            self._account()
        if self._has_ended:
            self._close()
        elif not self._events & READABLE:
            self._watch(self._events | READABLE)

    def _serve_or_close(self, frame: bytes) -> None:
        self._api_key = frame[:2]
        try:
            self._serve(frame)
        except ProtocolError as error:
            if isinstance(error, UnsupportedVersion):
                self._resources.unsupported.warn(error, self._host, self._readiness.clock())
            self.close(str(error))
        if self._at_work and self._state is not WAITING:
            self._finish_request()

    def _serve(self, frame: bytes) -> None:
        try:
            request = decode_request(frame, self._resources.readers)
        except UnsupportedVersion as error:
            if error.api_key != Api.ApiVersions:
                raise
            if self._is_open:
                self._send(api_versions.refusal(error.correlation_id))
            return
        api, version, correlation_id, client_id, body = request
        handler = self._resources.handlers.get(api)
        if handler is None:
            raise UnsupportedVersion(api, version, correlation_id, client_id or "")
        context = RequestContext(self._id, client_id or "", self._host, api, version, correlation_id)
        response = handler(context, body)
        if type(response) is DeferredResponse:
            self._await_deferred(context, response)
        elif isinstance(response, _IMMEDIATE) or not isinstance(response, Awaitable):
            if self._at_work or type(response) is Rows:
                self._respond(context, response)
            else:
                self._write(context, response)
            if api in _REPEATED and self._is_open:
                self._cache(frame, context, body)
        else:
            self._await(context, response)

    def _cache(self, frame: bytes, context: RequestContext, body: object) -> None:
        """Answer the next heartbeat without decoding it if it is the same, and make this connection prompt."""
        repeat = self._resources.repeats.get(context.api)
        self._cached_response = None if repeat is None else repeat(context, body)
        if self._cached_response is None:
            return
        self._cached_prefix, self._cached_suffix = len(frame).to_bytes(4, "big") + frame[:4], frame[8:]
        if not self.is_prompt:
            self._move(prompt=True)
