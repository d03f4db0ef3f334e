"""Run kazoo with one thread for each session, and pass all its events to the event loop through one queue.

kazoo starts three threads for each client, and delivers replies, watch events and state changes in three separate
orders. Here its callbacks run in the thread that calls them and only enqueue. The loop sees everything in the order in
which the server sent it, and a process can hold hundreds of sessions. `client.py` and `connection.py` list what they
override of kazoo; the latter moves the traffic to the loop.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kernel.zookeeper.client import Client, Handler, log
from kernel.zookeeper.connection import Connection
from kernel.zookeeper.event_queue import Answered, EventQueue, Notified, StateChanged
from kernel.zookeeper.manners import KazooManners

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.zookeeper.event_queue import SessionEvent


class _ReplyReceiver:
    """Stands in for kazoo's AsyncResult: enqueues the reply with the zxid of its header."""

    __slots__ = ("_client", "_put", "_token")

    def __init__(self, client: Client, put: Callable[[SessionEvent], None], token: object) -> None:
        self._client = client
        self._put = put
        self._token = token

    def set(self, value: object = None) -> None:
        # kazoo has just set last_zxid from this reply, in this thread.
        self._put(Answered(self._token, value, None, self._client.last_zxid))

    def set_exception(self, error: BaseException) -> None:
        if isinstance(error, ConnectionLoss):
            error = ConnectionLoss(self._client._connection.fault)
        self._put(Answered(self._token, None, error, self._client.last_zxid))


class Bridge:
    """A kazoo client. The loop calls `send`, and events come back on the loop through `handle`."""

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int,
        name: str,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[SessionEvent], None],
        manners: KazooManners | None = None,
    ) -> None:
        events = EventQueue(loop, handle)
        self._put = events.put
        self._handler = Handler(name)
        manners = manners or KazooManners()
        # Retry without limit like the Java client, pausing up to a second between rounds over all servers.
        retry = KazooRetry(
            max_tries=-1,
            delay=manners.retry_delay_s,
            backoff=manners.retry_backoff,
            max_delay=1.0,
            sleep_func=self._handler.sleep_func,
        )
        self._client = Client(
            hosts=connect_string,
            timeout=session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry=retry,
            randomize_hosts=False,
            logger=log,
        )
        self._connection = Connection(
            self._client, self._client._conn_retry.copy(), events, loop, self._notified, manners
        )
        self._client._connection = self._connection
        self._handler.wait = self._connection.wait
        self._chroot = str(self._client.chroot)  #: "" without one
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        # Not `start()`, which would check the chroot with an untraced `exists`.
        self._client.start_async()

    @property
    def fault(self) -> str:
        """What the server did wrong, or ''; until one accepts the session."""
        return self._connection.fault

    def absolute(self, path: str) -> str:
        """The path with the chroot, as in requests."""
        return (self._chroot + path).rstrip("/") or "/"

    def relative(self, path: str) -> str:
        return str(self._client.unchroot(path))

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Session id and password. Another client can use them to take over or end the session."""
        return self._client._session_id or 0, bytes(self._client._session_passwd)

    def send(self, request: Any, token: object, only_in: int = 0) -> None:
        """Send a request without blocking; its `Answered` carries `token`.

        With `only_in`, a session id, it is sent only in that session, even before the loop learns of a new one.
        """
        receiver = _ReplyReceiver(self._client, self._put, token)
        if only_in:
            self._client.call_in(only_in, request, receiver)
        else:
            self._client.call(request, receiver)

    def break_connection(self) -> None:
        """Make kazoo reconnect, so that a server reports the state of the session."""
        with contextlib.suppress(OSError, AttributeError):
            self._connection._socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Close the session (if connected) and end the thread. Blocks, at worst for a session timeout."""
        client = self._client
        if client._live.is_set():
            client.stop()
        else:
            # Not connected, so there is no session to close. An attempt to connect may be waiting for a stopped
            # server: breaking its socket lets the thread see that it must end.
            client._stopped.set()
            with contextlib.suppress(OSError, AttributeError):
                self._connection._socket.shutdown(socket.SHUT_RDWR)
            client._safe_close()
        client.close()

    def stop_in_background(self, done: Callable[[], None]) -> None:
        """`stop` in a daemon thread, so that an unreachable server cannot delay the end of the process."""

        def run() -> None:
            # Raised if kazoo cannot join its thread in time. The thread is a daemon and ends with the process.
            with contextlib.suppress(KazooException, OSError):
                self.stop()
            done()

        self._handler.spawn(run)

    def _notified(self, kind: int, path: str, zxid: int | None) -> None:
        self._put(Notified(kind, self.relative(path), zxid))

    def _state_changed(self, state: Any) -> None:
        assert state in (KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.LOST)
        self._put(StateChanged(str(state), self._client._session_id or 0, self._connection.negotiated_timeout_ms))
