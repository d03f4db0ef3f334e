"""The lifecycle of a session (opening, disconnects, expiry, closing), and how it performs operations.

`session.py` documents the guarantees and adds the operations.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, NoReturn, Self

from kernel.errors import Unavailable, UserError
from kernel.zookeeper.answer_timer import AnswerTimer
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import (
    ConnectionLost,
    NoNode,
    OperationTimeout,
    SessionClosed,
    SessionExpired,
    SessionFailed,
    Unanswered,
    ZooKeeperError,
)
from kernel.zookeeper.event_queue import Answered, Failed, Notified, SessionEvent, StateChanged
from kernel.zookeeper.operations import (
    Attempt,
    Operation,
    SessionChange,
    SessionState,
    WatchFired,
    session_name,
)
from kernel.zookeeper.pipeline import Pipeline
from kernel.zookeeper.watches import EVENTS, WatchRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.trace.writer import Tracer
    from kernel.zookeeper.stepping import StepGate

log = logging.getLogger(__name__)

#: How long `close` waits for an unresponsive server.
CLOSE_WAIT_S = 3.0
#: It waits in so many parts: a pause of this process counts as one of them at most.
_CLOSE_WAITS = 30
#: The least time for an answer where operations are repeated for ever.
ANSWER_S = 30.0

RETRIED = (ConnectionLost, SessionExpired, OperationTimeout)


class SessionLifecycle:
    """A session, created by `open`, for use on the event loop that opened it."""

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int,
        tracer: Tracer,
        name: str,
        connection_timeout_ms: int,
        retry_forever: bool,
        bridge: Callable[..., Bridge] = Bridge,
    ) -> None:
        self.member: str | None = None  #: goes into every trace event; set it once the member knows its id
        self.name = name
        self.connect_string = connect_string
        self.requested_timeout_ms = session_timeout_ms
        self.negotiated_timeout_ms = 0
        self.session_id = 0
        self.state = SessionState.SUSPENDED
        self._tracer = tracer
        self._retry_forever = retry_forever
        self._connection_timeout_s = connection_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._bridge = bridge(
            connect_string,
            session_timeout_ms=session_timeout_ms,
            name=name,
            loop=self._loop,
            handle=self._handle,
        )
        self._pipeline = Pipeline(self._bridge.send, self._finished)
        self._watches = WatchRegistry()
        self._listeners: list[asyncio.Queue[SessionChange]] = []
        self._connection_timer: asyncio.TimerHandle | None = None
        self._connected = asyncio.Event()
        self._seen_zxid = 0
        self._answers = AnswerTimer(self._loop, lambda: self._pipeline.oldest, self._answer_s, self._unanswered)
        self._failure: Exception | None = None  #: what ended kazoo's thread
        self._has_failed = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None
        self._is_awaited: Callable[[], bool] = lambda: False
        #: All state changes, from the first one on.
        self.states = self.subscribe()

    @classmethod
    async def open(  # noqa: PLR0913 - all but the connect string are by name
        cls,
        connect_string: str,
        *,
        session_timeout_ms: int,
        tracer: Tracer,
        process: str = "",
        name: str,
        connection_timeout_ms: int,
        retry_forever: bool = False,
        bridge: Callable[..., Bridge] = Bridge,
    ) -> Self:
        """Connect and return a session that is CONNECTED.

        `connect_string` is `host:port[,host:port...][/chroot]`; servers are tried in that order. `name` distinguishes
        the sessions of a process in thread names. `bridge` makes what connects. Raises `Unavailable` if no server
        accepts the session within `connection_timeout_ms`, `UserError` if the connect string is invalid.
        """
        try:
            session = cls(
                connect_string,
                session_timeout_ms=session_timeout_ms,
                tracer=tracer,
                name=f"{process}-{name}" if process else name,
                connection_timeout_ms=connection_timeout_ms,
                retry_forever=retry_forever,
                bridge=bridge,
            )
        except ValueError as error:
            raise UserError(f"{connect_string!r} is not a ZooKeeper connect string: {error}") from error
        session._bridge.start()
        try:
            async with asyncio.timeout(connection_timeout_ms / 1000):
                await session._connected.wait()
                session._check_failure()
        except TimeoutError:
            fault = f" ({session._bridge.fault})" if session._bridge.fault else ""
            await session.close()
            raise Unavailable(
                f"no ZooKeeper at {connect_string} accepted a session within {connection_timeout_ms} ms{fault}. "
                "Is it running, and is the address right?"
            ) from None
        except BaseException:
            await session.close()
            raise
        return session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session, so that the server deletes its ephemeral znodes. Idempotent, also after a failed `open`.

        If no server answers within `CLOSE_WAIT_S`, the session ends by its timeout.
        """
        if self._closing is None:
            self._closing = self._loop.create_future()
            connected = self.connected
            self._bridge.stop_in_background(self._stopped)
            # Without a connection there is nobody to tell, but the thread may still have this loop close its socket.
            self._wait_for_close(_CLOSE_WAITS if connected else 1)
        await asyncio.shield(self._closing)

    def _wait_for_close(self, parts: int) -> None:
        if self._closing is not None and self._closing.done():
            return
        if parts:
            self._loop.call_later(CLOSE_WAIT_S / _CLOSE_WAITS, self._wait_for_close, parts - 1)
        else:
            self._closed()

    # -- state -----------------------------------------------------------------------------------------------

    def subscribe(self) -> asyncio.Queue[SessionChange]:
        """A queue of the state changes from now on. It is unbounded, since they are few."""
        queue: asyncio.Queue[SessionChange] = asyncio.Queue()
        self._listeners.append(queue)
        return queue

    async def wait_connected(self) -> None:
        """Wait until the session is CONNECTED. Raises `SessionClosed` if it is closed."""
        await self._connected.wait()
        if self.state is SessionState.CLOSED:
            raise SessionClosed(f"the session {self.name} was closed")
        self._check_failure()

    async def raise_failure(self) -> NoReturn:
        """Wait until a bug ends the session, and raise `SessionFailed`; forever if none does, also after `close`.

        A holder that may be waiting for nothing but the session's events learns of the bug only from this.
        """
        await self._has_failed.wait()
        raise self._failed() from self._failure

    def step_through(self, gate: StepGate) -> None:
        """Have all operations from now on pass this gate."""
        self._pipeline.gate = gate
        gate.attach(self._flow)

    def let_new_operations_go_first(self, is_awaited: Callable[[], bool]) -> None:
        """In every later new session, hold the operations that wait for it until the first new ones were sent.

        Only if `is_awaited()` then says that somebody is about to send one.
        """
        self._is_awaited = is_awaited

    @property
    def connected(self) -> bool:
        return self.state is SessionState.CONNECTED

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Session id and password. Another client can use them to end the session, as tests do to expire it."""
        return self._bridge.credentials

    # -- performing ------------------------------------------------------------------------------------------

    async def _perform(self, operation: Operation) -> Any:
        repeated = False
        while True:
            if self._closing is not None:
                raise SessionClosed("the session was closed", operation.path)
            self._check_failure()
            if operation.only_in and (operation.only_in != self.session_id or self.state is SessionState.LOST):
                raise SessionExpired(f"session {session_name(operation.only_in)} is over", operation.path)
            attempt = Attempt(operation, self._loop.create_future())
            if self._pipeline.holding and not repeated:
                self._loop.call_soon(self._let_go)  # after the other operations of this turn
            self._pipeline.append(attempt, repeated=repeated)
            self._flow()
            if not self.connected:
                self._start_connection_timer()
            try:
                return await attempt.future
            except RETRIED:
                if not self._retry_forever:
                    raise
                repeated = True

    def _let_go(self) -> None:
        self._pipeline.let_go()
        self._flow()

    def _flow(self) -> None:
        """Send what may be sent now, and see to it that it is answered in time."""
        if self.connected:
            self._pipeline.flow()
            if self._pipeline.oldest is not None:
                self._answers.expect()

    def _finished(self, attempt: Attempt, error: ZooKeeperError | None, zxid: int) -> None:
        operation = attempt.operation
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
            latency_ns=attempt.latency_ns,
        )
        if isinstance(error, SessionExpired) and self.connected:
            # A server that accepted our connection just as the session ended keeps the connection: it answers reads
            # and pings but refuses every write, forever. Reconnecting makes it report the expiry.
            self._bridge.break_connection()
        granted = error is None or (operation.op == "exists" and isinstance(error, NoNode))
        if operation.watch is not None and granted:
            self._watches.arm(operation.op, operation.path, operation.watch)

    def _start_connection_timer(self) -> None:
        if not self._retry_forever and self._connection_timer is None:
            self._connection_timer = self._loop.call_later(self._connection_timeout_s, self._give_up)

    def _give_up(self) -> None:
        """Fail all operations because the connection timeout has passed; only without `retry_forever`."""
        self._connection_timer = None
        if not self.connected:
            self._pipeline.fail_all(
                ConnectionLost, f"no ZooKeeper at {self.connect_string} for {self._connection_timeout_s:g} s"
            )

    def _answer_s(self) -> float:
        """How long a server that is there may take to answer.

        One that is silent altogether is noticed sooner, as a lost connection, within the session timeout.
        """
        least_s = ANSWER_S if self._retry_forever else self._connection_timeout_s
        return max(least_s, self.negotiated_timeout_ms / 1000)

    def _unanswered(self) -> None:
        self._pipeline.fail_all(
            Unanswered, f"ZooKeeper at {self.connect_string} has not answered within {self._answer_s():g} s"
        )
        self._bridge.break_connection()  # its later replies would be for nobody

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failed() from self._failure

    def _failed(self) -> SessionFailed:
        return SessionFailed(
            f"the connection to ZooKeeper at {self.connect_string} has ended by an internal error: "
            f"{type(self._failure).__name__}: {self._failure}"
        )

    # -- events, in the server's order -----------------------------------------------------------------------

    def _handle(self, event: SessionEvent) -> None:
        match event:
            case Answered():
                self._seen_zxid = max(self._seen_zxid, event.zxid)
                self._pipeline.answer(event)
                self._flow()
            case Notified():
                self._notified(event)
            case StateChanged():
                self._state_changed(event)
            case Failed():
                # kazoo has said before that the session is LOST.
                self._failure = event.error
                self._has_failed.set()
                self._pipeline.fail_all(SessionFailed, str(self._failed()))
                self._connected.set()

    def _notified(self, notified: Notified) -> None:
        fired = WatchFired(notified.path, EVENTS[notified.kind], notified.zxid)
        self._tracer.emit("zk_notified", member=self.member, path=fired.path, event=str(fired.event), zxid=fired.zxid)
        for callback in self._watches.fire(fired):
            # Called by the loop, so that a callback that raises does not affect the remaining events.
            self._loop.call_soon(callback, fired)

    def _state_changed(self, changed: StateChanged) -> None:
        if self._closing is not None:
            return  # `close` emits the final state
        state = SessionState[changed.state]
        new_session = state is SessionState.CONNECTED and changed.session_id != self.session_id
        if state is SessionState.CONNECTED:
            self.session_id = changed.session_id
            self.negotiated_timeout_ms = changed.negotiated_timeout_ms
            if new_session and self.negotiated_timeout_ms != self.requested_timeout_ms:
                log.warning(
                    "session %s requested a timeout of %d ms, ZooKeeper granted %d ms (its min/maxSessionTimeout)",
                    self.name,
                    self.requested_timeout_ms,
                    self.negotiated_timeout_ms,
                )
        if new_session and self._is_awaited():
            self._pipeline.hold()
        self._become(SessionChange(state, self.session_id, new_session))
        if state is SessionState.CONNECTED:
            self._flow()
            return
        if state is SessionState.LOST and not self._retry_forever:
            self._pipeline.fail_all(SessionExpired, "the session has expired")
        elif state is SessionState.LOST:
            self._pipeline.fail_bound(self.session_id, SessionExpired, "the session has expired")
        self._start_connection_timer()
        for fired, callback in self._watches.drop_all(self._seen_zxid):
            self._loop.call_soon(callback, fired)

    def _become(self, change: SessionChange) -> None:
        self.state = change.state
        self._tracer.emit(
            "session_changed", member=self.member, state=str(change.state), session=session_name(change.session_id)
        )
        if self.connected or change.state is SessionState.CLOSED:
            self._connected.set()
            if self._connection_timer is not None:
                self._connection_timer.cancel()
                self._connection_timer = None
        else:
            self._connected.clear()
        for queue in self._listeners:
            queue.put_nowait(change)

    def _stopped(self) -> None:
        """Kazoo has ended; called in another thread."""
        # An interrupt may have ended the loop meanwhile.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closed)

    def _closed(self) -> None:
        assert self._closing is not None
        if self._closing.done():
            return
        self._pipeline.fail_all(SessionClosed, "the session was closed")
        self._become(SessionChange(SessionState.CLOSED, self.session_id))
        self._closing.set_result(None)
