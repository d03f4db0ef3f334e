"""A queue of coroutines that run one after the other: callbacks, and the commits and lookups between them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    Work = Callable[[], Coroutine[Any, Any, None]]


class TaskQueue:
    """Runs work in the order in which it was added; a failure does not stop the work after it.

    Calls `failed` with each exception, and `idle` whenever the queue has stopped.
    """

    def __init__(self, failed: Callable[[BaseException], None], idle: Callable[[], None]) -> None:
        self._failed = failed
        self._idle = idle
        self._waiting: deque[Work] = deque()
        self._running: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._running is not None or bool(self._waiting)

    def add(self, work: Work) -> None:
        self._waiting.append(work)
        self._start()

    async def join(self, timeout_s: float) -> None:
        """Wait until the queue is empty; cancel what runs when `timeout_s` has passed."""
        while (running := self._running) is not None:
            await asyncio.wait({running}, timeout=timeout_s)
            running.cancel()  # no effect on a finished task
            await asyncio.wait({running})

    def _start(self) -> None:
        if self._running is None and self._waiting:
            self._running = asyncio.create_task(self._run(), name="task queue")
            self._running.add_done_callback(self._finished)

    async def _run(self) -> None:
        while self._waiting:
            await self._waiting.popleft()()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
        self._start()
        self._idle()
