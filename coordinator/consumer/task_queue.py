"""What has to be waited for before the next thing may happen, one after the other in a task of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    Chore = Callable[[], Coroutine[Any, Any, None]]


class TaskQueue:
    """In the order in which they were added; one that fails does not keep the next from being done.

    `failed` is told of what a chore raised, `idle` whenever there is nothing left to do.
    """

    def __init__(self, failed: Callable[[BaseException], None], idle: Callable[[], None]) -> None:
        self._failed = failed
        self._idle = idle
        self._waiting: deque[Chore] = deque()
        self._working: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._working is not None or bool(self._waiting)

    def add(self, chore: Chore) -> None:
        self._waiting.append(chore)
        self._go_on()

    async def done(self, patience_s: float) -> None:
        """Until nothing is left; a chore that takes longer than this is cancelled."""
        while (working := self._working) is not None:
            await asyncio.wait({working}, timeout=patience_s)
            working.cancel()  # does nothing to one that is done
            await asyncio.wait({working})

    def _go_on(self) -> None:
        if self._working is None and self._waiting:
            self._working = asyncio.create_task(self._work(), name="chores")
            self._working.add_done_callback(self._worked)

    async def _work(self) -> None:
        while self._waiting:
            await self._waiting.popleft()()

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
        self._go_on()
        self._idle()
