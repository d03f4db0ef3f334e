"""From any thread to the event loop: the outcomes of a session in one queue, in the order of the server."""

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

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """On the loop: what is put meanwhile is handled at the end, at once and without a wake-up."""
        with self._lock:
            self._woken = True
        try:
            yield
        finally:
            self._drain()

    def _drain(self) -> None:
        with self._lock:
            outcomes = list(self._waiting)
            self._waiting.clear()
            self._woken = False
        for outcome in outcomes:
            self._handle(outcome)
