"""A proxy in front of a ZooKeeper server that reads every request, and can cut, refuse, hold and pause.

    with ZooKeeperProxy(chroot) as proxy:                       # "host:port" or "host:port/chroot"
        async with member(proxy.connect_string, "c1", {"t": 1}) as c1:
            proxy.operations()      # [Op(op="create", path="/consumers/g/ids/g_c1", result="ok", ...), ...]
            proxy.events()          # watch notifications that were delivered
            since = proxy.mark()    # operations(since) and events(since): only later ones

            pause = proxy.pause_at(lambda op: op.op == "delete" and "/owners/" in op.path)
            ...
            await pause.reached()                               # the proxy has received the request, and holds it
            pause.release()                                     # forward it and everything behind it; or proxy.cut()

            proxy.hold(True)    # keep the bytes of both directions; TCP stays up ...
            proxy.hold(False)   # ... and deliver them, even on connections that one side has closed meanwhile
            proxy.read(False)   # leave what clients send unread, so that their sockets fill; read(True) goes on
            proxy.refuse(True)  # close new connections at once; leave existing ones alone
            proxy.cut()         # break existing connections, in both directions
            await proxy.quiet(0.5)                              # wait until only pings have passed for that long

`cut`, `refuse` and `hold` also take a connection's name: the member's id (`g_c1`) from its first create under
`/consumers/G/ids` on, across reconnects of the same session; before that, `port N`. With one proxy per member no names
are needed. Paths are without the chroot. A request is recorded when it is forwarded, so a paused or held one is not
recorded yet. The proxy runs in a separate thread, so async tests and others can use it. `close` (the end of the `with`)
raises errors in reading the traffic.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from kernel.tasks import close_server
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.zookeeper import frames as zk_frames

T = TypeVar("T")

#: How often `quiet` checks.
_LOOK_S = 0.02


@dataclass
class Op:
    """One forwarded request. `op` may also be `connect`, `reconnect` (path "") and `closeSession`, but not `ping`."""

    request: zk_frames.Request
    at: float  #: time.monotonic() when it was forwarded
    _link: _Link = field(repr=False)
    result: str | None = None  #: "ok" or the error's name; None until there is an answer
    answered_at: float | None = None

    @property
    def connection(self) -> str:
        """The member's id (`g_c1`) or, before it registers, `port N`."""
        return self._link.name

    @property
    def session(self) -> int:
        return self._link.session

    @property
    def op(self) -> str:
        return self.request.op

    @property
    def path(self) -> str:
        return self.request.path

    @property
    def watch(self) -> bool:
        return self.request.watch

    @property
    def ephemeral(self) -> bool:
        return self.request.ephemeral

    @property
    def data(self) -> bytes | None:
        return self.request.data

    def __str__(self) -> str:
        return f"{self.op} {self.path} {self.result}"


@dataclass(frozen=True)
class Notification:
    """A delivered watch notification; `event` is created, deleted, changed, children or none."""

    event: str
    path: str
    at: float
    _link: _Link = field(repr=False)

    @property
    def connection(self) -> str:
        return self._link.name

    @property
    def session(self) -> int:
        return self._link.session


@dataclass
class Pause:
    """A request to pause in the proxy; await `reached` before `release`."""

    _match: Callable[[Op], bool]
    _at_reply: bool
    _proxy: ZooKeeperProxy
    op: Op | None = None  #: the paused request
    _released: bool = False
    _link: _Link | None = None

    @property
    def is_reached(self) -> bool:
        return self.op is not None

    async def reached(self, timeout_s: float = 60) -> Op:
        await until(lambda: self.is_reached, timeout_s, "a request to reach the proxy's pause")
        assert self.op is not None
        return self.op

    def release(self) -> None:
        """Forward the request and everything behind it. Before it is reached: cancel the pause."""

        def go() -> None:
            self._released = True
            if self in self._proxy._pauses:
                self._proxy._pauses.remove(self)
            if self._link is not None:
                self._link.flush()

        self._proxy._do(go)

    def _takes(self, op: Op, link: _Link, *, at_reply: bool) -> bool:
        if self._at_reply is not at_reply or self.op is not None or not self._match(op):
            return False
        self._link = link
        self.op = op
        return True


class _End(asyncio.Protocol):
    """One side of a connection: its frames are queued until they may be forwarded to the other side."""

    def __init__(self, link: _Link) -> None:
        self.link = link
        self.transport: asyncio.Transport | None = None
        self.frames = zk_frames.Frames()
        self.queue: deque[bytes] = deque()
        self.pause: Pause | None = None
        self.released: Op | None = None  #: the next request, already paused once, so not again
        self.first = True
        self.ended = False
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self is self.link.client:
            self.link.proxy._begin(self.link)

    def data_received(self, data: bytes) -> None:
        self.queue.extend(self.frames.feed(data))
        self.link.flush()

    def eof_received(self) -> bool:
        self.ended = True
        self.link.flush()
        return True  # data from the other side may still be in flight

    def connection_lost(self, _error: Exception | None) -> None:
        self.ended = self.closed = True
        self.link.flush()


class _Link:
    """A client's connection, and the proxy's connection to the server."""

    def __init__(self, proxy: ZooKeeperProxy) -> None:
        self.proxy = proxy
        self.client = _End(self)
        self.server = _End(self)
        self.port = 0
        self.session = 0
        self.waiting: dict[int, deque[Op]] = {}  #: unanswered requests, by xid
        self.connecting: Op | None = None
        self.broken = False

    @property
    def name(self) -> str:
        return self.proxy._names.get(self.session) or f"port {self.port}"

    def flush(self) -> None:
        if self.broken or self.server.transport is None:
            return
        self._flush(self.client, self.server)
        self._flush(self.server, self.client)

    def _flush(self, source: _End, target: _End) -> None:
        assert target.transport is not None
        passing: list[bytes] = []
        while source.queue and not self._blocked(source):
            frame = source.queue[0]
            ready = frame if source.frames.plain else self._pass(source, frame)
            if ready is None:
                continue  # a pause has begun, or the connection has been refused
            source.queue.popleft()
            passing.append(ready)
        if self.broken:
            return
        if not target.transport.is_closing():
            target.transport.write(b"".join(passing))
        if source.ended and not source.queue and not target.transport.is_closing():
            target.transport.close()

    def _blocked(self, source: _End) -> bool:
        if source.pause is not None and source.pause._released:
            source.released, source.pause = source.pause.op, None
        return self.broken or self.proxy._holds(self) or source.pause is not None

    def _pass(self, source: _End, frame: bytes) -> bytes | None:
        body = frame[4:]
        if source is self.client:
            passed = self._first_request(body) if source.first else self._request(body)
        else:
            passed = self._first_reply(body) if source.first else self._reply(body)
        source.first = source.first and not passed
        return frame if passed else None

    def _first_request(self, body: bytes) -> bool:
        asked = zk_frames.connect(body)
        self.session = asked.session
        if self.proxy._refuses(self):
            self.abort()
            return False
        request = zk_frames.Request("reconnect" if asked.session else "connect")
        self.connecting = Op(request, time.monotonic(), self)
        self.proxy._ops.append(self.connecting)
        return True

    def _first_reply(self, body: bytes) -> bool:
        granted = zk_frames.connected(body)
        assert self.connecting is not None
        self.connecting.result = "ok" if granted.timeout_ms else "SessionExpired"
        self.connecting.answered_at = time.monotonic()
        self.session = granted.session or self.session
        if granted.timeout_ms:
            self.proxy._passwords[granted.session] = granted.password
        return True

    def _request(self, body: bytes) -> bool:
        xid, request = zk_frames.request(body, self.proxy._relative)
        if request.op == "ping":
            return True
        op = self.client.released or Op(request, 0.0, self)
        if request.op == "create" and request.ephemeral and paths.parse_member_id(request.path):
            self.proxy._names.setdefault(self.session, paths.name(request.path))
        if self._pauses(self.client, op, at_reply=False):
            return False
        op.at = time.monotonic()
        self.waiting.setdefault(xid, deque()).append(op)
        self.proxy._ops.append(op)
        return True

    def _pauses(self, source: _End, op: Op, *, at_reply: bool) -> bool:
        if source.released is not None:
            source.released = None
            return False
        for pause in self.proxy._pauses:
            if pause._takes(op, self, at_reply=at_reply):
                source.pause = pause
                self.proxy._pauses.remove(pause)
                return True
        return False

    def _reply(self, body: bytes) -> bool:
        answer = zk_frames.reply(body, self.proxy._relative)
        if answer.xid == zk_frames.PING:
            return True
        if answer.xid == zk_frames.NOTIFICATION:
            self.proxy._events.append(Notification(answer.event, answer.path, time.monotonic(), self))
            return True
        op = self.waiting[answer.xid][0]
        if self._pauses(self.server, op, at_reply=True):
            return False
        self.waiting[answer.xid].popleft()
        op.result, op.answered_at = answer.result, time.monotonic()
        return True

    def abort(self) -> None:
        self.broken = True
        for end in (self.client, self.server):
            if end.transport is not None:
                end.transport.abort()


@dataclass(frozen=True)
class Mark:
    """A position in the recorded traffic."""

    ops: int = 0
    events: int = 0


class ZooKeeperProxy:
    """See the module. `target` is a connect string with one server, with or without a chroot."""

    def __init__(self, target: str) -> None:
        server, _, chroot = target.partition("/")
        host, _, port = server.partition(":")
        self._target = (host, int(port))
        self._chroot = f"/{chroot}" if chroot else ""
        self._ops: list[Op] = []
        self._events: list[Notification] = []
        self._links: list[_Link] = []
        self._names: dict[int, str] = {}  #: session id -> member id
        self._passwords: dict[int, bytes] = {}  #: of the granted sessions, latest last
        self._pauses: list[Pause] = []
        self._held: set[str | None] = set()
        self._refused: set[str | None] = set()
        self._errors: list[BaseException] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._failed)
        self._thread = threading.Thread(target=self._loop.run_forever, name="zookeeper-proxy", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(90)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.connect_string = f"127.0.0.1:{self.port}{self._chroot}"

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(self._accept, "127.0.0.1", 0, backlog=512)

    def _accept(self) -> _End:
        link = _Link(self)
        self._links = [known for known in self._links if not known.broken]
        self._links.append(link)
        return link.client

    def _begin(self, link: _Link) -> None:
        task = self._loop.create_task(self._connect(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, link: _Link) -> None:
        assert link.client.transport is not None
        link.port = link.client.transport.get_extra_info("peername")[1]
        if None in self._refused:
            link.abort()
            return
        try:
            await self._loop.create_connection(lambda: link.server, *self._target)
        except OSError:
            link.abort()
            return
        if link.broken:
            link.abort()
        link.flush()

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._chroot) or "/"

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self._errors.append(error if isinstance(error, BaseException) else RuntimeError(str(context)))

    def _holds(self, link: _Link) -> bool:
        return bool(self._held) and (None in self._held or link.name in self._held)

    def _refuses(self, link: _Link) -> bool:
        return None in self._refused or link.name in self._refused

    def _do(self, action: Callable[[], T]) -> T:
        """Run an action in the proxy's thread and wait for it."""

        async def run() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(90)

    # -- traffic -----------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(len(self._ops), len(self._events))

    def operations(self, since: Mark | None = None, *, connection: str | None = None) -> list[Op]:
        """Requests in the order of forwarding, without pings; of one connection, if named."""
        found = self._ops[since.ops if since else 0 :]
        return [op for op in found if connection in (None, op.connection)]

    def events(self, since: Mark | None = None, *, connection: str | None = None) -> list[Notification]:
        found = self._events[since.events if since else 0 :]
        return [event for event in found if connection in (None, event.connection)]

    def credentials(self, member_id: str | None = None) -> tuple[int, bytes]:
        """The credentials of the latest session, of any member or of the given one; for `end_session`."""
        mine = [session for session, name in self._names.items() if name == member_id] if member_id else self._passwords
        session = list(mine)[-1]
        return session, self._passwords[session]

    def all_credentials(self) -> list[tuple[int, bytes]]:
        """The credentials of all granted sessions: a broker may have one for itself and one for its groups."""
        return list(self._passwords.items())

    async def quiet(
        self, seconds: float = 0.5, *, timeout_s: float = 60, ran: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Wait until there were no requests, except pings, and no pending answers for `seconds`.

        This counts checks of the traffic, so time in which this process did not run is not counted. Members in other
        processes may be stopped meanwhile: before each check, `ran` waits until they have run.
        """
        looks, before = 0, (-1, -1)

        async def quiet() -> bool:
            nonlocal looks, before
            if ran is not None:
                await ran()
            now = self.mark()
            same = (now.ops, now.events) == before and not self._do(self._unanswered)
            looks, before = looks + 1 if same else 0, (now.ops, now.events)
            return looks * _LOOK_S >= seconds

        await until(quiet, timeout_s, lambda: f"no more operations, last {self._ops[-3:]}", every_s=_LOOK_S)

    def _unanswered(self) -> bool:
        """Whether a request on an open connection has no answer yet."""
        standing = [link for link in self._links if not (link.broken or link.client.closed or link.server.closed)]
        return any((link.connecting and not link.connecting.result) or any(link.waiting.values()) for link in standing)

    # -- faults ------------------------------------------------------------------------------------------------------

    def pause_at(self, match: Callable[[Op], bool], *, at_reply: bool = False) -> Pause:
        """Pause the first matching request before it is forwarded or, with `at_reply`, its answer (it has been
        performed).

        Later frames of its connection in the same direction wait behind it, even pings.
        """
        pause = Pause(match, at_reply, self)
        self._do(lambda: self._pauses.append(pause))
        return pause

    def cut(self, connection: str | None = None) -> None:
        """Break all connections, or those of that name; frames waiting in them never arrive."""
        self._do(lambda: [link.abort() for link in self._links if connection in (None, link.name)])

    def refuse(self, on: bool = True, connection: str | None = None) -> None:
        """Close new connections at once; with a name, those that reconnect with that member's session."""
        self._do(lambda: self._switch(self._refused, connection, on))

    def read(self, on: bool = True) -> None:
        """With False, leave the clients' bytes in the kernel's buffers, so that their sockets fill; True reads on."""

        def switch() -> None:
            for link in self._links:
                if link.client.transport is not None and not link.broken:
                    link.client.transport.resume_reading() if on else link.client.transport.pause_reading()

        self._do(switch)

    def hold(self, on: bool = True, connection: str | None = None) -> None:
        """Hold the bytes of both directions, or deliver the held ones."""
        self._do(lambda: self._switch(self._held, connection, on))

    def _switch(self, which: set[str | None], connection: str | None, on: bool) -> None:
        (which.add if on else which.discard)(connection)
        for link in self._links:
            link.flush()

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Break all connections and end the thread; raises errors in reading the traffic."""
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(90)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(90)
            self._loop.close()
        if self._errors:
            raise self._errors[0]

    async def _end(self) -> None:
        await close_server(self._server)
        for task in list(self._connecting):
            task.cancel()
        for link in self._links:
            link.abort()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        ends = [end for link in self._links for end in (link.client, link.server)]
        await until(lambda: all(e.closed or e.transport is None for e in ends), 60, "the proxy's connections to close")

    def __enter__(self) -> ZooKeeperProxy:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
