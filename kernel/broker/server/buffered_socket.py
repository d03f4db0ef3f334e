"""An accepted socket: it is read when ready, and what it does not take at once is buffered and sent later.

Does what asyncio's transports do without their cost: no handle for each read, no buffer while the client keeps up.

A connection is one object made of four classes, each with one concern: `BufferedSocket` (reading and sending),
`BudgetedSocket` (memory), `RespondingConnection` (responses and closing) and `ServedConnection` (requests). They are
base classes, not parts, because a heartbeat crosses all four: each delegation would cost it a call and an attribute
look-up, and each part another object for every one of thousands of connections. A class calls upwards only through
the methods it declares under "implemented by subclasses".
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE, WRITABLE

if TYPE_CHECKING:
    from kernel.broker.loop.readiness import Readiness

#: A client with more unsent bytes than this has stopped reading.
UNSENT_BYTES_MAX = 64 * 1024
#: Shorter pieces of unsent data are joined, longer ones are kept as they are.
COPIED_BYTES_MAX = 16 * 1024


class BufferedSocket:
    """The socket and its buffer of unsent bytes.

    `fd` is -1 once the socket is closed. A socket that is watched for no event is not registered with epoll at all:
    epoll would keep reporting a client's hang-up while what the client sent before is still unread.
    """

    __slots__ = (
        "_events",
        "_moved",
        "_readiness",
        "_receive",
        "_send_now",
        "_socket",
        "_unsent",
        "_unsent_bytes",
        "fd",
        "is_prompt",
    )

    def __init__(self, readiness: Readiness, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.fd = accepted.fileno()
        self.is_prompt = False
        self._readiness = readiness
        self._socket = accepted
        self._receive, self._send_now = accepted.recv, accepted.send
        self._unsent: deque[bytearray | memoryview] = deque()
        self._unsent_bytes = 0
        self._moved = 0  # bytes of partial frames received, and of buffered data sent
        self._events = READABLE
        readiness.watch(self, READABLE)

    def on_ready(self, events: int) -> None:
        """Handle epoll's events. An unexpected exception closes the connection and is raised."""
        good = False
        try:
            if events == READABLE:
                self._read()
            else:
                self._on_events(events)
            good = True
        finally:
            if not good:
                self.abort()

    def _on_events(self, events: int) -> None:
        if events & WRITABLE:
            self._send_rest()
        if events & ~WRITABLE and self.fd >= 0:
            if self._events & READABLE:
                self._read()
            else:  # reset by the client while it is not being read
                self._lose()

    def _watch(self, events: int) -> None:
        if events == self._events or self.fd < 0:
            return
        if not events:
            self._readiness.forget(self)
        elif not self._events:
            self._readiness.watch(self, events)
        else:
            self._readiness.change(self, events)
        self._events = events

    def _move(self, *, prompt: bool) -> None:
        """Move to the other class of `Readiness`."""
        if self._events:
            self._readiness.move(self, self._events, prompt=prompt)
        else:
            self.is_prompt = prompt

    def _send(self, data: bytes) -> None:
        if not self._unsent:
            try:
                sent = self._send_now(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                self._lose()
                return
            if sent == len(data):
                return
            self._keep_unsent(memoryview(data)[sent:])
            self._watch(self._events | WRITABLE)
        else:
            self._keep_unsent(data)
        self._account_unsent()
        if self._unsent_bytes > UNSENT_BYTES_MAX:
            self._on_unread()

    def _keep_unsent(self, data: bytes | memoryview) -> None:
        """Long data is not copied."""
        unsent = self._unsent
        self._unsent_bytes += len(data)
        if len(data) >= COPIED_BYTES_MAX:
            unsent.append(memoryview(data))
        elif unsent and isinstance(unsent[-1], bytearray) and len(unsent[-1]) < COPIED_BYTES_MAX:
            unsent[-1] += data
        else:
            unsent.append(bytearray(data))

    def _send_rest(self) -> None:
        unsent = self._unsent
        while unsent:
            first = unsent[0]
            try:
                sent = self._send_now(first)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self._lose()
                return
            self._unsent_bytes -= sent
            self._moved += sent
            if sent < len(first):
                unsent[0] = memoryview(first)[sent:]
                break
            unsent.popleft()
        if not unsent:
            self._watch(self._events & ~WRITABLE)
        self._account_unsent()
        self._on_read(self._unsent_bytes)

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_bytes = 0
        self._account_unsent()

    def _close_socket(self) -> None:
        if self._events:
            self._readiness.forget(self)
        self.fd = -1
        self._socket.close()

    # -- implemented by subclasses -----------------------------------------------------------------------------------

    @property
    def last_read(self) -> str:
        """The name of the last request read."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close immediately."""
        raise NotImplementedError

    def _account_unsent(self) -> None:
        """`_unsent_bytes` has changed."""
        raise NotImplementedError

    def _read(self) -> None:
        """There is data to receive, or the end of the stream."""
        raise NotImplementedError

    def _lose(self) -> None:
        """The client has gone; what it sent before can still be read."""
        raise NotImplementedError

    def _on_unread(self) -> None:
        """The client has stopped reading."""
        raise NotImplementedError

    def _on_read(self, unsent: int) -> None:
        """The client has read; `unsent` bytes are left."""
        raise NotImplementedError
