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
`ConnectionHandler._connect_attempt`, `_connect`, `_invoke`, `_read`, `_read_socket`, `_write`, `_send_request` and
`_read_watch_event`, `KazooClient._call` and `_session_callback`, and `SequentialThreadingHandler` to have no workers.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, ConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import CLOSE_RESPONSE, STOP_CONNECTING, ConnectionHandler
from kazoo.protocol.serialization import Connect, ReplyHeader, Watch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from kazoo.retry import KazooRetry

    from kernel.zookeeper.event_queue import EventQueue
    from kernel.zookeeper.manners import KazooManners

# kazoo warns of every dropped connection. The owner of the session gets a state change instead.
log = logging.getLogger("rebalance_lab.kazoo")
log.addHandler(logging.NullHandler())

#: Length, xid and type, which precede the body of a request. xids go up to the largest int32.
_HEAD = struct.Struct(">iii")
_XID_MAX = 2**31 - 1
_READ_BYTES = 1 << 18
#: The least time a server gets to answer a Connect, however short the session timeout is.
_CONNECT_TIMEOUT_MIN_S = 2.0
_LATE = "nothing heard for two thirds of the session timeout"


def _connect_timeout_s(session_timeout_s: float) -> float:
    """How long to wait for the reply to a Connect before trying another connection: a third of the session timeout.

    kazoo and Kafka's client wait for the whole session timeout, so they lose every session whose Connect goes
    unanswered. ZooKeeper 3.9 leaves those unanswered that arrive while it starts: it fails to close the connection
    (a NullPointerException in ZooKeeperServer.removeCnxn), which then stays open forever.
    """
    return max(session_timeout_s / 3, _CONNECT_TIMEOUT_MIN_S)


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no type information
    """Runs callbacks in the thread that dispatches them; all of ours only enqueue."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._thread_name = f"zookeeper-{name}"
        self.connection: Connection | None = None

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        reader, writer = socket.socketpair()
        # The event loop writes to it and must not block. One wake-up is enough, so a full buffer does no harm.
        writer.setblocking(False)
        return reader, writer

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> threading.Thread:
        thread = threading.Thread(target=func, args=args, kwargs=kwargs, name=self._thread_name, daemon=True)
        thread.start()
        return thread

    def select(self, rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: float) -> Any:
        """Kazoo waits for two sockets (the server's and the wake-up socket) only when it waits for traffic."""
        if len(rlist) == 2 and self.connection is not None:
            return self.connection.wait(rlist, timeout)
        return super().select(rlist, wlist, xlist, timeout)

    def select_any(self, rlist: Sequence[Any], timeout: float) -> Any:
        return super().select(rlist, [], [], timeout)


class Client(KazooClient):  # type: ignore[misc]  # kazoo has no type information
    """A KazooClient whose requests and state changes are mutually exclusive.

    Without this, a request enqueued while the connection breaks could land in an already emptied queue, and would
    never be answered.
    """

    def __init__(self, **options: Any) -> None:
        self._exclusion = threading.RLock()
        super().__init__(**options)

    def call(self, request: Any, async_object: Any) -> None:
        """Send a request; call it on the loop."""
        with self._exclusion:
            if self._live.is_set():
                self._queue.append((request, async_object))
                self._connection.flush_soon()
            else:
                super()._call(request, async_object)  # refuses it or keeps it for the next connection

    def call_in(self, session_id: int, request: Any, async_object: Any) -> None:
        """`call`, but only if that session is connected now.

        kazoo empties its queue when the connection breaks, so the request is sent in this session or not at all.
        """
        with self._exclusion:
            if self._live.is_set() and self._session_id == session_id:
                self.call(request, async_object)
            else:
                async_object.set_exception(ConnectionLoss())

    def _session_callback(self, state: Any) -> None:
        with self._exclusion:
            super()._session_callback(state)


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
        self._flushing = False

    # -- in kazoo's thread -------------------------------------------------------------------------------------

    def _connect(self, *where: Any) -> Any:
        with self.client._exclusion:
            self._received.clear()
            self._unsent.clear()
            self._failure = None
            self._kept = False
        return super()._connect(*where)

    def _connect_attempt(self, *where: Any) -> Any:
        _, address, port, _ = where
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
        result = super()._invoke(min(timeout, _connect_timeout_s(self.client._session_timeout / 1000)), request, xid)
        self.negotiated_timeout_ms = result[0].time_out
        self._manners.greeted(self.negotiated_timeout_ms)
        return result

    # -- in either thread ----------------------------------------------------------------------------------------

    def _read(self, length: int, timeout: float) -> bytes:
        received = self._received
        with self._socket_error_handling():
            while len(received) < length:
                if not self.handler.select_any([self._socket], timeout)[0]:
                    raise self.handler.timeout_exception("socket time-out during read")
                chunk = self._socket.recv(_READ_BYTES)
                if not chunk:
                    raise ConnectionDropped("socket connection broken")
                received += chunk
        taken = bytes(received[:length])
        del received[:length]
        return taken

    def _read_socket(self, read_timeout: float) -> Any:
        response = super()._read_socket(read_timeout)
        while response != CLOSE_RESPONSE and self._frame_received():
            response = super()._read_socket(read_timeout)
        return response

    def _frame_received(self) -> bool:
        received = self._received
        return len(received) >= 4 and len(received) - 4 >= int.from_bytes(received[:4], "big")

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        header, _ = ReplyHeader.deserialize(buffer, 0)
        watch, _ = Watch.deserialize(buffer, offset)
        self._notify(watch.type, watch.path, header.zxid if header.zxid > 0 else None)
        super()._read_watch_event(buffer, offset)  # clears kazoo's own registry

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
            if self._ours is not ours or not self.client._live.is_set() or not self._frame_received():
                return
            try:
                self._read_socket(0)
            except (RuntimeError, LookupError, ValueError, struct.error, ConnectionDropped) as error:
                self._fail(ours, f"malformed reply: {error}")

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
