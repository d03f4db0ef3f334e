"""One client's connection, as the server sees it: frames in, at most one request at work, responses out in order.

A request that comes while nothing else of its connection is at work is served as it is read: reading has a budget of
each turn of the loop (`kernel.broker.readiness`). But of a prompt connection, which is read before others so that its
heartbeats are answered at once, only heartbeats are; anything else of it, and whatever has come behind another request,
waits for its turn (`kernel.broker.turns`). While one waits for its turn or for its answer, the connection is muted:
later frames are kept, 64 KiB and what two reads bring, and stay unread beyond that.

What was received whole is served even if the client has gone by then, as by Kafka: a LeaveGroup counts although
nobody waits for its answer. Only what comes behind a request that still waits is dropped with the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kernel.broker import api_versions
from kernel.broker.connection_state import CLOSED, PARTIAL, QUEUED, QUIET, UNREAD, WAITING
from kernel.broker.handlers import Encoded, Later, RequestContext
from kernel.broker.poller import READABLE, WRITABLE
from kernel.broker.served_socket import ServedSocket
from kernel.wire.codec import decode_request, encode_response, response_with
from kernel.wire.errors import ProtocolError, UnsupportedVersion
from kernel.wire.frames import FrameBuffer
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from kernel.broker.handlers import Again, Answer
    from kernel.broker.server import BrokerServer

log = logging.getLogger(__name__)

#: Unread bytes kept for a muted connection before its socket is no longer read.
READ_AHEAD_BYTES = 64 * 1024
#: What is received at once, and when it is the rest of something long.
RECEIVED_BYTES, REST_BYTES = 64 * 1024, 256 * 1024
#: Unsent bytes with which a client that did not read counts as one that reads again.
UNSENT_BYTES_LOW = 16 * 1024
#: Heartbeats of one connection answered before the others get their turn.
TURN_REQUESTS = 32

_NAMES = {int(api).to_bytes(2, "big"): api.name for api in Api}
_HEARTBEAT, _JOIN_GROUP = (int(api).to_bytes(2, "big") for api in (Api.Heartbeat, Api.JoinGroup))
#: What answers mostly are when they are there; whether something can be awaited takes longer to find out.
_AT_ONCE = (Encoded, dict, type(None))


class ServedConnection(ServedSocket):
    """A socket that was accepted. The server knows it until it is closed."""

    __slots__ = (
        "_again",
        "_back",
        "_buffer",
        "_frame",
        "_front",
        "_future",
        "_has_ended",
        "_host",
        "_id",
        "_is_open",
        "_kind",
        "_server",
        "_state",
        "active_at",
    )

    def __init__(self, server: BrokerServer, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(server.readiness, accepted)
        #: When something was last read or written; `readiness.now` is old if nobody was heard lately.
        self.active_at = server.readiness.clock()
        self._server = server
        self._host = host
        self._id = connection_id
        self._kind = b""  # the API key of the last request that was served
        self._state = QUIET
        self._is_open = True  # responses are sent
        self._has_ended = False  # the client sends nothing more
        self._buffer = FrameBuffer(server.limits.frame_bytes_max)
        self._frame: bytes | None = None  # the request that waits for its turn
        self._future: tuple[asyncio.Future[Answer], RequestContext] | None = None
        #: What answers the last heartbeat again, and its bytes before and behind the correlation id.
        self._again: Again | None = None
        self._front = self._back = b""

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

    @property
    def last_read(self) -> str:
        """The name of the last request."""
        return _NAMES.get(self._kind, "request")

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            data = self._receive(RECEIVED_BYTES if self._state is QUIET else REST_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._lose()
            return
        self.active_at = self._readiness.now
        again = self._again
        # The short way of most of what a coordinator is asked: the very heartbeat of the last time.
        if again is not None and self._state is QUIET and data[12:] == self._back and data[:8] == self._front:
            tail = again()
            if tail is not None:
                self._send((len(tail) + 4).to_bytes(4, "big") + data[8:12] + tail)
                return
        self._received(data)

    def _received(self, data: bytes) -> None:
        if not data:
            self._end()
        elif self._state is QUIET and (frame := self._buffer.whole(data)) is not None:
            if self.is_prompt:
                self._begin(frame)
            else:  # its turn is now: the patient are read for a budget of their own
                self._serve_or_close(frame)
        else:
            self._buffer.feed(data)
            if self._state is QUIET or self._state is PARTIAL:
                self._serve_kept()
            elif len(self._buffer) > READ_AHEAD_BYTES:
                self._watch(self._events & ~READABLE)

    def _end(self) -> None:
        """The client sends nothing more, and Kafka's clients then read nothing more."""
        self._has_ended = True
        self._watch(self._events & ~READABLE)
        if self._state is not QUEUED:
            self._close()

    # -- serving -----------------------------------------------------------------------------------------------------

    def _begin(self, frame: bytes) -> None:
        """A request that nothing of its connection is before: a heartbeat is served now, all others in their turn."""
        if frame[:2] == _HEARTBEAT:
            self._serve_or_close(frame)
        else:
            if frame[:2] == _JOIN_GROUP and self.is_prompt and self._is_open:
                self._server.readiness.move(self, self._events, prompt=False)
            self._frame = frame
            self._state = QUEUED
            self._server.turns.soon(self._take_turn, _NAMES.get(frame[:2], "request"))

    def _take_turn(self) -> None:
        """Serve the request that has waited for its turn, and what was kept behind it."""
        with self._aborted_by_mistakes():
            if self._state is QUEUED:  # else it was aborted
                self._state = QUIET
                frame, self._frame = self._frame, None
                if frame is not None:
                    self._serve_or_close(frame)
                if self._state is QUIET:
                    self._serve_kept()

    def _serve_kept(self) -> None:
        """Go on with whole frames that are kept, until one has to wait."""
        for _ in range(TURN_REQUESTS):
            try:
                frame = self._buffer.next_frame()
            except ProtocolError as error:
                self.close(str(error))
                return
            if frame is None:
                self._rest()
                return
            self._state = QUIET
            self._begin(frame)
            if self._state is not QUIET:
                return
        self._state = QUEUED
        self._server.turns.soon(self._take_turn, "Heartbeat")

    def _rest(self) -> None:
        """Nothing whole is kept."""
        self._state = PARTIAL if len(self._buffer) else QUIET
        if self._has_ended or not self._is_open:
            self._close()
        elif not self._events & READABLE:
            self._watch(self._events | READABLE)

    def _serve_or_close(self, frame: bytes) -> None:
        self._kind = frame[:2]
        try:
            self._serve(frame)
        except ProtocolError as error:
            self.close(str(error))

    def _serve(self, frame: bytes) -> None:
        try:
            request = decode_request(frame, self._server.readers)
        except UnsupportedVersion as error:
            if error.api_key != Api.ApiVersions:
                raise
            if self._is_open:
                self._send(api_versions.refusal(error.correlation_id))
            return
        api, version, correlation_id, client_id, body = request
        handler = self._server.handlers.get(api)
        if handler is None:
            raise UnsupportedVersion(api, version, correlation_id)
        context = RequestContext(self._id, client_id or "", self._host, api, version, correlation_id)
        answer = handler(context, body)
        if type(answer) is Later:
            self._await_later(context, answer)
        elif isinstance(answer, _AT_ONCE) or not isinstance(answer, Awaitable):
            self._write(context, answer)
            if api is Api.Heartbeat and self._is_open:
                self._remember(frame, context, body)
        else:
            self._await(context, answer)

    def _remember(self, frame: bytes, context: RequestContext, body: object) -> None:
        """Have the next heartbeat answered without decoding it, if it is the same one; and read it before others."""
        repeat = self._server.repeat_heartbeat
        self._again = None if repeat is None else repeat(context, body)
        if self._again is None:
            return
        self._front, self._back = len(frame).to_bytes(4, "big") + frame[:4], frame[8:]
        if not self.is_prompt:
            self._server.readiness.move(self, self._events, prompt=True)

    def _await(self, context: RequestContext, answer: Awaitable[Answer]) -> None:
        future = asyncio.ensure_future(answer)
        if future.done() and not future.cancelled() and future.exception() is None:
            self._write(context, future.result())
            return
        self._future = (future, context)
        self._state = WAITING
        if isinstance(future, asyncio.Task):
            self._server.wait_for(future)
        future.add_done_callback(self._answered)
        if not self._is_open or self._has_ended:
            self._close()

    def _await_later(self, context: RequestContext, answer: Later[Answer]) -> None:
        self._state = WAITING
        answer.when_given(functools.partial(self._give_later, context), self.abort)
        if self._state is WAITING and (not self._is_open or self._has_ended):
            self._close()

    def _give_later(self, context: RequestContext, answer: Answer) -> None:
        if self._state is not WAITING:  # it was closed meanwhile
            return
        self.active_at = self._readiness.clock()
        good = False
        try:
            self._state = QUIET
            self._write(context, answer)
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
            self._write(context, future.result())
            if self._state is QUIET:
                self._serve_kept()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _write(self, context: RequestContext, answer: Answer) -> None:
        if answer is None or not self._is_open:
            return
        if isinstance(answer, Encoded):
            self._send(response_with(context.correlation_id, answer.tail))
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
        self._unsent.clear()
        self._close()

    def _close(self) -> None:
        self._state = CLOSED
        self._is_open = False
        self._frame = None
        if self._unsent:
            self._watch(WRITABLE)
        else:
            self._release()
        self._cancel_fetch()

    def _lose(self) -> None:
        """The connection is gone. What was received before is served nevertheless, up to a request that has to wait."""
        self._is_open = False
        self._unsent.clear()
        self._release()
        if self._state is WAITING or self._state is UNREAD:
            self._close()

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
