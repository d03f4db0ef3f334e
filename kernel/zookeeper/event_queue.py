"""The events of a session, and the queue that carries them from any thread to the event loop in the server's order."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator


class Answered(NamedTuple):
    """A request was answered or failed. `value` is valid if `error` is None."""

    token: object
    value: Any
    error: BaseException | None
    zxid: int


class Notified(NamedTuple):
    """The server sent a watch notification; `kind` is its number in the protocol (1 created ... 4 children)."""

    kind: int
    path: str
    zxid: int | None


class StateChanged(NamedTuple):
    """kazoo's new state, its session, and the timeout that the server granted."""

    state: str  #: CONNECTED, SUSPENDED or LOST
    session_id: int
    negotiated_timeout_ms: int


class Failed(NamedTuple):
    """kazoo's thread has ended by an error, so nothing more will come."""

    error: Exception


SessionEvent = Answered | Notified | StateChanged | Failed


class EventQueue:
    """A FIFO queue from any thread to one event loop. Events that arrive together share a wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[SessionEvent], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._lock = threading.RLock()
        self._waiting: deque[SessionEvent] = deque()
        self._woken = False

    def put(self, event: SessionEvent) -> None:
        with self._lock:
            self._waiting.append(event)
            if self._woken:
                return
            self._woken = True
        # The loop may have ended meanwhile; then the event is dropped.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._drain)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """On the loop: handle the events of this block at its end, without a wake-up."""
        with self._lock:
            self._woken = True
        try:
            yield
        finally:
            self._drain()

    def _drain(self) -> None:
        with self._lock:
            events = list(self._waiting)
            self._waiting.clear()
            self._woken = False
        for event in events:
            self._handle(event)
