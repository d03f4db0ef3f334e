"""The machine's timers on the event loop: one heap and one scheduled call for all."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING

from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.effects import TimerKey
    from kernel.clock import Clock


#: Thousands of members that joined together have timers due together; other work runs between this many.
FIRED_PER_TURN = 100


class Timers:
    """Calls `fire(key)` when a timer is due. A moved or cancelled timer leaves a dead entry in the heap."""

    def __init__(self, clock: Clock, fire: Callable[[TimerKey], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._due: dict[TimerKey, tuple[int, int]] = {}  # key -> (at_ms, number of the valid entry)
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._numbers = itertools.count()
        self._wakeup: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: TimerKey, at_ms: int) -> None:
        number = next(self._numbers)
        self._due[key] = (at_ms, number)
        heapq.heappush(self._heap, (at_ms, number, key))
        if self._heap[0][1] == number:
            self._wake_at(at_ms)
        if len(self._heap) > 64 + 4 * len(self._due):
            self._heap = [(at, number, key) for key, (at, number) in self._due.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        self._due.pop(key, None)

    def close(self) -> None:
        self._due.clear()
        self._heap.clear()
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None

    def _wake_at(self, at_ms: int) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
        delay_s = max(at_ms * NS_PER_MS - self._clock.monotonic_ns(), 0) / 1e9
        self._wakeup = asyncio.get_running_loop().call_later(delay_s, self._fire_due)

    def _fire_due(self) -> None:
        self._wakeup = None
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        try:
            for _ in range(FIRED_PER_TURN):
                if not self._heap or self._heap[0][0] > now_ms:
                    break
                at_ms, number, key = heapq.heappop(self._heap)
                if self._due.get(key) == (at_ms, number):
                    del self._due[key]
                    self._fire(key)
        finally:  # even if one fails, the others must fire
            if self._heap and self._wakeup is None:
                self._wake_at(self._heap[0][0])
