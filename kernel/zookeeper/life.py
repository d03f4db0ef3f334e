"""A session's life: opened, broken, expired, renewed, closed; and how any operation is performed in it.

What it promises is in `session.py`, which adds the operations themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Self

from kernel.errors import Unavailable, UserError
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import (
    ConnectionLost,
    NoNode,
    OperationTimeout,
    SessionClosed,
    SessionExpired,
    ZooKeeperError,
)
from kernel.zookeeper.inbox import Answered, Notified, Outcome, StateChanged
from kernel.zookeeper.operations import (
    Operation,
    SessionChange,
    SessionState,
    Try,
    WatchFired,
    session_name,
)
from kernel.zookeeper.pipeline import Pipeline
from kernel.zookeeper.watches import EVENTS, WatchRegistry

if TYPE_CHECKING:
    from types import TracebackType

    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

#: How long `close` waits for a server that says nothing.
CLOSE_WAIT_S = 3.0

RETRIED = (ConnectionLost, SessionExpired, OperationTimeout)


class SessionLife:
    """One session, made by `open`, usable on the event loop that opened it."""

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
        self._seen_zxid = 0
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

    async def close(self) -> None:
        """End the session: the server deletes its ephemeral znodes. Idempotent, also after a failed `open`.

        When nobody answers for `CLOSE_WAIT_S`, the session is left to its timeout.
        """
        if self._closing is None:
            self._closing = self._loop.create_future()
            self._bridge.stop_in_background(self._stopped)
            self._loop.call_later(CLOSE_WAIT_S, self._closed)
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
            if operation.only_in and (operation.only_in != self.session_id or self.state is SessionState.LOST):
                raise SessionExpired(f"session {session_name(operation.only_in)} is over", operation.path)
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
        if isinstance(error, SessionExpired) and self.connected:
            # A server that took our connection over in the moment in which the session ended keeps it: it answers
            # reads and pings and refuses every write, for ever. Connecting anew makes it say so.
            self._bridge.break_connection()
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
                self._seen_zxid = max(self._seen_zxid, outcome.zxid)
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
        elif state is SessionState.LOST:
            self._pipeline.fail_bound(self.session_id, SessionExpired, "the session has expired")
        self._be_patient()
        for fired, callback in self._watches.drop_all(self._seen_zxid):
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
        assert self._closing is not None
        if self._closing.done():
            return
        self._pipeline.fail_all(SessionClosed, "the session was closed")
        self._become(SessionChange(SessionState.CLOSED, self.session_id))
        self._closing.set_result(None)
