"""Full garbage collections wait for a calm loop, but not indefinitely."""

from __future__ import annotations

import asyncio
import gc
import time

from kernel.broker.loop.collecting import CALM_PERIODS, CALM_SHARE, DUE, OVERDUE, CalmCollector
from kernel.broker.loop.loop_figures import Stopwatch
from kernel.broker.loop.measured_loop import MeasuredLoop

BUSY, CALM = CALM_SHARE + 0.1, CALM_SHARE - 0.1


class Collected:
    """A collector whose periods end on request."""

    def __init__(self) -> None:
        self.times = 0
        self._loop = asyncio.new_event_loop()
        self.collector = CalmCollector(self._loop, Stopwatch(time.perf_counter_ns), self._collect)
        self._loop.close()

    def _collect(self) -> None:
        self.times += 1

    def periods(self, count: int, busy_share: float, looks: int) -> int:
        for _ in range(count):
            self.collector.period_ended(busy_share, looks)
        return self.times


def test_full_collection_runs_when_due_after_a_calm_time() -> None:
    collected = Collected()
    assert collected.periods(CALM_PERIODS - 1, CALM, DUE) == 0
    assert collected.periods(1, BUSY, DUE) == 0, "it starts again"
    assert collected.periods(CALM_PERIODS - 1, CALM, DUE) == 0
    assert collected.periods(1, CALM, DUE) == 1
    assert collected.periods(CALM_PERIODS - 1, CALM, DUE) == 1


def test_collection_does_not_run_before_it_is_due() -> None:
    collected = Collected()
    assert collected.periods(10 * CALM_PERIODS, CALM, DUE - 1) == 0
    assert collected.periods(1, CALM, DUE) == 1


def test_busy_loop_is_interrupted_eventually() -> None:
    collected = Collected()
    assert collected.periods(10 * CALM_PERIODS, BUSY, OVERDUE - 1) == 0
    assert collected.periods(1, BUSY, OVERDUE) == 1


def test_collector_is_left_as_it_was_found() -> None:
    before = gc.get_threshold()
    loop = MeasuredLoop()
    try:
        assert gc.get_threshold() != before
        assert gc.get_freeze_count() > 0
    finally:
        loop.close()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
    assert gc.isenabled()
