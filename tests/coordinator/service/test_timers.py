"""The coordinator's timers on the loop: they fire in order when they are due, unless moved or cancelled."""

from __future__ import annotations

import asyncio

from coordinator.groups.effects import TimerKey, TimerKind
from coordinator.service.timers import Timers
from kernel.clock import NS_PER_MS
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually


def key(name: str) -> TimerKey:
    return TimerKey(TimerKind.SESSION, "g", name)


def fired(*actions: tuple[str, int | None], wait_ms: int = 1_000) -> list[tuple[str, int]]:
    """Set (or, with None, cancel) timers in this order; returns which fired, and when in milliseconds."""
    clock = ManualClock()
    seen: list[tuple[str, int]] = []

    async def main() -> None:
        timers = Timers(clock, lambda k: seen.append((k.member_id, clock.monotonic_ns() // NS_PER_MS)))
        for name, at_ms in actions:
            if at_ms is None:
                timers.cancel(key(name))
            else:
                timers.set(key(name), at_ms)
        await asyncio.sleep(wait_ms / 1_000)
        timers.close()
        await asyncio.sleep(wait_ms / 1_000)

    run_virtually(main(), clock)
    return seen


def test_timers_fire_when_they_are_due_in_order():
    assert fired(("b", 20), ("a", 10), ("c", 20)) == [("a", 10), ("b", 20), ("c", 20)]


def test_moved_timer_fires_once_at_its_new_time():
    assert fired(("a", 10), ("b", 15), ("a", 30)) == [("b", 15), ("a", 30)]


def test_timer_moved_forward_fires_earlier():
    assert fired(("a", 30), ("a", 10)) == [("a", 10)]


def test_cancelled_timer_does_not_fire():
    assert fired(("a", 10), ("b", 20), ("a", None), ("nobody", None)) == [("b", 20)]


def test_nothing_fires_after_close():
    assert fired(("a", 10), ("b", 1_500)) == [("a", 10)]


def test_timers_moved_many_times_do_not_pile_up():
    async def main() -> None:
        timers = Timers(ManualClock(), lambda _: None)
        for at_ms in range(10_000):
            timers.set(key("a"), 1_000 + at_ms)
        assert len(timers) == 1
        assert len(timers._heap) < 100
        timers.close()

    run_virtually(main(), ManualClock())
