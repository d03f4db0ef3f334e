"""Servers that listen, and do everything but what a client expects of a broker or a ZooKeeper."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

_PERMIT = b"\0" * 16
#: ConnectResponse: protocol version, timeout, session id, password, read-only.
_GREETING = struct.pack(">iiqi", 0, 10_000, 7, len(_PERMIT)) + _PERMIT + b"\0"
_PING, _PING_TYPE = -2, 11
_REPLY = struct.Struct(">iqi")


class BadServer:
    """One of them, each connection in a thread of its own. `address` is host:port."""

    def __init__(self, behaviour: Callable[[socket.socket, threading.Event], None], *, backlog: int = 64) -> None:
        self._behaviour = behaviour
        self._ending = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        #: The ports of those who have connected.
        self.peers: set[int] = set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._ending.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                connection, (_, port) = self._listener.accept()
            except OSError:
                return
            self.peers.add(port)
            self._connections.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError, struct.error):
            self._behaviour(connection, self._ending)


def silent(_connection: socket.socket, ending: threading.Event) -> None:
    """Accepts, and never says anything."""
    ending.wait()


def slow(connection: socket.socket, ending: threading.Event) -> None:
    """A byte a second of a long answer."""
    for byte in itertools.cycle(struct.pack(">i", 4096)):
        if ending.wait(1):
            return
        connection.sendall(bytes([byte]))


def closing(_connection: socket.socket, _ending: threading.Event) -> None:
    """Closes at once."""


def garbage(connection: socket.socket, ending: threading.Event) -> None:
    """Answers whatever comes with a short frame of garbage."""
    while connection.recv(1 << 16) and not ending.is_set():
        connection.sendall(struct.pack(">i", 64) + os.urandom(64))


def huge(connection: socket.socket, ending: threading.Event) -> None:
    """Announces 1.9 GB, and sends as much of it as is read."""
    connection.recv(1 << 16)
    connection.sendall(struct.pack(">i", 1_900_000_000))
    _pour(connection, ending, b"\0" * (1 << 16))


def endless(connection: socket.socket, ending: threading.Event) -> None:
    """Text without an end."""
    _pour(connection, ending, b"na" * (1 << 15))


def _pour(connection: socket.socket, ending: threading.Event, bucket: bytes) -> None:
    # The bytes do not have to be many, only without an end: a client that reads them all takes time from the others.
    while not ending.wait(0.01):
        connection.sendall(bucket)


def unread(connection: socket.socket, _ending: threading.Event) -> None:
    """A ZooKeeper that accepts sessions and answers pings, and never a read."""
    with connection.makefile("rb") as frames:
        first = frames.read(4)
        if first == b"srvr":
            connection.sendall(b"Mode: standalone\n")
            return
        frames.read(*struct.unpack(">i", first))
        connection.sendall(_frame(_GREETING))
        while head := frames.read(4):
            xid, kind = struct.unpack_from(">ii", frames.read(*struct.unpack(">i", head)))
            if kind == _PING_TYPE:
                connection.sendall(_frame(_REPLY.pack(xid, 0, 0)))


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@contextlib.contextmanager
def full() -> Iterator[BadServer]:
    """Drops further connections, as a listener does whose queue is full: who connects waits."""
    server = BadServer(silent, backlog=0)
    with contextlib.ExitStack() as waiting:
        for _ in range(2):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", server.port))
        yield server
        server._listener.close()
