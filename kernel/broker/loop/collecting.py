"""Python's garbage collector at moments of our choice.

A full collection looks at every object: a fifth of a second and more with a group of thousands, during which nobody
is served; and Python makes one whenever a quarter of the objects is new, that is while such a group comes. Here the
small collections go on as ever, and the full ones are postponed until the loop has been calm for a while. What is
garbage without a cycle does not wait for any of them.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.broker.loop.loop_figures import Stopwatch

#: Objects made and not freed before the youngest are looked at; so many such looks before those that survived are.
YOUNG, MIDDLE = 2_000, 10
#: Looks at the middle ones after which a full collection is due, as in Python; and when it waits for no calm.
DUE, OVERDUE = 10, 2_000
#: Calm: in so many periods on end the loop was busy for a small part of the time.
PERIOD_S, CALM_PERIODS, CALM_SHARE = 1.0, 30, 0.2


class CalmCollector:
    """From `start` to `stop`, which leaves the collector as it was."""

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
        """What there is by now is mostly code, and stays: it is looked at no more."""
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
        """`looks` at the middle ones have been made since the last full collection."""
        self._calm_periods = self._calm_periods + 1 if busy_share <= CALM_SHARE else 0
        if looks >= OVERDUE or (looks >= DUE and self._calm_periods >= CALM_PERIODS):
            self._calm_periods = 0
            self._collect()
