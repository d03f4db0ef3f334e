"""kazoo, cut down to one thread a session whose every outcome goes through one queue to the event loop.

kazoo brings three threads a client and answers, watch events and state changes in three orders. Here its
callbacks run where they arise and only enqueue, so the loop sees everything in the order in which the server sent it,
and a process may hold hundreds of sessions. Nothing here decides anything. What of kazoo is overridden, and how its
traffic comes to the loop, is in `connection.py`.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kernel.zookeeper.connection import Client, Connection, Handler, log
from kernel.zookeeper.inbox import Answered, Inbox, Notified, StateChanged

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.zookeeper.inbox import Outcome


class _Answer:
    """What kazoo puts a reply into: hands it on, with the zxid of the reply's header."""

    __slots__ = ("_client", "_put", "_token")

    def __init__(self, client: Client, put: Callable[[Outcome], None], token: object) -> None:
        self._client = client
        self._put = put
        self._token = token

    def set(self, value: object = None) -> None:
        # kazoo sets last_zxid from this very reply, in this thread, just before.
        self._put(Answered(self._token, value, None, self._client.last_zxid))

    def set_exception(self, error: BaseException) -> None:
        self._put(Answered(self._token, None, error, self._client.last_zxid))


class Bridge:
    """One kazoo client: `send` from the loop, outcomes through `handle` on the loop."""

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int,
        name: str,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[Outcome], None],
    ) -> None:
        inbox = Inbox(loop, handle)
        self._put = inbox.put
        self._handler = Handler(name)
        # As the Java client does, try for ever; up to a second between rounds over all servers.
        retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0, sleep_func=self._handler.sleep_func)
        self._client = Client(
            hosts=connect_string,
            timeout=session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry=retry,
            randomize_hosts=False,
            logger=log,
        )
        self._connection = Connection(self._client, self._client._conn_retry.copy(), inbox, loop, self._notified)
        self._client._connection = self._handler.connection = self._connection
        self._chroot = str(self._client.chroot)  #: "" without one
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        # Not `start()`: it would ask for the chroot with an `exists` of its own, untraced.
        self._client.start_async()

    def absolute(self, path: str) -> str:
        """The path with the chroot in front, as requests carry it."""
        return (self._chroot + path).rstrip("/") or "/"

    def relative(self, path: str) -> str:
        return str(self._client.unchroot(path))

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Session id and password: who has them can take the session over, or end it."""
        return self._client._session_id or 0, bytes(self._client._session_passwd)

    def send(self, request: Any, token: object, only_in: int = 0) -> None:
        """Hand a request over; its `Answered` carries `token`. Never blocks.

        With `only_in`, a session's id, it is sent in no other session, however late the loop hears of the change.
        """
        answer = _Answer(self._client, self._put, token)
        if only_in:
            self._client.call_in(only_in, request, answer)
        else:
            self._client.call(request, answer)

    def break_connection(self) -> None:
        """Have kazoo connect anew, so that a server says how the session stands."""
        with contextlib.suppress(OSError, AttributeError):
            self._connection._socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Close the session (when connected) and end the thread. Blocks, in bad cases for a session timeout."""
        client = self._client
        if client._live.is_set():
            client.stop()
        else:
            # There is nobody to say goodbye to. An attempt to connect may be waiting for a stopped server's
            # answer: break its socket, and the thread finds that it has been told to end.
            client._stopped.set()
            with contextlib.suppress(OSError, AttributeError):
                self._connection._socket.shutdown(socket.SHUT_RDWR)
            client._safe_close()
        client.close()

    def stop_in_background(self, done: Callable[[], None]) -> None:
        """As `stop`, in a daemon thread, so that an unreachable server cannot hold up a process's end."""

        def run() -> None:
            # kazoo could not join its thread in time; it is a daemon and ends with the process.
            with contextlib.suppress(KazooException, OSError):
                self.stop()
            done()

        self._handler.spawn(run)

    def _notified(self, kind: int, path: str, zxid: int | None) -> None:
        self._put(Notified(kind, self.relative(path), zxid))

    def _state_changed(self, state: Any) -> None:
        assert state in (KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.LOST)
        self._put(StateChanged(str(state), self._client._session_id or 0, self._connection.negotiated_timeout_ms))
