"""An event loop that measures its turns, at half a microsecond each.

`run` is `asyncio.run` with such a loop.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import time
from typing import TYPE_CHECKING, Any, TypeVar

from kernel.broker.loop.collecting import CalmCollector
from kernel.broker.loop.loop_figures import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _MeasuredSelector(selectors.DefaultSelector):
    def __init__(self, stopwatch: Stopwatch) -> None:
        super().__init__()
        self._begin, self._end = stopwatch.begin, stopwatch.end

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._end()
        try:
            return super().select(timeout)
        finally:
            self._begin()


class MeasuredLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop with a stopwatch and postponed garbage collections."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch(time.perf_counter_ns)
        super().__init__(_MeasuredSelector(self.stopwatch))
        gc.callbacks.append(self.stopwatch.on_collection)
        self._collector = CalmCollector(self, self.stopwatch)
        self._collector.start()

    def close(self) -> None:
        if not self.is_closed():
            self._collector.stop()
            gc.callbacks.remove(self.stopwatch.on_collection)
        super().close()


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in a `MeasuredLoop`. For a process that runs only a broker."""
    with asyncio.Runner(loop_factory=MeasuredLoop) as runner:
        return runner.run(main)
