"""How the Java client connects again, and when it drops a connection, without a server."""

from __future__ import annotations

from random import Random

import pytest

from kernel.zookeeper.manners import JavaManners, KazooManners
from tests.support.time.manual_clock import ManualClock

A, B = ("127.0.0.1", 1), ("127.0.0.1", 2)


class Half(Random):
    def random(self) -> float:
        return 0.5


def connect(manners, server):
    """One attempt that succeeds; returns the pause before it."""
    pause_s = manners.pause_s(server)
    manners.opened()
    manners.greeted(6000)
    return pause_s


def test_first_connection_is_made_at_once():
    assert connect(JavaManners(Half(), ManualClock()), A) == 0


def test_single_server_is_tried_again_after_one_to_two_seconds():
    manners = JavaManners(Half(), ManualClock())
    connect(manners, A)
    assert [connect(manners, A) for _ in range(3)] == [pytest.approx(0.1 + 0.5 + 1.0)] * 3


def test_pauses_with_one_server_are_those_of_the_originals():
    manners = JavaManners(Random(1), ManualClock())
    connect(manners, A)
    pauses = [connect(manners, A) for _ in range(500)]
    assert 1.1 <= min(pauses) < 1.12
    assert 2.08 < max(pauses) < 2.1


def test_another_server_is_tried_without_the_extra_second():
    manners = JavaManners(Half(), ManualClock())
    connect(manners, A)
    assert manners.pause_s(B) == pytest.approx(0.6)
    assert manners.pause_s(A) == pytest.approx(1.6)  # a round over all servers has failed


def test_start_without_a_server_pauses_without_the_random_part():
    manners = JavaManners(Half(), ManualClock())
    assert [manners.pause_s(A) for _ in range(3)] == [0, pytest.approx(1.1), pytest.approx(1.1)]


def test_new_session_after_an_expiry_is_opened_at_once():
    manners = JavaManners(Half(), ManualClock())
    connect(manners, A)
    assert manners.pause_s(A) == pytest.approx(1.6)
    manners.opened()
    manners.greeted(0)
    assert connect(manners, A) == 0


def test_pauses_are_repeated_by_the_same_seed():
    def pauses(seed):
        manners = JavaManners(Random(seed), ManualClock())
        return [connect(manners, A) for _ in range(5)]

    assert pauses("x") == pauses("x") != pauses("y")


def test_without_pauses_only_the_silence_is_watched():
    clock = ManualClock()
    manners = JavaManners(None, clock)
    connect(manners, A)
    assert manners.pause_s(A) == 0
    clock.advance_ms(3_900)
    assert not manners.is_late()
    clock.advance_ms(200)
    assert manners.is_late()
    manners.heard()
    assert not manners.is_late()


def test_kazoo_neither_pauses_nor_drops_a_silent_connection():
    manners = KazooManners()
    connect(manners, A)
    assert manners.pause_s(A) == 0
    assert not manners.is_late()
