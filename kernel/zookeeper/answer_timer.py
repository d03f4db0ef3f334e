"""Notice that a server is there and does not answer an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

#: It waits in so many parts: a pause of this process counts as one of them at most.
_WAITS = 30


class AnswerTimer:
    """Calls `overdue` once the same operation has been the `oldest` unanswered one for `limit_s()`.

    Answers come in the order of the requests, so the others need not be looked at.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        oldest: Callable[[], object | None],
        limit_s: Callable[[], float],
        overdue: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._oldest = oldest
        self._limit_s = limit_s
        self._overdue = overdue
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: object | None = None
        self._waits = 0

    def expect(self) -> None:
        """Begin to wait: an operation was sent."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._limit_s() / _WAITS, self._look)

    def _look(self) -> None:
        self._timer = None
        oldest = self._oldest()
        self._waits = self._waits + 1 if oldest is self._awaited else 1
        self._awaited = oldest
        if oldest is None:
            return
        if self._waits < _WAITS:
            self.expect()
        else:
            self._awaited = None
            self._overdue()
