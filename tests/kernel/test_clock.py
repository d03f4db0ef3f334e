"""The wall clock of a process, which can be stepped without its monotonic clock."""

from __future__ import annotations

from kernel.clock import SystemClock


def test_a_step_of_the_wall_clock_applies_to_every_clock_of_the_process_and_to_no_timer() -> None:
    clock, other = SystemClock(), SystemClock()
    wall_ms, monotonic_ns = clock.wall_ms(), clock.monotonic_ns()
    try:
        SystemClock.step(-3_600_000)
        assert -3_600_000 <= other.wall_ms() - wall_ms < -3_500_000
        assert 0 <= other.monotonic_ns() - monotonic_ns < 100 * 1_000_000_000
    finally:
        SystemClock.step(3_600_000)
    assert clock.wall_ms() >= wall_ms
