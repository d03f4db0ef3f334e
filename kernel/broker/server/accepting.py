"""The listening socket: accepts a few connections per turn of the loop; the rest wait in the kernel's backlog.

asyncio's own server accepts up to its whole backlog in one turn, which takes a tenth of a second when thousands
connect at once; and it loses connections accepted while it closes (cpython#109564).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault
from kernel.platform.ports import LOOPBACK, require_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

#: Connections waiting to be accepted; the kernel has its own limit (net.core.somaxconn).
BACKLOG = 16_384
#: Connections accepted in one turn, and the time allowed for it.
ACCEPTED_MAX, ACCEPT_BUDGET_S = 16, 0.001
#: Delay before accepting again after running out of file descriptors or memory.
RETRY_S = 1.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """Binds a port; from `start` to `close` calls `accepted(socket, host)` for each connection."""

    def __init__(self, host: str, port: int, stopwatch: Callable[[], float]) -> None:
        """`host` is an address. Raises `EnvironmentFault` if the port is in use or not permitted."""
        if host == LOOPBACK:
            require_loopback()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise EnvironmentFault(
                    f"cannot listen on {host}:{port}: {error.strerror}. Choose another port (0: a free one)"
                ) from error
            raise
        self.port: int = self._socket.getsockname()[1]
        self._stopwatch = stopwatch
        self._accepted: Callable[[socket.socket, str], None] | None = None
        self._retry: asyncio.TimerHandle | None = None

    def start(self, accepted: Callable[[socket.socket, str], None]) -> None:
        self._accepted = accepted
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise EnvironmentFault(
                f"cannot listen on port {self.port}: {error.strerror}. Choose another port (0: a free one)"
            ) from error
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """The kernel resets connections that have not been accepted yet."""
        if self._retry is not None:
            self._retry.cancel()
        if self._accepted is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _accept(self) -> None:
        assert self._accepted is not None, "start() comes first"
        end = self._stopwatch() + ACCEPT_BUDGET_S
        for _ in range(ACCEPTED_MAX):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(error)
                return
            self._accepted(accepted, str(address[0]))
            if self._stopwatch() > end:
                return

    def _pause(self, error: OSError) -> None:
        log.error("cannot accept connections: %s; trying again in %.0f s", error.strerror, RETRY_S)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        self._retry = loop.call_later(RETRY_S, loop.add_reader, self._socket.fileno(), self._accept)
