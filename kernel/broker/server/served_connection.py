"""One client's connection, as the server sees it: frames in, at most one request at work, responses out in order.

A request that comes while nothing else of its connection is at work is served as it is read: reading has a budget of
each turn of the loop (`kernel.broker.loop.readiness`). But of a prompt connection, which is read before others so that
its heartbeats are answered at once, only heartbeats are; anything else of it, and whatever has come behind another
request, waits for its turn (`kernel.broker.loop.turns`). While one waits for its turn or for its answer, the connection
is muted: later frames are kept, 64 KiB and what two reads bring, and stay unread beyond that.

What a client sent is served even if it has gone by then, as by Kafka: records sent with acks=0 are stored, and a
LeaveGroup behind a commit counts although nobody waits for its answer. So the socket is read to its end, at the same
pace as before, also when it cannot be written to any more. Only a Fetch is cancelled when its client goes, and a
request that waits for others is left alone unless something was received behind it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE
from kernel.broker.server import api_versions
from kernel.broker.server.answered_socket import AnsweredSocket
from kernel.broker.server.budget import FREE_BYTES
from kernel.broker.server.connection_state import PARTIAL, QUEUED, QUIET, UNREAD, WAITING
from kernel.broker.server.handlers import Encoded, Later, RequestContext, Rows
from kernel.wire.codec import decode_request
from kernel.wire.errors import ProtocolError, UnsupportedVersion
from kernel.wire.versions import Api

if TYPE_CHECKING:
    import socket

    from kernel.broker.server.handlers import Again
    from kernel.broker.server.server import BrokerServer

#: Unread bytes kept for a muted connection before its socket is no longer read.
READ_AHEAD_BYTES = 64 * 1024
#: Heartbeats of one connection answered before the others get their turn.
TURN_REQUESTS = 32

_NAMES = {int(api).to_bytes(2, "big"): api.name for api in Api}
_HEARTBEAT, _JOIN_GROUP = (int(api).to_bytes(2, "big") for api in (Api.Heartbeat, Api.JoinGroup))
#: What answers mostly are when they are there; whether something can be awaited takes longer to find out.
_AT_ONCE = (Encoded, dict, type(None))


class ServedConnection(AnsweredSocket):
    """A socket that was accepted. The server knows it until it is closed."""

    __slots__ = ("_again", "_back", "_front", "_kind")

    def __init__(self, server: BrokerServer, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(server, accepted, host, connection_id)
        self._kind = b""  # the API key of the last request that was served
        #: What answers the last heartbeat again, and its bytes before and behind the correlation id.
        self._again: Again | None = None
        self._front = self._back = b""

    @property
    def last_read(self) -> str:
        """The name of the last request."""
        return _NAMES.get(self._kind, "request")

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            if self._state is QUIET:
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
                if len(frame) > FREE_BYTES:
                    self._at_work = len(frame)
                    self._account()
                self._serve_or_close(frame)
        else:
            self._buffer.feed(data)
            self._moved += len(data)
            self._account()
            if self._state is QUIET or self._state is PARTIAL:
                self._serve_kept()
            elif len(self._buffer) > READ_AHEAD_BYTES:
                self._watch(self._events & ~READABLE)

    def _end(self) -> None:
        """Everything that the client sent has been received."""
        self._has_ended = True
        self._watch(self._events & ~READABLE)
        if self._state is QUIET or self._state is PARTIAL:
            self._close()
        elif self._state is WAITING:
            self._leave_waiting()
        elif self._state is UNREAD and not self._buffer.has_frame:
            self._close()

    # -- serving -----------------------------------------------------------------------------------------------------

    def _begin(self, frame: bytes) -> None:
        """A request that nothing of its connection is before: a heartbeat is served now, all others in their turn."""
        if frame[:2] == _HEARTBEAT:
            self._serve_or_close(frame)
        else:
            self._at_work = len(frame) if len(frame) > FREE_BYTES else 0
            if frame[:2] == _JOIN_GROUP and self.is_prompt:
                self._move(prompt=False)
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
        if self._claimed:
            self._account()
        if self._has_ended:
            self._close()
        elif not self._events & READABLE:
            self._watch(self._events | READABLE)

    def _serve_or_close(self, frame: bytes) -> None:
        self._kind = frame[:2]
        try:
            self._serve(frame)
        except ProtocolError as error:
            self.close(str(error))
        if self._at_work and self._state is not WAITING:
            self._finish_request()

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
            if self._at_work or type(answer) is Rows:
                self._answer(context, answer)
            else:
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
            self._move(prompt=True)
