"""Waits for a request's response, sends it, and closes the connection."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel.broker.loop.poller import WRITABLE
from kernel.broker.server.budgeted_socket import BudgetedSocket
from kernel.broker.server.connection_state import CLOSED, IDLE, QUEUED, UNREAD, WAITING
from kernel.broker.server.handlers import Encoded, Rows
from kernel.broker.server.long_responses import LongResponse
from kernel.wire.codec import encode_response, encode_response_in_pieces, response_with
from kernel.wire.errors import ProtocolError
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Iterator

    from kernel.broker.server.connection_resources import ConnectionResources
    from kernel.broker.server.handlers import DeferredResponse, RequestContext, Response

log = logging.getLogger(__name__)

#: Requests that may wait for other clients. Their bytes are released once decoded, or the budget might keep those
#: other clients from being read. What they hold while waiting is bounded elsewhere.
WAITS_FOR_OTHERS = frozenset({Api.Fetch, Api.JoinGroup, Api.SyncGroup, Api.AwaitCommand})
#: The response to a longer request is encoded on a thread, unless it is `Rows`.
LONG_BYTES = 32 * 1024
#: A client that had stopped reading counts as reading again below this many unsent bytes.
UNSENT_BYTES_LOW = 16 * 1024


class RespondingConnection(BudgetedSocket):
    """The sending half of a connection; the subclass receives and serves (`_on_turn`, `_serve_buffered`)."""

    __slots__ = ("_frame", "_future", "_has_ended", "_is_open", "_resources", "active_at")

    def __init__(self, resources: ConnectionResources, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(resources, accepted, host, connection_id)
        #: When data was last read or written. Not `readiness.now`, which is stale if nothing was read lately.
        self.active_at = resources.readiness.clock()
        self._resources = resources
        self._is_open = True  # responses can be sent
        self._has_ended = False  # everything the client sent has been received
        self._frame: bytes | None = None  # the request waiting for its turn
        self._future: tuple[asyncio.Future[Response], RequestContext] | None = None

    @property
    def waits(self) -> bool:
        """Whether one of its requests is queued or pending."""
        return self._state is WAITING or self._state is QUEUED

    @property
    def is_closing(self) -> bool:
        """Whether it is open only until its unsent bytes are sent."""
        return self._state is CLOSED

    @property
    def is_unread(self) -> bool:
        """Whether it is not served until its client reads."""
        return self._state is UNREAD

    # -- waiting for the response ------------------------------------------------------------------------------------

    def _await(self, context: RequestContext, response: Awaitable[Response]) -> None:
        future = asyncio.ensure_future(response)
        if future.done() and not future.cancelled() and future.exception() is None:
            self._write(context, future.result())
            return
        self._future = (future, context)
        self._state = WAITING
        if self._at_work and context.api in WAITS_FOR_OTHERS:
            self._finish_request()
        if isinstance(future, asyncio.Task):
            self._resources.keep_task(future)
        future.add_done_callback(self._on_done)
        if not self._is_open or self._has_ended:
            self._leave_waiting()

    def _await_deferred(self, context: RequestContext, response: DeferredResponse[Response]) -> None:
        self._state = WAITING
        if self._at_work and context.api in WAITS_FOR_OTHERS:
            self._finish_request()
        response.on_complete(functools.partial(self._complete, context), self.abort)
        if self._state is WAITING and (not self._is_open or self._has_ended):
            self._leave_waiting()

    def _await_rows(self, context: RequestContext, response: Rows) -> None:
        """Generate and encode a long response in turns."""
        self._state = WAITING
        LongResponse(
            context,
            response,
            turns=self._resources.turns,
            budget=self._memory.responses,
            complete=lambda tail: self._complete(context, Encoded(tail)),
            fail=self.abort,
            is_wanted=lambda: self._state is WAITING and self._is_open,
        )

    def _await_encoding(self, context: RequestContext, response: Mapping[str, Any]) -> None:
        """Encode the response to a large request, which is mostly large too, on a thread.

        The loop then waits for the interpreter lock a few milliseconds at a time instead of for the whole encoding.
        """

        async def encoded() -> Encoded:
            frame = await self._resources.threads.run(encode_response, context.api, context.version, 0, response)
            return Encoded(frame[8:])

        self._await(context, encoded())

    def _leave_waiting(self) -> None:
        """The client of the pending request has gone: go on only for requests received after it."""
        if self._has_ended and not self._buffer.has_frame:
            self._close()
        else:
            self._cancel_fetch()

    def _complete(self, context: RequestContext, response: Response) -> None:
        if self._state is not WAITING:  # it has been closed since
            return
        self.active_at = self._readiness.clock()
        good = False
        try:
            self._state = IDLE
            self._write(context, response)
            if self._at_work:
                self._finish_request()
            if self._state is IDLE and (self._buffer or self._has_ended or not self._is_open):
                self._serve_buffered()
            good = True
        finally:
            if not good:
                self.abort()

    def _on_done(self, _: asyncio.Future[Response]) -> None:
        """Send the response in a later turn: thousands may be done at once."""
        self._resources.turns.soon(self._send_result, "answer")

    def _send_result(self) -> None:
        with self._abort_on_error():
            self._respond_with_result()

    def _respond_with_result(self) -> None:
        assert self._future is not None
        (future, context), self._future = self._future, None
        if future.cancelled():
            if self._state is WAITING and context.api is Api.Fetch and (self._has_ended or not self._is_open):
                self._state = IDLE
                self._serve_buffered()
            else:
                self.close(f"{context.api.name} was cancelled")
            return
        error = future.exception()
        if isinstance(error, ProtocolError):
            self.close(str(error))
            return
        if error is not None:
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"{context.api.name} version {context.version} failed",
                    "exception": error,
                    "future": future,
                }
            )
            self.abort()
            return
        if self._state is WAITING:  # else it has been closed since
            self._state = IDLE
            self.active_at = self._readiness.clock()
            self._respond(context, future.result())
            if self._state is WAITING:
                return
            if self._at_work:
                self._finish_request()
            if self._state is IDLE:
                self._serve_buffered()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _respond(self, context: RequestContext, response: Response) -> None:
        """Send the response now, or wait until it has been encoded."""
        if type(response) is Rows:
            self._await_rows(context, response)
        elif self._at_work > LONG_BYTES and context.api is not Api.Fetch and isinstance(response, Mapping):
            self._await_encoding(context, response)
        else:
            self._write(context, response)

    def _write(self, context: RequestContext, response: Response) -> None:
        if response is None or not self._is_open:
            return
        if type(response) is Encoded:
            self._send(response_with(context.correlation_id, response.tail))
            return
        assert not isinstance(response, Rows | Encoded), "rows are encoded in turns"
        if context.api is Api.Fetch:  # records are not copied
            for piece in encode_response_in_pieces(context.api, context.version, context.correlation_id, response):
                if self._is_open:  # the client may go between two pieces
                    self._send(piece)
        else:
            self._send(encode_response(context.api, context.version, context.correlation_id, response))

    def _on_unread(self) -> None:
        if self._state is IDLE:
            self._state = UNREAD

    def _on_read(self, unsent: int) -> None:
        self.active_at = self._readiness.now
        if self._state is CLOSED and not unsent:
            self._release()
        elif self._state is UNREAD and unsent <= UNSENT_BYTES_LOW:
            self._state = QUEUED
            self._resources.turns.soon(self._on_turn, "buffered requests")

    # -- ending ------------------------------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Close once all responses have been sent; drop buffered requests."""
        if self._is_open:
            log.info("connection %d from %s closed: %s", self._id, self._host, why)
        self._close()

    def abort(self) -> None:
        """Close immediately, even if `close` is still sending to a client that does not read."""
        self._drop_unsent()
        self._close()

    def _close(self) -> None:
        self._state = CLOSED
        self._is_open = False
        self._frame = None
        self._buffer.clear()
        self._finish_request()
        if self._unsent:
            self._watch(WRITABLE)
        else:
            self._release()
        self._cancel_fetch()

    def _lose(self) -> None:
        """Sending has become impossible. Still read and serve what the client sent before."""
        self._is_open = False
        self._drop_unsent()
        self._watch(self._events & ~WRITABLE)
        if self._state is CLOSED:
            self._release()
        elif self._state is WAITING:
            self._leave_waiting()
        elif self._state is UNREAD:
            self._state = QUEUED
            self._resources.turns.soon(self._on_turn, "buffered requests")

    def _release(self) -> None:
        if self.fd >= 0:
            self._close_socket()
            self._resources.on_released(self)

    def _cancel_fetch(self) -> None:
        if self._future is not None:
            future, context = self._future
            if context.api is Api.Fetch:
                future.cancel()

    @contextlib.contextmanager
    def _abort_on_error(self) -> Iterator[None]:
        """For callbacks of `Turns`, which reports unexpected exceptions: they must not leave the connection muted."""
        good = False
        try:
            yield
            good = True
        finally:
            if not good:
                self.abort()

    # -- implemented by subclasses -----------------------------------------------------------------------------------

    def _on_turn(self) -> None:
        """Serve the request that waited for its turn, and those buffered after it."""
        raise NotImplementedError

    def _serve_buffered(self) -> None:
        """Serve complete buffered frames until one has to wait."""
        raise NotImplementedError
