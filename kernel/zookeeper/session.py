"""One ZooKeeper session for asyncio: where kazoo's thread ends, and the only place where its errors are translated.

What it promises:

- **Every operation that reaches the server is traced**: one `zk_op` a physical try, under the operation's own
  name in the protocol, `ok` only when the server says so. Nothing else is sent but pings. (An `exists` that
  finds nothing is an answer for the caller, a failed operation for the server: ok is false, error NoNode.)
- **Order**: operations are sent in the order in which they were issued, on one connection, pipelined up to a
  window; replies, watch notifications and state changes come back in the order in which the server sent them.
- **Watches** are ZooKeeper's own: one-shot, armed by a read that succeeded (`exists` also by one that found
  nothing). One notification calls every callback that was armed on its path once, however many reads armed
  it, and is traced once as `zk_notified`. A watch does not survive a break of the connection: kazoo drops
  them, where Java's client sends them again. Its callbacks are then called once with the event `none`, which
  says "arm again", not "something changed"; it is not a notification and is not traced as one.
- **States**: CONNECTED, SUSPENDED (nobody knows), LOST (the server said that the session is over; it comes
  only once a server is reached again), CLOSED. After LOST the next CONNECTED is a *new session*: nothing of the
  old one is left, and nothing is created again by itself.
- **Retries** (`retry_forever=True`) are those of ZkClient's retryUntilConnected: over ConnectionLost,
  SessionExpired and OperationTimeout, without limit, so that an operation may begin in one session and end in
  the next. A retried create can meet its own first try: NodeExists. Without it an operation waits for a
  connection for `connection_timeout_ms` at most and then raises `ConnectionLost`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Self

from kernel.errors import Unavailable, UserError
from kernel.zookeeper import requests
from kernel.zookeeper.bridge import Answered, Bridge, Notified, Outcome, StateChanged
from kernel.zookeeper.errors import (
    ConnectionLost,
    NodeExists,
    NoNode,
    OperationTimeout,
    SessionClosed,
    SessionExpired,
    ZooKeeperError,
)
from kernel.zookeeper.operations import (
    Operation,
    SessionChange,
    SessionState,
    TransactionPart,
    Try,
    WatchCallback,
    WatchFired,
    ZnodeStat,
    session_name,
)
from kernel.zookeeper.paths import parent
from kernel.zookeeper.pipeline import Pipeline
from kernel.zookeeper.watches import EVENTS, WatchRegistry

if TYPE_CHECKING:
    from types import TracebackType

    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

RETRIED = (ConnectionLost, SessionExpired, OperationTimeout)


class ZooKeeperSession:
    """A session with its operations; made by `open`, usable on the event loop that opened it."""

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int,
        tracer: Tracer,
        name: str,
        connection_timeout_ms: int,
        retry_forever: bool,
    ) -> None:
        self.member: str | None = None  #: put into every event; set it once the member knows its id
        self.name = name
        self.connect_string = connect_string
        self.requested_timeout_ms = session_timeout_ms
        self.negotiated_timeout_ms = 0
        self.session_id = 0
        self.state = SessionState.SUSPENDED
        self._tracer = tracer
        self._retry_forever = retry_forever
        self._patience_s = connection_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._bridge = Bridge(
            connect_string, session_timeout_ms=session_timeout_ms, name=name, loop=self._loop, handle=self._handle
        )
        self._pipeline = Pipeline(self._bridge.send, self._finished)
        self._watches = WatchRegistry()
        self._listeners: list[asyncio.Queue[SessionChange]] = []
        self._patience: asyncio.TimerHandle | None = None
        self._connected = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None
        #: State changes from the very first on.
        self.states = self.subscribe()

    @classmethod
    async def open(
        cls,
        connect_string: str,
        *,
        session_timeout_ms: int,
        tracer: Tracer,
        process: str = "",
        name: str,
        connection_timeout_ms: int,
        retry_forever: bool = False,
    ) -> Self:
        """Connect and return a session that is CONNECTED.

        `connect_string` is `host:port[,host:port...][/chroot]`; servers are tried in that order. `name` tells
        sessions of a process apart in thread names. Raises `Unavailable` when no server takes the session
        within `connection_timeout_ms`, `UserError` when the connect string makes no sense.
        """
        try:
            session = cls(
                connect_string,
                session_timeout_ms=session_timeout_ms,
                tracer=tracer,
                name=f"{process}-{name}" if process else name,
                connection_timeout_ms=connection_timeout_ms,
                retry_forever=retry_forever,
            )
        except ValueError as error:
            raise UserError(f"{connect_string!r} is not a ZooKeeper connect string: {error}") from error
        session._bridge.start()
        try:
            async with asyncio.timeout(connection_timeout_ms / 1000):
                await session._connected.wait()
        except TimeoutError:
            await session.close()
            raise Unavailable(
                f"no ZooKeeper at {connect_string} took a session within {connection_timeout_ms} ms: is it running, "
                "and is the address right?"
            ) from None
        except BaseException:
            await session.close()
            raise
        return session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- operations --------------------------------------------------------------------------------------------

    async def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        ephemeral: bool = False,
        makepath: bool = False,
        step: str = "",
        cause: str = "",
    ) -> str:
        """Create a znode and return its path; `data=None` stores null, as Kafka does for plain folders.

        With `makepath`, missing parents are made as Kafka makes them: try, on NoNode create the parents
        (persistent, null data, existing ones are fine), then try once more.
        Raises `NodeExists`, `NoNode` (a missing parent, without `makepath`), `NoChildrenForEphemerals`.
        """
        request = requests.create(self._bridge.absolute(path), data, ephemeral=ephemeral)
        operation = Operation(op="create", path=path, request=request, step=step, cause=cause)
        try:
            return self._bridge.relative(await self._perform(operation))
        except NoNode:
            if not makepath:
                raise
        await self.ensure_path(parent(path), step=step, cause=cause)
        return self._bridge.relative(await self._perform(operation))

    async def ensure_path(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Make a persistent znode with null data, and its parents where they miss; what exists is left alone."""
        try:
            await self.create(path, None, makepath=path.count("/") > 1, step=step, cause=cause)
        except NodeExists:
            return

    async def delete(self, path: str, version: int = -1, *, step: str = "", cause: str = "") -> None:
        """Raises `NoNode`, `NotEmpty`, `BadVersion`; version -1 deletes whatever is there."""
        request = requests.delete(self._bridge.absolute(path), version)
        await self._perform(Operation(op="delete", path=path, request=request, step=step, cause=cause))

    async def exists(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> ZnodeStat | None:
        """The znode's metadata, or None when there is none; the watch is armed either way."""
        request = requests.exists(self._bridge.absolute(path), watch=watch is not None)
        operation = Operation(op="exists", path=path, request=request, step=step, cause=cause, watch=watch)
        try:
            return requests.stat(await self._perform(operation))
        except NoNode:
            return None

    async def get(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> tuple[bytes, ZnodeStat]:
        """Data (null reads as b"") and metadata. Raises `NoNode`, and then no watch is armed."""
        request = requests.get(self._bridge.absolute(path), watch=watch is not None)
        data, stat = await self._perform(
            Operation(op="getData", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return data or b"", requests.stat(stat)

    async def children(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> list[str]:
        """Names of the children, sorted. Raises `NoNode`, and then no watch is armed."""
        request = requests.children(self._bridge.absolute(path), watch=watch is not None)
        names: list[str] = await self._perform(
            Operation(op="getChildren", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return sorted(names)

    async def set(
        self, path: str, data: bytes | None, version: int = -1, *, step: str = "", cause: str = ""
    ) -> ZnodeStat:
        """Raises `NoNode` and `BadVersion`. A version is no fence across a re-creation: it starts at 0 again."""
        request = requests.set_data(self._bridge.absolute(path), data, version)
        operation = Operation(op="setData", path=path, request=request, step=step, cause=cause)
        return requests.stat(await self._perform(operation))

    async def sync(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Let the connected server catch up with the leader; reads issued after this one see what was there."""
        request = requests.sync(self._bridge.absolute(path))
        await self._perform(Operation(op="sync", path=path, request=request, step=step, cause=cause))

    async def transaction(self, *parts: TransactionPart, step: str = "", cause: str = "") -> None:
        """All of `parts` or none, as one operation `multi` under the first part's path.

        Raises the error of the part that failed, with its path.
        """
        assert parts, "a transaction of nothing"
        request = requests.transaction(parts, self._bridge.absolute)
        await self._perform(
            Operation(op="multi", path=parts[0].path, request=request, step=step, cause=cause, parts=parts)
        )

    async def close(self) -> None:
        """End the session: the server deletes its ephemeral znodes. Idempotent, also after a failed `open`.

        When nobody answers, the session is left to its timeout.
        """
        if self._closing is None:
            self._closing = self._loop.create_future()
            self._bridge.stop_in_background(self._stopped)
        await asyncio.shield(self._closing)

    # -- for those who need to know --------------------------------------------------------------------------

    def subscribe(self) -> asyncio.Queue[SessionChange]:
        """A queue of the state changes from now on; unbounded, they are few."""
        queue: asyncio.Queue[SessionChange] = asyncio.Queue()
        self._listeners.append(queue)
        return queue

    async def wait_connected(self) -> None:
        """Return once the session is CONNECTED. Raises `SessionClosed` when it was closed."""
        await self._connected.wait()
        if self.state is SessionState.CLOSED:
            raise SessionClosed(f"the session {self.name} was closed")

    @property
    def connected(self) -> bool:
        return self.state is SessionState.CONNECTED

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Session id and password; a second client that has them can end the session, as tests do to expire it."""
        return self._bridge.credentials

    # -- performing ------------------------------------------------------------------------------------------

    async def _perform(self, operation: Operation) -> Any:
        while True:
            if self._closing is not None:
                raise SessionClosed("the session was closed", operation.path)
            attempt = Try(operation, self._loop.create_future())
            self._pipeline.append(attempt)
            if self.connected:
                self._pipeline.flow()
            else:
                self._be_patient()
            try:
                return await attempt.future
            except RETRIED:
                if not self._retry_forever:
                    raise

    def _finished(self, operation: Operation, error: ZooKeeperError | None, zxid: int) -> None:
        self._tracer.emit(
            "zk_op",
            member=self.member,
            cause=operation.cause,
            op=operation.op,
            path=operation.path,
            ok=error is None,
            error=type(error).__name__ if error is not None else None,
            step=operation.step,
            zxid=zxid or None,
        )
        granted = error is None or (operation.op == "exists" and isinstance(error, NoNode))
        if operation.watch is not None and granted:
            self._watches.arm(operation.op, operation.path, operation.watch)

    def _be_patient(self) -> None:
        if not self._retry_forever and self._patience is None:
            self._patience = self._loop.call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        """Nobody was reached for as long as an operation may wait; only without `retry_forever`."""
        self._patience = None
        if not self.connected:
            self._pipeline.fail_all(ConnectionLost, f"no ZooKeeper at {self.connect_string} for {self._patience_s:g} s")

    # -- outcomes, in the server's order ---------------------------------------------------------------------

    def _handle(self, outcome: Outcome) -> None:
        match outcome:
            case Answered():
                self._pipeline.answer(outcome)
                if self.connected:
                    self._pipeline.flow()
            case Notified():
                self._notified(outcome)
            case StateChanged():
                self._state_changed(outcome)

    def _notified(self, notified: Notified) -> None:
        fired = WatchFired(notified.path, EVENTS[notified.kind], notified.zxid)
        self._tracer.emit("zk_notified", member=self.member, path=fired.path, event=str(fired.event), zxid=fired.zxid)
        for callback in self._watches.fire(fired):
            # By the loop, not here: a callback that raises must not take the rest of the outcomes with it.
            self._loop.call_soon(callback, fired)

    def _state_changed(self, changed: StateChanged) -> None:
        if self._closing is not None:
            return  # `close` says the last word
        state = SessionState[changed.state]
        new_session = state is SessionState.CONNECTED and changed.session_id != self.session_id
        if state is SessionState.CONNECTED:
            self.session_id = changed.session_id
            self.negotiated_timeout_ms = changed.negotiated_timeout_ms
            if new_session and self.negotiated_timeout_ms != self.requested_timeout_ms:
                log.warning(
                    "session %s asked for a timeout of %d ms, ZooKeeper grants %d ms (its min/maxSessionTimeout)",
                    self.name,
                    self.requested_timeout_ms,
                    self.negotiated_timeout_ms,
                )
        self._become(SessionChange(state, self.session_id, new_session))
        if state is SessionState.CONNECTED:
            self._pipeline.flow()
            return
        if state is SessionState.LOST and not self._retry_forever:
            self._pipeline.fail_all(SessionExpired, "the session has expired")
        self._be_patient()
        for fired, callback in self._watches.drop_all():
            self._loop.call_soon(callback, fired)

    def _become(self, change: SessionChange) -> None:
        self.state = change.state
        self._tracer.emit(
            "session_changed", member=self.member, state=str(change.state), session=session_name(change.session_id)
        )
        if self.connected or change.state is SessionState.CLOSED:
            self._connected.set()
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
        else:
            self._connected.clear()
        for queue in self._listeners:
            queue.put_nowait(change)

    def _stopped(self) -> None:
        """In another thread: kazoo has ended."""
        # The loop may have ended meanwhile, when its program was interrupted.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closed)

    def _closed(self) -> None:
        self._pipeline.fail_all(SessionClosed, "the session was closed")
        self._become(SessionChange(SessionState.CLOSED, self.session_id))
        assert self._closing is not None
        self._closing.set_result(None)
