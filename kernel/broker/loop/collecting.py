"""Postpones full garbage collections until the loop is calm.

A full collection visits every object. With a group of thousands that takes a fifth of a second or more, during which no
client is served; and Python runs one whenever a quarter of the objects is new, that is, while such a group forms. Here
the small collections run as usual, and full ones wait until the loop has been calm for a while. Garbage without
reference cycles is freed immediately in any case.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.broker.loop.loop_figures import Stopwatch

#: Net allocations between collections of the youngest generation, and how many of these per middle collection.
YOUNG, MIDDLE = 2_000, 10
#: Middle collections after which a full one is due, as in Python, and after which it no longer waits for calm.
DUE, OVERDUE = 10, 2_000
#: Calm: the loop was busy for at most `CALM_SHARE` of each of this many consecutive periods.
PERIOD_S, CALM_PERIODS, CALM_SHARE = 1.0, 30, 0.2


class CalmCollector:
    """Controls the collector from `start` until `stop`, which restores it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, stopwatch: Stopwatch, collect: Callable[[], object] = gc.collect
    ) -> None:
        self._loop = loop
        self._stopwatch = stopwatch
        self._collect = collect
        self._before = gc.get_threshold()
        self._busy_ns = 0
        self._calm_periods = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Exclude existing objects, which are mostly code, from future collections."""
        gc.freeze()
        gc.set_threshold(YOUNG, MIDDLE, 1_000_000_000)
        self._busy_ns = self._stopwatch.busy_ns
        self._timer = self._loop.call_later(PERIOD_S, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            gc.set_threshold(*self._before)
            gc.unfreeze()

    def _look(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._look)
        busy_ns, self._busy_ns = self._stopwatch.busy_ns - self._busy_ns, self._stopwatch.busy_ns
        self.period_ended(busy_ns / (PERIOD_S * 1e9), gc.get_count()[2])

    def period_ended(self, busy_share: float, looks: int) -> None:
        """`looks` is the number of middle collections since the last full one."""
        self._calm_periods = self._calm_periods + 1 if busy_share <= CALM_SHARE else 0
        if looks >= OVERDUE or (looks >= DUE and self._calm_periods >= CALM_PERIODS):
            self._calm_periods = 0
            self._collect()
