"""Waiting for a request's answer, sending it, and ending the connection: what comes behind serving."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel.broker.loop.poller import WRITABLE
from kernel.broker.server.connection_state import CLOSED, QUEUED, QUIET, UNREAD, WAITING
from kernel.broker.server.handlers import Encoded, Rows
from kernel.broker.server.holding_socket import HoldingSocket
from kernel.broker.server.long_answers import LongAnswer
from kernel.wire.codec import encode_response, encode_response_in_pieces, response_with
from kernel.wire.errors import ProtocolError
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Iterator

    from kernel.broker.server.handlers import Answer, Later, RequestContext
    from kernel.broker.server.server import BrokerServer

log = logging.getLogger(__name__)

#: Requests that may wait for what other clients do. Their bytes are given back when they have been decoded, or those
#: others might never be read; what they hold meanwhile has a bound of its own.
WAITS_FOR_OTHERS = frozenset({Api.Fetch, Api.JoinGroup, Api.SyncGroup, Api.AwaitCommand})
#: A request that is longer has its answer encoded on a thread, unless it comes by rows.
LONG_BYTES = 32 * 1024
#: Unsent bytes with which a client that did not read counts as one that reads again.
UNSENT_BYTES_LOW = 16 * 1024


class AnsweredSocket(HoldingSocket):
    """The half of a connection that answers; its owner receives and serves (`_take_turn`, `_serve_kept`)."""

    __slots__ = ("_frame", "_future", "_has_ended", "_is_open", "_server", "active_at")

    def __init__(self, server: BrokerServer, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(server, accepted, host, connection_id)
        #: When something was last read or written; `readiness.now` is old if nobody was heard lately.
        self.active_at = server.readiness.clock()
        self._server = server
        self._is_open = True  # answers are sent
        self._has_ended = False  # everything that the client sent has been received
        self._frame: bytes | None = None  # the request that waits for its turn
        self._future: tuple[asyncio.Future[Answer], RequestContext] | None = None

    @property
    def waits(self) -> bool:
        """Whether a request of it is at work."""
        return self._state is WAITING or self._state is QUEUED

    @property
    def is_closing(self) -> bool:
        """Whether only what is unsent keeps it."""
        return self._state is CLOSED

    @property
    def is_unread(self) -> bool:
        """Whether it is served no further until its client reads."""
        return self._state is UNREAD

    # -- waiting for the answer --------------------------------------------------------------------------------------

    def _await(self, context: RequestContext, answer: Awaitable[Answer]) -> None:
        future = asyncio.ensure_future(answer)
        if future.done() and not future.cancelled() and future.exception() is None:
            self._write(context, future.result())
            return
        self._future = (future, context)
        self._state = WAITING
        if self._at_work and context.api in WAITS_FOR_OTHERS:
            self._finish_request()
        if isinstance(future, asyncio.Task):
            self._server.wait_for(future)
        future.add_done_callback(self._answered)
        if not self._is_open or self._has_ended:
            self._leave_waiting()

    def _await_later(self, context: RequestContext, answer: Later[Answer]) -> None:
        self._state = WAITING
        if self._at_work and context.api in WAITS_FOR_OTHERS:
            self._finish_request()
        answer.when_given(functools.partial(self._give_later, context), self.abort)
        if self._state is WAITING and (not self._is_open or self._has_ended):
            self._leave_waiting()

    def _await_rows(self, context: RequestContext, answer: Rows) -> None:
        """A long answer is made and encoded in turns."""
        self._state = WAITING
        LongAnswer(
            context,
            answer,
            turns=self._server.turns,
            budget=self._memory.answers,
            give=lambda tail: self._give_later(context, Encoded(tail)),
            fail=self.abort,
            is_wanted=lambda: self._state is WAITING and self._is_open,
        )

    def _await_encoding(self, context: RequestContext, answer: Mapping[str, Any]) -> None:
        """What a large request is answered with is mostly long too: it is encoded on a thread.

        Others wait for the interpreter's lock then, some milliseconds at a time, instead of for all of it.
        """

        async def encoded() -> Encoded:
            frame = await asyncio.to_thread(encode_response, context.api, context.version, 0, answer)
            return Encoded(frame[8:])

        self._await(context, encoded())

    def _leave_waiting(self) -> None:
        """The client of the request that waits has gone: only what was received behind it is waited for."""
        if self._has_ended and not self._buffer.has_frame:
            self._close()
        else:
            self._cancel_fetch()

    def _give_later(self, context: RequestContext, answer: Answer) -> None:
        if self._state is not WAITING:  # it was closed meanwhile
            return
        self.active_at = self._readiness.clock()
        good = False
        try:
            self._state = QUIET
            self._write(context, answer)
            if self._at_work:
                self._finish_request()
            if self._state is QUIET and (self._buffer or self._has_ended or not self._is_open):
                self._serve_kept()
            good = True
        finally:
            if not good:
                self.abort()

    def _answered(self, _: asyncio.Future[Answer]) -> None:
        """Thousands may be answered at once: each is written in its turn."""
        self._server.turns.soon(self._give_answer, "answer")

    def _give_answer(self) -> None:
        with self._aborted_by_mistakes():
            self._write_answer()

    def _write_answer(self) -> None:
        assert self._future is not None
        (future, context), self._future = self._future, None
        if future.cancelled():
            if self._state is WAITING and context.api is Api.Fetch and (self._has_ended or not self._is_open):
                self._state = QUIET
                self._serve_kept()
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
        if self._state is WAITING:  # else it was closed meanwhile
            self._state = QUIET
            self.active_at = self._readiness.clock()
            self._answer(context, future.result())
            if self._state is WAITING:
                return
            if self._at_work:
                self._finish_request()
            if self._state is QUIET:
                self._serve_kept()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _answer(self, context: RequestContext, answer: Answer) -> None:
        """Send the answer, now or when it is made and encoded: then the connection waits on."""
        if type(answer) is Rows:
            self._await_rows(context, answer)
        elif self._at_work > LONG_BYTES and context.api is not Api.Fetch and isinstance(answer, Mapping):
            self._await_encoding(context, answer)
        else:
            self._write(context, answer)

    def _write(self, context: RequestContext, answer: Answer) -> None:
        if answer is None or not self._is_open:
            return
        if type(answer) is Encoded:
            self._send(response_with(context.correlation_id, answer.tail))
            return
        assert not isinstance(answer, Rows | Encoded), "rows are encoded in turns"
        if context.api is Api.Fetch:  # records are not copied
            for piece in encode_response_in_pieces(context.api, context.version, context.correlation_id, answer):
                if self._is_open:  # a client may go between two pieces
                    self._send(piece)
        else:
            self._send(encode_response(context.api, context.version, context.correlation_id, answer))

    def _on_unread(self) -> None:
        if self._state is QUIET:
            self._state = UNREAD

    def _on_read(self, unsent: int) -> None:
        self.active_at = self._readiness.now
        if self._state is CLOSED and not unsent:
            self._release()
        elif self._state is UNREAD and unsent <= UNSENT_BYTES_LOW:
            self._state = QUEUED
            self._server.turns.soon(self._take_turn, "what was kept")

    # -- ending ------------------------------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Close after what was answered has been sent; what is kept is dropped."""
        if self._is_open:
            log.info("connection %d from %s closed: %s", self._id, self._host, why)
        self._close()

    def abort(self) -> None:
        """Close now, also when `close` is still sending to a client that does not read."""
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
        """Nothing can be sent any more. What the client sent before is read and served nevertheless."""
        self._is_open = False
        self._drop_unsent()
        self._watch(self._events & ~WRITABLE)
        if self._state is CLOSED:
            self._release()
        elif self._state is WAITING:
            self._leave_waiting()
        elif self._state is UNREAD:
            self._state = QUEUED
            self._server.turns.soon(self._take_turn, "what was kept")

    def _release(self) -> None:
        if self.fd >= 0:
            self._put_away()
            self._server.connections.discard(self)

    def _cancel_fetch(self) -> None:
        if self._future is not None:
            future, context = self._future
            if context.api is Api.Fetch:
                future.cancel()

    @contextlib.contextmanager
    def _aborted_by_mistakes(self) -> Iterator[None]:
        """For what `Turns` calls: a mistake of ours is reported there, and must not leave the connection muted."""
        good = False
        try:
            yield
            good = True
        finally:
            if not good:
                self.abort()

    # -- the owner's -------------------------------------------------------------------------------------------------

    def _take_turn(self) -> None:
        """Serve the request that has waited for its turn, and what was kept behind it."""
        raise NotImplementedError

    def _serve_kept(self) -> None:
        """Go on with whole frames that are kept, until one has to wait."""
        raise NotImplementedError
