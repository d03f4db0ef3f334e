"""What adding members costs at first, and when it has paid."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.catching_up import NAMES, scale_out_metrics
from comparison.pipeline.measured import ChangeWindow, CourseInterval, Measured, RunSpan, StageEntered

SECOND = 1_000_000_000


def course(*delivered: int, lag: int | None = 50) -> list[CourseInterval]:
    """Intervals of a second."""
    return [
        CourseInterval(
            from_ns=number * SECOND,
            until_ns=(number + 1) * SECOND,
            delivered=each,
            duplicates=0,
            undelivered=lag,
            lag=lag,
        )
        for number, each in enumerate(delivered)
    ]


def figures(intervals: list[CourseInterval], *, at_s: int = 3, change: str = "scale-out") -> dict[str, float | None]:
    ends: dict[str, Any] = {"settled_ns": None, "healed_ns": None, "until_ns": 99 * SECOND}
    window = ChangeWindow(window=0, change=change, round=1, members=8, from_ns=at_s * SECOND, **ends)
    drain = StageEntered(t_ns=8 * SECOND, stage="drain")
    span = RunSpan(start_ns=0, end_ns=20 * SECOND)
    return scale_out_metrics(Measured(span=span, changes=[window], course=intervals, runner=[drain]))


def test_dip_is_what_is_missing_at_most_and_break_even_when_it_has_been_made_up_for() -> None:
    found = figures(course(100, 100, 100, 0, 50, 200, 150, 200))
    assert found == {"lag_before": 50.0, "lag_record_s": 250.0, "dip_records": 150, "break_even_s": 4.0}


def test_what_is_never_made_up_for_has_no_break_even() -> None:
    found = figures(course(100, 100, 100, 0, 100, 100, 100, 100))
    assert (found["dip_records"], found["break_even_s"]) == (100, None)


def test_small_deficits_are_none() -> None:
    found = figures(course(100, 100, 100, 90, 100, 120, 100, 100))
    assert (found["dip_records"], found["break_even_s"]) == (0, 0.0)


def test_the_drain_does_not_count() -> None:
    found = figures(course(100, 100, 100, 0, 100, 100, 100, 100, 900))
    assert found["break_even_s"] is None


@pytest.mark.parametrize(
    ("intervals", "at_s", "change"),
    [([], 3, "scale-out"), (course(100, 100, 100, 100), 3, "join"), (course(100, 100), 0, "scale-out")],
)
def test_without_the_change_or_anything_before_it_nothing_is_known(
    intervals: list[CourseInterval], at_s: int, change: str
) -> None:
    assert figures(intervals, at_s=at_s, change=change) == dict.fromkeys(NAMES)


def test_lag_is_unknown_where_nobody_knows_the_logs() -> None:
    found = figures(course(100, 100, 100, 0, 200, 100, 100, 100, lag=None))
    assert (found["lag_before"], found["lag_record_s"], found["dip_records"]) == (None, None, 100)
