"""Virtual time keeps to the wall clock, as far as the machine manages, and never makes up for what it missed."""

import pytest

from comparison.playground.simulated.pacing import NS_PER_S, STRETCH_S, Pacing


def played(pacing: Pacing, manages: float, seconds: float, tick_s: float = 0.1) -> tuple[Pacing, float]:
    """So many seconds on a machine that manages so many virtual ones in each; the virtual seconds that passed."""
    now_s, since_s, passed_ns = 0.0, tick_s, 0
    while now_s < seconds:
        went_ns = pacing.stretch_ns(since_s)
        took_s = went_ns / NS_PER_S / manages
        pacing = pacing.after(went_ns, took_s, since_s)
        since_s = max(took_s, tick_s)
        now_s, passed_ns = now_s + since_s, passed_ns + went_ns
    return pacing, passed_ns / NS_PER_S


@pytest.mark.parametrize("speed", [0.1, 1, 10])
def test_a_machine_that_manages_the_speed_keeps_to_it(speed: float) -> None:
    pacing, passed_s = played(Pacing().at_speed(speed), manages=20, seconds=60)
    assert passed_s == pytest.approx(60 * speed, rel=0.05)
    assert pacing.shown == 0


def test_a_machine_that_does_not_manage_it_says_what_it_does() -> None:
    pacing, passed_s = played(Pacing().at_speed(100), manages=8, seconds=60)
    assert passed_s == pytest.approx(60 * 8, rel=0.1)
    assert pacing.shown == pytest.approx(8, rel=0.1)


def test_what_was_missed_is_not_made_up_for() -> None:
    pacing, _ = played(Pacing(), manages=0.5, seconds=30)
    _, passed_s = played(pacing, manages=50, seconds=10)
    assert passed_s < 10.1


@pytest.mark.parametrize("manages", [0.2, 3, 40])
def test_no_stretch_takes_much_longer_than_a_command_may_wait(manages: float) -> None:
    pacing, _ = played(Pacing().at_speed(100), manages=manages, seconds=30)
    for length_ns in (pacing.stretch_ns(60), pacing.whole_stretch_ns()):
        assert length_ns / NS_PER_S / manages <= STRETCH_S * 1.01


def test_a_stretch_without_time_changes_nothing() -> None:
    assert Pacing().after(0, 0.0, 0.1) == Pacing()
