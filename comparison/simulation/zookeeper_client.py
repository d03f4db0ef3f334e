"""A session's connection to ZooKeeper on the event loop alone, in place of `kernel.zookeeper.bridge.Bridge`.

It speaks ZooKeeper's protocol on the simulated network, and keeps the manners of the real bridge, which are those of
kazoo 2.11 (`ConnectionHandler`, `KazooRetry`) with what `kernel.zookeeper.connection` changes: when it pings, what it
takes for a lost connection, how long it waits before it connects again, which requests then fail and how.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import deque
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.hosts import collect_hosts
from kazoo.protocol.connection import PING_XID, WATCH_XID
from kazoo.protocol.serialization import Close, Connect, Ping, Transaction
from kazoo.protocol.states import KazooState, KeeperState

from kernel.zookeeper import replies
from kernel.zookeeper.connection import connect_timeout_s
from kernel.zookeeper.event_queue import Answered, EventQueue, Notified, StateChanged
from kernel.zookeeper.manners import KazooManners

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from kernel.zookeeper.event_queue import SessionEvent
    from kernel.zookeeper.manners import Server

_HEAD = struct.Struct(">iii")
_LENGTH = struct.Struct(">i")
#: KazooRetry's: the pause between two rounds over all servers is up to this share shorter or longer, and at most 1 s.
_JITTER, _PAUSE_MAX_S = 0.4, 1.0
#: Hundredths of a second by which a ping may come early.
_EARLY_MAX = 40
#: How long the end of a session is waited for at least.
_CLOSE_S = 10.0
_CLOSE = Close()
_PING = Ping()


class SimulatedBridge:
    """See `Bridge`; `random` spreads its pings and retries."""

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int,
        name: str,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[SessionEvent], None],
        random: Random,
        manners: KazooManners | None = None,
    ) -> None:
        servers, chroot = collect_hosts(connect_string)
        self._servers: list[Server] = [(str(host), int(port)) for host, port in servers]
        self._chroot = (chroot or "").rstrip("/")
        self._put = EventQueue(loop, handle).put
        self._loop = loop
        self._name = name
        self._random = random
        self._manners = manners or KazooManners()
        self._session_timeout_ms = session_timeout_ms
        self._negotiated_ms = 0
        self._unanswered = 0  #: greetings in a row
        self._session_id, self._password = 0, b"\0" * replies.PASSWORD_BYTES
        self._last_zxid = 0
        self._xid = 0
        self._state = KeeperState.CLOSED
        self._shown = KazooState.LOST
        self._queue: deque[tuple[Any, object]] = deque()
        self._pending: deque[tuple[Any, object, int]] = deque()
        self._connection: _Connection | None = None
        self._flushing = False
        self._stopped = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.fault = ""

    def start(self) -> None:
        self._running = self._loop.create_task(self._run(), name=f"zookeeper-{self._name}")

    # -- as the real one ---------------------------------------------------------------------------------------------

    def absolute(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    def relative(self, path: str) -> str:
        return self.unchroot(path)

    def unchroot(self, path: str) -> str:
        """Kazoo's name, by which `Transaction` asks for it."""
        if not self._chroot or not path.startswith(self._chroot):
            return path
        return path[len(self._chroot) :] or "/"

    @property
    def credentials(self) -> tuple[int, bytes]:
        return self._session_id, self._password

    def send(self, request: Any, token: object, only_in: int = 0) -> None:
        if only_in and not (self._is_live and self._session_id == only_in):
            self._fail(token, ConnectionLoss())
        elif self._state == KeeperState.CLOSED:
            self._fail(token, ConnectionClosedError("Connection has been closed"))
        elif self._state == KeeperState.EXPIRED_SESSION:
            self._fail(token, SessionExpiredError())
        else:
            self._queue.append((request, token))
            if not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush)

    def break_connection(self) -> None:
        if self._connection is not None:
            self._connection.drop("it was broken")

    def stop_in_background(self, done: Callable[[], None]) -> None:
        self._stopped.set()
        if self._running is None:
            self._loop.call_soon(done)
            return
        if not self._is_live:
            self._running.cancel()
        limit = self._loop.call_later(max(self._session_timeout_ms / 1000, _CLOSE_S), self._running.cancel)

        def ended(_: object) -> None:
            limit.cancel()
            done()

        self._running.add_done_callback(ended)

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def _is_live(self) -> bool:
        return bool(self._state == KeeperState.CONNECTED)

    def _become(self, state: str) -> None:
        """As `KazooClient._session_callback`."""
        if state == self._state:
            return
        was_over = self._state in (KeeperState.CLOSED, KeeperState.EXPIRED_SESSION)
        self._state = state
        if state == KeeperState.CONNECTED:
            self._show(KazooState.CONNECTED)
        elif state == KeeperState.CONNECTING:
            if not was_over:
                self._fail_all(ConnectionLoss(self.fault))
                self._show(KazooState.SUSPENDED)
        else:
            self._show(KazooState.LOST)
            self._fail_all(
                SessionExpiredError() if state == KeeperState.EXPIRED_SESSION else ConnectionLoss(self.fault)
            )
            self._session_id, self._password = 0, b"\0" * replies.PASSWORD_BYTES
            self._last_zxid = 0

    def _show(self, state: str) -> None:
        if state != self._shown:
            self._shown = state
            self._put(StateChanged(str(state), self._session_id, self._negotiated_ms))

    def _fail(self, token: object, error: Exception) -> None:
        self._put(Answered(token, None, error, self._last_zxid))

    def _fail_all(self, error: Exception) -> None:
        tokens = [*(token for _, token, _ in self._pending), *(token for _, token in self._queue)]
        self._pending.clear()
        self._queue.clear()
        for token in tokens:
            if token is not None:
                self._fail(token, error)

    # -- connecting --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect to one server after the other until the session is closed."""
        try:
            pause_s = self._manners.retry_delay_s
            while not self._stopped.is_set():
                for server in self._servers:
                    if await self._stops_within(self._manners.pause_s(server)):
                        return
                    if await self._attempt(server):
                        pause_s = self._manners.retry_delay_s
                    if self._stopped.is_set():
                        return
                slept_s = pause_s * self._random.uniform(1 - _JITTER, 1 + _JITTER)
                if await self._stops_within(slept_s):
                    return
                pause_s = min(slept_s * self._manners.retry_backoff, _PAUSE_MAX_S)
        finally:
            self._become(KeeperState.CLOSED)

    async def _stops_within(self, seconds: float) -> bool:
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
        return self._stopped.is_set()

    async def _attempt(self, server: Server) -> bool:
        """Hold one connection until it ends; whether a server answered the greeting."""
        self._become(KeeperState.CONNECTING)
        greeted = False
        connection = None
        try:
            async with asyncio.timeout(self._session_timeout_ms / 1000):
                _, connection = await self._loop.create_connection(lambda: _Connection(self), *server)
            self._manners.opened()
            answered = await self._greeted(connection)
            greeted = True
            if answered.time_out <= 0:
                self._become(KeeperState.EXPIRED_SESSION)
                return True
            self._session_id, self._password = answered.session_id, answered.passwd
            self._connection = connection
            self._become(KeeperState.CONNECTED)
            self._flush()
            await self._hold(connection, answered.time_out * 2 / 3 / 1000)
        except (OSError, TimeoutError, ConnectionDropped):
            self._become(KeeperState.CONNECTING)
        finally:
            self._connection = None
            if connection is not None:
                connection.close()
        return greeted

    async def _greeted(self, connection: _Connection) -> Any:
        wanted = Connect(0, self._last_zxid, self._session_timeout_ms, self._session_id, self._password, False)
        body = wanted.serialize()
        connection.write(_LENGTH.pack(len(body)) + body)
        timeout_s = connect_timeout_s(self._session_timeout_ms / 1000, len(self._servers), self._unanswered)
        self._unanswered += 1
        async with asyncio.timeout(timeout_s):
            answered = replies.greeting(await connection.greeting)
        self.fault = ""
        self._xid = 0
        self._unanswered = 0
        self._negotiated_ms = answered.time_out
        self._manners.greeted(answered.time_out)
        return answered

    async def _hold(self, connection: _Connection, read_timeout_s: float) -> None:
        """Ping until the connection ends; close the session when it is to stop. Raises `ConnectionDropped`."""
        loop = self._loop
        pinged_at = loop.time()
        stopping = loop.create_task(self._stopped.wait())
        try:
            while True:
                early_s = self._random.randint(1, _EARLY_MAX) / 100
                deadline = pinged_at + read_timeout_s / 2 - early_s
                timeout = max(deadline - loop.time(), early_s)
                await asyncio.wait((connection.ended, stopping), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if connection.ended.done():
                    raise ConnectionDropped(connection.ended.result())
                if stopping.done():
                    await self._close_session(connection)
                    return
                if connection.is_pinged or self._manners.is_late():
                    raise ConnectionDropped("the server is silent")
                if loop.time() >= deadline:
                    connection.is_pinged = True
                    connection.write(_frame(PING_XID, _PING))
                    pinged_at = loop.time()
        finally:
            stopping.cancel()

    async def _close_session(self, connection: _Connection) -> None:
        self._queue.append((_CLOSE, None))
        self._flush()
        await connection.ended

    # -- traffic -----------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flushing = False
        if self._connection is None or not self._is_live:
            return
        frames = []
        while self._queue:
            request, token = self._queue.popleft()
            self._xid += 1
            frames.append(_frame(self._xid, request))
            self._pending.append((request, token, self._xid))
        if frames:
            self._connection.write(b"".join(frames))

    def received(self, connection: _Connection, frame: bytes) -> None:
        """Handle a frame that is not the greeting. Raises `replies.MalformedFrame`."""
        header, offset = replies.header(frame)
        if header.xid == PING_XID:
            connection.is_pinged = False
        elif header.xid == WATCH_XID:
            kind, path = replies.notification(frame, offset)
            self._put(Notified(kind, self.relative(path), header.zxid if header.zxid > 0 else None))
        else:
            self._answered(connection, header, frame, offset)

    def _answered(self, connection: _Connection, header: Any, frame: bytes, offset: int) -> None:
        if not self._pending or self._pending[0][2] != header.xid:
            raise replies.MalformedFrame(f"a reply to request {header.xid}, which is not the next one")
        request, token, _ = self._pending.popleft()
        if header.zxid > 0:
            self._last_zxid = header.zxid
        if request is _CLOSE:
            connection.drop("the session is closed")
            return
        try:
            value = replies.answer(request, header.err, frame, offset)
        except (ZookeeperError, replies.UnreadableReply) as error:
            self._fail(token, error)
        else:
            if isinstance(request, Transaction):
                value = Transaction.unchroot(self, value)
            self._put(Answered(token, value, None, self._last_zxid))

    def is_late(self) -> bool:
        """Whether what has arrived comes too late to be read."""
        return self._is_live and self._manners.is_late()

    def heard(self) -> None:
        self._manners.heard()


class _Connection(asyncio.Protocol):
    """Cuts bytes into frames: the greeting, then what the bridge handles."""

    def __init__(self, bridge: SimulatedBridge) -> None:
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[bytes] = loop.create_future()
        self.ended: asyncio.Future[str] = loop.create_future()
        self.is_pinged = False  #: a ping has not been answered
        self._bridge = bridge
        self._transport: asyncio.Transport
        self._received = bytearray()

    def write(self, frames: bytes) -> None:
        self._transport.write(frames)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._bridge.is_late():
            self.drop("nothing heard for two thirds of the session timeout")
            return
        self._bridge.heard()
        received = self._received
        received += data
        try:
            while not self.ended.done() and replies.is_whole(received):
                end = _LENGTH.size + replies.announced(received)
                frame = bytes(received[_LENGTH.size : end])
                del received[:end]
                if self.greeting.done():
                    self._bridge.received(self, frame)
                else:
                    self.greeting.set_result(frame)
        except replies.MalformedFrame as error:
            self._bridge.fault = str(error)
            self.drop(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop("the connection broke" if exc is None else str(exc))

    def drop(self, why: str) -> None:
        """The connection is over. Idempotent."""
        if not self.ended.done():
            self.ended.set_result(why)
        if not self.greeting.done():
            self.greeting.set_exception(ConnectionDropped(why))
            self.greeting.exception()  # it may not be awaited

    def close(self) -> None:
        self._transport.abort()


def _frame(xid: int, request: Any) -> bytes:
    body: bytes = request.serialize()
    return _HEAD.pack(len(body) + 8, xid, request.type) + body
