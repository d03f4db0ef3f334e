"""An event loop with simulated time: when nothing is ready it jumps to the next timer instead of waiting.

It is for code that waits with asyncio's own timers and touches no socket or thread. A test of many seconds takes
milliseconds, and every run is the same.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.support.time.manual_clock import ManualClock

T = TypeVar("T")


class _Jump(selectors.DefaultSelector):
    """A selector that never waits, but advances the clock by the timeout."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("all tasks wait, and no timer is set")
        if not ready and timeout:
            self._clock.advance_ms(max(1, -(-round(timeout * 1e6) // 1000)))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on `clock`, in whole milliseconds."""

    def __init__(self, clock: ManualClock) -> None:
        self._manual = clock
        super().__init__(_Jump(clock))

    def time(self) -> float:
        return self._manual.monotonic_ns() / 1e9


def run_virtually(main: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """asyncio.run in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)
