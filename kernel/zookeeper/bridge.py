"""kazoo, cut down to one thread a session whose every outcome goes through one queue to the event loop.

kazoo brings three threads a client and answers, watch events and state changes in three orders. Here its
callbacks run in the connection's own thread and only enqueue, so the loop sees everything in the order in
which the server sent it, and a process may hold hundreds of sessions. Nothing here decides anything.

What is overridden, all of kazoo 2.11 (the class names are the ones there):

- `SequentialThreadingHandler`: no worker threads; a callback is run where it arises.
- `ConnectionHandler`: keeps the *negotiated* session timeout, which kazoo forgets, and reports every watch
  notification once, with the zxid that the server has put into its header since 3.9 (ZOOKEEPER-4655).
- `KazooClient._call` and `_session_callback` exclude one another. Otherwise a request that is enqueued while
  the connection breaks can land in a queue that has been emptied already and is never answered.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.paths import _prefix_root
from kazoo.protocol.serialization import Connect, ReplyHeader, Watch
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# kazoo warns of every dropped connection; here that is a state change which the owner of the session hears of.
_log = logging.getLogger("rebalance_lab.kazoo")
_log.addHandler(logging.NullHandler())


class Answered(NamedTuple):
    """A request was answered or given up; exactly one of `value` and `error` counts."""

    token: object
    value: Any
    error: BaseException | None
    zxid: int


class Notified(NamedTuple):
    """The server sent one watch notification; `kind` is its number in the protocol (1 created ... 4 children)."""

    kind: int
    path: str
    zxid: int | None


class StateChanged(NamedTuple):
    """kazoo's state, the session it is about, and the timeout that the server granted to it."""

    state: str  #: CONNECTED, SUSPENDED or LOST
    session_id: int
    negotiated_timeout_ms: int


Outcome = Answered | Notified | StateChanged


class Inbox:
    """A queue from any thread into one event loop; order is kept and wake-ups are shared."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[Outcome], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._lock = threading.RLock()
        self._waiting: deque[Outcome] = deque()
        self._woken = False

    def put(self, outcome: Outcome) -> None:
        with self._lock:
            self._waiting.append(outcome)
            if self._woken:
                return
            self._woken = True
        # The loop may have ended while a server's last words were on their way: nobody is left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            outcomes = list(self._waiting)
            self._waiting.clear()
            self._woken = False
        for outcome in outcomes:
            self._handle(outcome)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no type information
    """Runs callbacks where they arise: all of ours only enqueue."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._thread_name = f"zookeeper-{name}"

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        reader, writer = socket.socketpair()
        # Written to on the event loop, which must not wait. One byte a request: the session's window keeps
        # the number of waiting requests far below what the pair can hold.
        writer.setblocking(False)
        return reader, writer

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> threading.Thread:
        thread = threading.Thread(target=func, args=args, kwargs=kwargs, name=self._thread_name, daemon=True)
        thread.start()
        return thread


class _Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no type information
    """Keeps what the server granted, and reports each notification once."""

    def __init__(self, client: _Client, retry: KazooRetry, put: Callable[[Outcome], None]) -> None:
        super().__init__(client, retry, logger=_log)
        self._put = put
        self.negotiated_timeout_ms = 0

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        result = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            self.negotiated_timeout_ms = result[0].time_out
        return result

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        header, _ = ReplyHeader.deserialize(buffer, 0)
        watch, _ = Watch.deserialize(buffer, offset)
        self._put(Notified(watch.type, self.client.unchroot(watch.path), header.zxid if header.zxid > 0 else None))
        super()._read_watch_event(buffer, offset)  # clears kazoo's own registry


class _Client(KazooClient):  # type: ignore[misc]  # kazoo has no type information
    """A KazooClient whose requests and state changes exclude one another."""

    def __init__(self, **options: Any) -> None:
        self._exclusion = threading.RLock()
        super().__init__(**options)

    def _call(self, request: Any, async_object: Any) -> Any:
        with self._exclusion:
            return super()._call(request, async_object)

    def call_in(self, session_id: int, request: Any, async_object: Any) -> None:
        """As `_call`, but only while the connection stands in that session: kazoo empties its queue at a break,
        so what is enqueued now is sent in this session or not at all.
        """
        with self._exclusion:
            if self._live.is_set() and self._session_id == session_id:
                super()._call(request, async_object)
            else:
                async_object.set_exception(ConnectionLoss())

    def _session_callback(self, state: Any) -> None:
        with self._exclusion:
            super()._session_callback(state)


class _Answer:
    """What kazoo puts a reply into: hands it on, with the zxid of the reply's header."""

    __slots__ = ("_client", "_put", "_token")

    def __init__(self, client: KazooClient, put: Callable[[Outcome], None], token: object) -> None:
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
        self._put = Inbox(loop, handle).put
        self._handler = _Handler(name)
        # As the Java client does, try for ever; up to a second between rounds over all servers.
        retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0, sleep_func=self._handler.sleep_func)
        self._client = _Client(
            hosts=connect_string,
            timeout=session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry=retry,
            randomize_hosts=False,
            logger=_log,
        )
        self._connection = _Connection(self._client, self._client._conn_retry.copy(), self._put)
        self._client._connection = self._connection
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        # Not `start()`: it would ask for the chroot with an `exists` of its own, untraced.
        self._client.start_async()

    def absolute(self, path: str) -> str:
        """The path with the chroot in front, as requests carry it."""
        return str(_prefix_root(self._client.chroot, path))

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
            self._client._call(request, answer)

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

    def _state_changed(self, state: Any) -> None:
        assert state in (KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.LOST)
        self._put(StateChanged(str(state), self._client._session_id or 0, self._connection.negotiated_timeout_ms))
