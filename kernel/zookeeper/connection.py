"""A kazoo connection whose traffic runs on the event loop. kazoo's thread connects, pings and notices disconnects.

By default kazoo's thread sends and receives one request at a time, with a dozen system calls and two thread switches
each: 0.15 ms of CPU for each request when many are in flight, 0.6 ms when ten sessions of a process send one at a
time. Here the loop writes everything that it collected in one turn at once, and reads all available data, at a third
and a tenth of the cost.

- *Handover*: when kazoo's thread first waits for traffic, the loop starts to read a duplicate of the socket (so that
  each side can close its own), and the thread waits only for its own wake-ups.
- *Takeback*: before the session is closed, and when either side sees the end of the connection.
- *Pings* stay in the thread, so that a busy loop loses no session. A reply to a ping that the loop has not read yet
  counts as received.

`Client._exclusion` guards kazoo's queues, the state and the socket between both sides. Overridden, all of kazoo 2.11:
`ConnectionHandler.zk_loop`, `_connect_attempt`, `_connect`, `_invoke`, `_read`, `_read_socket`, `_write` and
`_send_request`; and what `client.py` says.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import ConnectionDropped, ZookeeperError
from kazoo.protocol.connection import CLOSE_RESPONSE, PING_XID, STOP_CONNECTING, WATCH_XID, ConnectionHandler
from kazoo.protocol.serialization import Close, Connect, Transaction

from kernel.zookeeper import replies
from kernel.zookeeper.client import log
from kernel.zookeeper.event_queue import Failed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    from kazoo.retry import KazooRetry

    from kernel.zookeeper.client import Client
    from kernel.zookeeper.event_queue import EventQueue
    from kernel.zookeeper.manners import KazooManners

#: What a server does wrong is for users to know.
blame = logging.getLogger(__name__)

#: Length, xid and type, which precede the body of a request. xids go up to the largest int32.
_HEAD = struct.Struct(">iii")
_XID_MAX = 2**31 - 1
_READ_BYTES = 1 << 18
#: A third of a short session timeout is too short for the reply to a Connect.
_CONNECT_TIMEOUT_MIN_S = 2.0
_LATE = "nothing heard for two thirds of the session timeout"


def _connect_timeout_s(session_timeout_s: float, servers: int, unanswered: int) -> float:
    """How long to wait for the reply to a Connect before trying another connection: a third of the session timeout.

    kazoo and Kafka's client wait for the whole session timeout, shared out among the servers, so with one server they
    lose every session whose Connect goes unanswered. ZooKeeper 3.9 leaves those unanswered that arrive while it starts:
    it fails to close the connection (a NullPointerException in ZooKeeperServer.removeCnxn), which then stays open
    forever.

    A server that lags or is busy would be late with every reply. So after each round over the servers in which the
    Connects went `unanswered`, the wait becomes longer by the first one, up to the session timeout.
    """
    first_s = min(session_timeout_s / servers, max(session_timeout_s / 3, _CONNECT_TIMEOUT_MIN_S))
    return min(first_s * (1 + unanswered // servers), max(session_timeout_s, _CONNECT_TIMEOUT_MIN_S))


class Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no type information
    """See the module docstring. Calls `notify(kind, path, zxid)` once for each watch notification."""

    def __init__(
        self,
        client: Client,
        retry: KazooRetry,
        events: EventQueue,
        loop: asyncio.AbstractEventLoop,
        notify: Callable[[int, str, int | None], None],
        manners: KazooManners,
    ) -> None:
        super().__init__(client, retry, logger=log)
        self._manners = manners
        self._events = events
        self._loop = loop
        self._notify = notify
        self.negotiated_timeout_ms = 0
        self._xid: int = 0  # kazoo resets it with each connection
        self._ours: socket.socket | None = None  #: the duplicate that the loop reads, between handover and takeback
        self._kept = False  #: this connection stays with kazoo's thread
        self._received = bytearray()
        self._unsent = bytearray()
        self._failure: ConnectionDropped | None = None  #: an error that the loop found, for the thread to raise
        self._peer = ("", 0)
        self._unanswered = 0  #: Connects in a row, since the last greeting
        self.fault = ""  #: what the server did wrong, until one greets us
        self._flushing = False

    # -- in kazoo's thread -------------------------------------------------------------------------------------

    def zk_loop(self) -> None:
        try:
            super().zk_loop()
        except Exception as error:  # noqa: BLE001  # nobody else sees how this thread ends
            self._events.put(Failed(error))

    def _connect(self, *where: Any) -> Any:
        with self.client._exclusion:
            self._received.clear()
            self._unsent.clear()
            self._failure = None
            self._kept = False
        return super()._connect(*where)

    def _connect_attempt(self, *where: Any) -> Any:
        _, address, port, _ = where
        self._peer = (address, port)
        if self.client._stopped.wait(self._manners.pause_s((address, port))):
            return STOP_CONNECTING
        try:
            return super()._connect_attempt(*where)
        finally:
            self._take_back(shut=True)

    def wait(self, rlist: Sequence[Any], timeout: float) -> Any:
        """Wait as kazoo's loop does, but only for wake-ups while the event loop has the traffic."""
        if self._ours is None and not self._kept:
            self._hand_over()
        handler = self.handler
        if self._ours is None:
            return handler.select_any(rlist, timeout)
        ready = handler.select_any([self._read_sock], timeout)
        if self._failure is not None:
            raise self._failure
        if self._manners.is_late():
            raise ConnectionDropped(_LATE)
        if not ready[0] and handler.select_any([self._socket], 0)[0]:
            self.ping_outstanding.clear()  # the server has replied; the loop has not read it yet
            self._manners.heard()
        return ready

    def _hand_over(self) -> None:
        with self.client._exclusion:
            ours = self._ours = self._socket.dup()
        try:
            self._loop.call_soon_threadsafe(self._begin_reading, ours)
        except RuntimeError:  # the loop has ended: only closing the session is left
            self._take_back()

    def _take_back(self, *, shut: bool = False) -> None:
        with self.client._exclusion:
            ours, self._ours = self._ours, None
            self._kept = True
            if ours is None:
                return
            if shut:  # kazoo has closed its socket: let the server see it now
                with contextlib.suppress(OSError):
                    ours.shutdown(socket.SHUT_RDWR)
            try:
                self._loop.call_soon_threadsafe(self._end_reading, ours)
            except RuntimeError:
                ours.close()

    def _send_request(self, _read_timeout: float, connect_timeout: float) -> None:
        """Handle a wake-up: send requests that were enqueued without a connection, or close the session."""
        self._read_sock.recv(4096)
        if self.client._stopped.is_set():
            self._take_back()
        with self.client._exclusion:
            unsent, self._unsent = self._unsent, bytearray()
            if unsent := unsent + self._frames():
                super()._write(bytes(unsent), connect_timeout)

    def _write(self, msg: bytes, timeout: float) -> None:
        """Write a ping or a Connect."""
        with self.client._exclusion:
            if self._unsent:
                self._unsent += msg
            else:
                super()._write(msg, timeout)

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        self._manners.opened()
        client = self.client
        timeout = _connect_timeout_s(client._session_timeout / 1000, len(client.hosts), self._unanswered)
        self._unanswered += 1
        self._submit(request, timeout, xid)
        with self._blaming():
            greeting = replies.greeting(self._read_frame(timeout))
        self._unanswered, self.fault = 0, ""
        self.negotiated_timeout_ms = greeting.time_out
        self._manners.greeted(self.negotiated_timeout_ms)
        return greeting, None

    # -- in either thread ----------------------------------------------------------------------------------------

    def _read_frame(self, timeout: float) -> bytes:
        deadline_s = time.monotonic() + timeout
        length = replies.announced(self._read(4, timeout))
        return self._read(length, deadline_s - time.monotonic())

    def _read(self, length: int, timeout: float) -> bytes:
        """Take bytes that have arrived, or arrive within the timeout, however many at a time."""
        received = self._received
        deadline_s = time.monotonic() + timeout
        with self._socket_error_handling():
            while len(received) < length:
                if not self.handler.select_any([self._socket], max(0.0, deadline_s - time.monotonic()))[0]:
                    raise self.handler.timeout_exception("socket time-out during read")
                chunk = self._socket.recv(_READ_BYTES)
                if not chunk:
                    raise ConnectionDropped("socket connection broken")
                received += chunk
        taken = bytes(received[:length])
        del received[:length]
        return taken

    def _read_socket(self, read_timeout: float) -> Any:
        """Process the next frame, and all that have arrived behind it."""
        with self._blaming():
            response = self._process(self._read_frame(read_timeout))
            while response != CLOSE_RESPONSE and replies.is_whole(self._received):
                response = self._process(self._read_frame(read_timeout))
        return response

    def _process(self, frame: bytes) -> Any:
        header, offset = replies.header(frame)
        if header.xid == PING_XID:
            self.ping_outstanding.clear()
        elif header.xid == WATCH_XID:
            self._notify(*replies.notification(frame, offset), header.zxid if header.zxid > 0 else None)
        else:
            return self._answered(header, frame, offset)
        return None

    def _answered(self, header: Any, frame: bytes, offset: int) -> Any:
        client = self.client
        if not client._pending or client._pending[0][2] != header.xid:
            raise replies.MalformedFrame(f"a reply to request {header.xid}, which is not the next one")
        request, receiver, _ = client._pending.popleft()
        if header.zxid > 0:
            client.last_zxid = header.zxid
        if isinstance(request, Close):
            return CLOSE_RESPONSE
        try:
            value = replies.answer(request, header.err, frame, offset)
        except (ZookeeperError, replies.UnreadableReply) as error:
            receiver.set_exception(error)
        else:
            receiver.set(Transaction.unchroot(client, value) if isinstance(request, Transaction) else value)
        return None

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        try:
            yield
        except replies.MalformedFrame as error:
            if not self.fault:
                host, port = self._peer
                blame.warning("ZooKeeper at %s:%d: %s. The connection is closed", host, port, error)
            self.fault = str(error)
            raise

    def _frames(self) -> bytearray:
        """Encode all enqueued requests and move them to the pending ones."""
        frames = bytearray()
        queue, pending = self.client._queue, self.client._pending
        while queue:
            request, async_object = queue.popleft()
            body = request.serialize()
            self._xid = self._xid % _XID_MAX + 1
            frames += _HEAD.pack(len(body) + 8, self._xid, request.type)
            frames += body
            pending.append((request, async_object, self._xid))
        return frames

    # -- on the loop -----------------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Send all enqueued requests at once at the end of this turn of the loop."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        client = self.client
        with client._exclusion:
            if not client._live.is_set() or not client._queue:
                return  # the end of the connection has failed the enqueued requests
            if self._ours is None:
                self._wake_thread()
                return
            frames = self._frames()
            if self._unsent:
                self._unsent += frames
            else:
                self._send(self._ours, frames)

    def _send(self, ours: socket.socket, frames: bytearray) -> None:
        try:
            sent = ours.send(frames)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._fail(ours, f"socket connection error: {error.strerror}")
            return
        if sent < len(frames):
            self._unsent = frames[sent:]
            self._loop.add_writer(ours, self._writable, ours)

    def _writable(self, ours: socket.socket) -> None:
        with self.client._exclusion:
            self._loop.remove_writer(ours)
            unsent, self._unsent = self._unsent, bytearray()
            if self._ours is ours and unsent:
                self._send(ours, unsent)
            else:
                self._unsent = unsent

    def _begin_reading(self, ours: socket.socket) -> None:
        if self._ours is ours:
            self._loop.add_reader(ours, self._readable, ours)
            self._serve(ours)

    def _end_reading(self, ours: socket.socket) -> None:
        self._loop.remove_reader(ours)
        self._loop.remove_writer(ours)
        ours.close()

    def _readable(self, ours: socket.socket) -> None:
        with self.client._exclusion:
            if self._ours is not ours:
                return
            if self._manners.is_late():
                self._fail(ours, _LATE)
                return
            try:
                chunk = ours.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self._fail(ours, f"socket connection error: {error.strerror}")
                return
            if not chunk:
                self._fail(ours, "socket connection broken")
                return
            self._received += chunk
            self._manners.heard()
        self._serve(ours)

    def _serve(self, ours: socket.socket) -> None:
        """Process all complete frames and pass their events to the session at once."""
        with self._events.collecting(), self.client._exclusion:
            if self._ours is not ours or not self.client._live.is_set():
                return
            try:
                with self._blaming():
                    is_whole = replies.is_whole(self._received)
                if is_whole:
                    self._read_socket(0)
            except ConnectionDropped as error:
                self._fail(ours, str(error))

    def _fail(self, ours: socket.socket, reason: str) -> None:
        """Make kazoo's thread raise the error and reconnect."""
        self._loop.remove_reader(ours)
        self._failure = ConnectionDropped(reason)
        self._wake_thread()

    def _wake_thread(self) -> None:
        wake = self._write_sock
        if wake is not None:
            with contextlib.suppress(OSError):  # the buffer is full of wake-ups, so the thread will wake up
                wake.send(b"\0")
