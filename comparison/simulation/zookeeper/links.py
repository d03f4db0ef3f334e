"""One direction between two servers: messages arrive in order, each after a delay of its own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    import contextvars
    from collections.abc import Callable

Item = TypeVar("Item")


class Link(Generic[Item]):
    """First in, first out: what is sent later arrives no earlier.

    `deliver` runs in the receiver's context. While `is_cut()`, items wait, as bytes do that TCP sends again and again;
    call `resume` when that has changed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        delay_s: Callable[[], float],
        deliver: Callable[[Item], None],
        is_cut: Callable[[], bool],
        context: Callable[[], contextvars.Context],
    ) -> None:
        self._loop = loop
        self._delay_s = delay_s
        self._deliver = deliver
        self._is_cut = is_cut
        self._context = context
        self._waiting: deque[tuple[float, Item]] = deque()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def send(self, item: Item) -> None:
        self._last = max(self._loop.time() + self._delay_s(), self._last)
        self._waiting.append((self._last, item))
        self.resume()

    def resume(self) -> None:
        """Wait for the first item, one timer at a time: asyncio does not keep equal ones in order."""
        if self._timer is None and self._waiting and not self._is_cut():
            self._timer = self._loop.call_at(self._waiting[0][0], self._arrived, context=self._context())

    def clear(self) -> None:
        """Lose what is under way."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arrived(self) -> None:
        self._timer = None
        if self._waiting and not self._is_cut():
            _, item = self._waiting.popleft()
            self.resume()
            self._deliver(item)
