"""Waiting for a condition: what counts as waiting, and what is said when it took too long."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from kernel import waiting
from kernel.waiting import WaitTimeout, until, wait_until


class Clock:
    """A clock that only pauses and conditions move; every pause takes `late_s` longer than it was to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, late_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.late_s = late_s
        mine = SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.sleep)
        monkeypatch.setattr(waiting, "time", mine)  # for this module alone: other threads sleep, too

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.late_s

    def at_look(self, number: int, takes_s: float = 0.0) -> Callable[[], bool]:
        """A condition that becomes true at that look, each of which takes so long."""
        looks = 0

        def condition() -> bool:
            nonlocal looks
            looks += 1
            self.now_s += takes_s
            return looks >= number

        return condition


def test_a_condition_is_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert wait_until(clock.at_look(10), 10, "it", every_s=1)
    with pytest.raises(WaitTimeout, match=r"timed out after 10 s waiting for it$"):
        wait_until(clock.at_look(13), 10, "it", every_s=1)


def test_a_process_that_is_stopped_for_longer_than_the_timeout_still_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, late_s=60)
    assert wait_until(clock.at_look(3), 5, "it")
    with pytest.raises(WaitTimeout):  # but not for ever
        wait_until(clock.at_look(30), 5, lambda: "it")


def test_what_the_condition_itself_takes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with pytest.raises(WaitTimeout):
        wait_until(clock.at_look(3, takes_s=3), 5, "it", every_s=0)


def test_waiting_without_a_pause_ends() -> None:
    with pytest.raises(WaitTimeout):
        wait_until(lambda: time.monotonic() < 0, 0.05, "it", every_s=0)


async def test_a_loop_waits_for_conditions_and_for_coroutines() -> None:
    async def looked_at() -> str:
        return "found"

    assert await until(looked_at, 1, "it") == "found"
    assert await until(lambda: "seen", 1, "it") == "seen"
    with pytest.raises(WaitTimeout, match="waiting for a reason"):
        await until(lambda: False, 0.05, lambda: "a reason", every_s=0.01)
