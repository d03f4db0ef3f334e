"""Many connections in one thread over epoll, one request in flight on each.

sockets = Sockets()
connections = sockets.connect(port, frames)               # bounded, each answered once
connection.send(frame)
for connection, answer in sockets.answers(timeout_s): ... # complete answers, size included
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from kernel.platform.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Kafka's listen backlog is 50 connections. When it is full the kernel drops a SYN, which is sent again after 1 s.
CONNECTING_MAX = 40
CONNECT_S = 60.0
_RECEIVE_BYTES = 1 << 18
#: Close with a reset: 10,000 ports in TIME_WAIT for a minute would soon be all there are.
_RESET = struct.pack("ii", 1, 0)


class Connection:
    """One connection; `data` is whatever its user keeps with it."""

    __slots__ = ("_epoll", "_incoming", "_outgoing", "data", "fileno", "socket")

    def __init__(self, epoll: select.epoll, port: int) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.fileno = self.socket.fileno()
        self.data: Any = None
        self._epoll = epoll
        self._incoming = b""
        self._outgoing = b""
        began = self.socket.connect_ex((LOOPBACK, port))
        if began not in (0, errno.EINPROGRESS):
            raise OSError(began, f"connecting to port {port}")

    def send(self, frame: bytes) -> None:
        """Send what the socket takes at once, and the rest when it is writable."""
        assert not self._outgoing, "one request at a time"
        sent = self.socket.send(frame)
        if sent < len(frame):
            self._outgoing = frame[sent:]
            self._epoll.modify(self.fileno, select.EPOLLIN | select.EPOLLOUT)

    def send_when_connected(self, frame: bytes) -> None:
        self._outgoing = frame
        self._epoll.register(self.fileno, select.EPOLLIN | select.EPOLLOUT)

    def flush(self) -> None:
        """Handle a writable socket. Raises OSError if connecting failed."""
        sent = self.socket.send(self._outgoing)
        self._outgoing = self._outgoing[sent:]
        if not self._outgoing:
            self._epoll.modify(self.fileno, select.EPOLLIN)

    def receive(self) -> bytes | None:
        """The answer once it is complete. Raises `ConnectionResetError` if the connection was closed."""
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError("the broker closed the connection")
        if self._incoming:
            data = self._incoming + data
        if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            self._incoming = data
            return None
        self._incoming = b""
        assert len(data) == 4 + int.from_bytes(data[:4], "big"), "an answer without a request"
        return data


class Sockets:
    """An epoll and its connections; a context manager that closes them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._by_fileno: dict[int, Connection] = {}

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._by_fileno.values():
            connection.socket.close()
        self._by_fileno.clear()
        self._epoll.close()

    def connect(
        self, port: int, frames: Sequence[bytes], *, window: int = CONNECTING_MAX
    ) -> list[tuple[Connection, bytes]]:
        """Open a connection per frame, send the frame, and return the answer; at most `window` are in flight.

        Only an answer shows that the broker has accepted the connection; a completed connect does not.
        """
        made: dict[Connection, bytes] = {}
        order: list[Connection] = []
        deadline = time.monotonic() + CONNECT_S
        while len(made) < len(frames):
            while len(order) < len(frames) and len(order) - len(made) < window:
                connection = Connection(self._epoll, port)
                self._by_fileno[connection.fileno] = connection
                connection.send_when_connected(frames[len(order)])
                order.append(connection)
            made.update(self.answers(deadline - time.monotonic()))
        return [(connection, made[connection]) for connection in order]

    def answers(self, timeout_s: float) -> Iterator[tuple[Connection, bytes]]:
        """Wait for answers and return them. Raises TimeoutError if none arrives."""
        ready = self._epoll.poll(max(timeout_s, 0))
        if not ready:
            raise TimeoutError("the broker did not answer in time")
        yield from self._served(ready)

    def answers_so_far(self, timeout_s: float) -> Iterator[tuple[Connection, bytes]]:
        """The answers that have arrived, as `answers` returns them; perhaps none."""
        yield from self._served(self._epoll.poll(max(timeout_s, 0)))

    def _served(self, ready: list[tuple[int, int]]) -> Iterator[tuple[Connection, bytes]]:
        for fileno, events in ready:
            connection = self._by_fileno[fileno]
            if events & select.EPOLLIN:
                answer = connection.receive()
                if answer is not None:
                    yield connection, answer
            elif events & select.EPOLLOUT:
                connection.flush()
            else:
                raise ConnectionResetError("the broker closed the connection")

    def ask(self, connection: Connection, frame: bytes, *, timeout_s: float = 30.0) -> bytes:
        """Make one request on one connection, while the others are silent."""
        connection.send(frame)
        deadline = time.monotonic() + timeout_s
        while True:
            for answering, answer in self.answers(deadline - time.monotonic()):
                assert answering is connection, "another connection got an answer"
                return answer

    def drop(self, connections: Sequence[Connection]) -> None:
        """Close these connections."""
        for connection in connections:
            with contextlib.suppress(OSError):
                self._epoll.unregister(connection.fileno)
            del self._by_fileno[connection.fileno]
            connection.socket.close()
