"""The goals of the assignor bench, each with its line, and measured between the right subjects."""

from __future__ import annotations

import pytest

from bench import assign_cases
from bench.assign import KAFKA_STICKY, KAFKA_UNIFORM, TARGET, WIRE, Figure, Options, Subject
from bench.assign_cases import FRESH, JOIN, LEAVE, STEPS, UNIFORM, Case
from bench.assign_report import goals

Found = dict[tuple[str, "Subject", str], Figure]
LINES = [f"uniform to Kafka's, {step}" for step in STEPS]


def measured(kind: str, cpu_s: dict[tuple[Subject, str], float]) -> Found:
    """Figures of one run each, whose wall-clock seconds are ten times the CPU seconds."""
    return {
        (kind, subject, step): Figure(subject, Case("1M", kind), step, {subject.form: [[10 * seconds, seconds]]})
        for (subject, step), seconds in cpu_s.items()
    }


def lines(kind: str, found: Found, options: Options | None = None) -> dict[str, tuple[float, float | None]]:
    return {name: (target, value) for name, target, value in goals(kind, found, options or Options())}


@pytest.mark.parametrize("kind", assign_cases.KINDS)
def test_uniform_has_a_goal_in_each_step_of_every_kind(kind: str) -> None:
    cpu_s = {(TARGET, FRESH): 0.1, (TARGET, LEAVE): 0.3, (TARGET, JOIN): 0.2}
    cpu_s |= {(KAFKA_UNIFORM, step): 0.2 for step in STEPS} | {(KAFKA_STICKY, step): 7.0 for step in STEPS}
    shown = lines(kind, measured(kind, cpu_s))
    assert [shown[line] for line in LINES] == [
        (1.0, pytest.approx(0.5)),
        (1.0, pytest.approx(1.5)),
        (1.0, pytest.approx(1.0)),
    ]


def test_goal_is_not_measured_without_kafkas_figure() -> None:
    shown = lines(UNIFORM, measured(UNIFORM, {(TARGET, FRESH): 0.1, (KAFKA_STICKY, FRESH): 0.2}))
    assert [shown[line] for line in LINES] == [(1.0, None)] * 3


def test_wire_is_still_held_beside_the_sticky_assignor() -> None:
    shown = lines(UNIFORM, measured(UNIFORM, {(WIRE, LEAVE): 0.2, (KAFKA_STICKY, LEAVE): 0.8, (TARGET, LEAVE): 0.4}))
    assert shown["wire to Kafka sticky's assign(), leave"] == (0.5, pytest.approx(0.25))
    assert shown["wire to Kafka sticky's assign(), join"] == (0.5, None)
