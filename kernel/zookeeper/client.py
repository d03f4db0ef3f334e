"""A kazoo client without worker threads, whose requests and state changes exclude each other.

Overridden, all of kazoo 2.11: `KazooClient._call` and `_session_callback`, and `SequentialThreadingHandler` to have no
workers.
"""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# kazoo warns of every dropped connection. The owner of the session gets a state change instead.
log = logging.getLogger("rebalance_lab.kazoo")
log.addHandler(logging.NullHandler())


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no type information
    """Runs callbacks in the thread that dispatches them; all of ours only enqueue."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._thread_name = f"zookeeper-{name}"
        self.wait: Callable[[Sequence[Any], float], Any] | None = None  #: the connection's

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
        if len(rlist) == 2 and self.wait is not None:
            return self.wait(rlist, timeout)
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
