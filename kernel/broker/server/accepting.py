"""The listening socket: connections are accepted a few a turn of the loop, the others wait in the kernel's backlog.

asyncio's own server accepts as many as its backlog is long in one turn, which is a tenth of a second when thousands
connect at once; and it loses connections that are accepted while it is closed (cpython#109564).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

#: How many connections may wait to be accepted; the kernel has a bound of its own (net.core.somaxconn).
BACKLOG = 16_384
#: Connections accepted in one turn, and how long that may take.
ACCEPTED_MAX, ACCEPT_BUDGET_S = 16, 0.001
#: A process that has no file descriptor left tries again after so long.
RETRY_S = 1.0
_NOTHING_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """A port that is taken, and from `start` to `close` calls `accepted(socket, host)` for each who connects."""

    def __init__(self, host: str, port: int) -> None:
        """`host` is an address. Raises `EnvironmentFault` when the port is taken or not to be had."""
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
                    f"cannot listen on {host}:{port}: {error.strerror}; choose another port (0: a free one)"
                ) from error
            raise
        self.port: int = self._socket.getsockname()[1]
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
                f"cannot listen on port {self.port}: {error.strerror}; choose another port (0: a free one)"
            ) from error
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Whoever has connected and was not accepted yet is refused by the kernel."""
        if self._retry is not None:
            self._retry.cancel()
        if self._accepted is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _accept(self) -> None:
        assert self._accepted is not None, "start() comes first"
        end = time.perf_counter() + ACCEPT_BUDGET_S
        for _ in range(ACCEPTED_MAX):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NOTHING_LEFT:
                    raise
                self._pause(error)
                return
            self._accepted(accepted, str(address[0]))
            if time.perf_counter() > end:
                return

    def _pause(self, error: OSError) -> None:
        log.error("no connection can be accepted: %s; trying again in %.0f s", error.strerror, RETRY_S)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        self._retry = loop.call_later(RETRY_S, loop.add_reader, self._socket.fileno(), self._accept)
