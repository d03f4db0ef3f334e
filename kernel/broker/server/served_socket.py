"""An accepted socket: what is ready is read, what cannot be sent at once is kept and sent later.

As asyncio's transports, without their cost: no handle for each read, no buffer for a socket that takes everything.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE, WRITABLE

if TYPE_CHECKING:
    from kernel.broker.loop.readiness import Readiness

#: Unsent bytes with which a client counts as one that does not read.
UNSENT_BYTES_MAX = 64 * 1024
#: Shorter pieces of what is unsent are put together, longer ones are kept as they are.
COPIED_BYTES_MAX = 16 * 1024


class ServedSocket:
    """Its owner reads from it, and hears when its client does not read (`_on_unread`, `_on_read`) or is gone (`_lose`).

    `fd` is -1 when it has been put away. A socket that is watched for nothing is not registered at all: epoll would
    report that its client has gone again and again, though what the client sent before is still to be read.
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
        self._moved = 0  # bytes that were received in parts, or sent late
        self._events = READABLE
        readiness.watch(self, READABLE)

    def on_ready(self, events: int) -> None:
        """Epoll's events. A mistake of ours is raised, and closes the connection."""
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
            else:  # reset by the client, while nothing is read from it
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
        """To the other class of `Readiness`."""
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
        """What is long is not copied."""
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

    def _put_away(self) -> None:
        if self._events:
            self._readiness.forget(self)
        self.fd = -1
        self._socket.close()

    # -- the owner's -------------------------------------------------------------------------------------------------

    @property
    def last_read(self) -> str:
        """The name of what was read last."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close at once."""
        raise NotImplementedError

    def _account_unsent(self) -> None:
        """`_unsent_bytes` has changed."""
        raise NotImplementedError

    def _read(self) -> None:
        """There is something to receive, or the end."""
        raise NotImplementedError

    def _lose(self) -> None:
        """The client is gone; what it sent before can still be read."""
        raise NotImplementedError

    def _on_unread(self) -> None:
        """More is unsent than a client leaves that reads."""
        raise NotImplementedError

    def _on_read(self, unsent: int) -> None:
        """The client has read; so many bytes are still unsent."""
        raise NotImplementedError
