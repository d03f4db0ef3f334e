"""What adding members to a group that lags costs at first, and when it has paid: the dip, the break-even, the lag.

The measure is what the group would have delivered without the change: as much in each second as in the seconds before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.measured import StageEntered
from kernel.clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.measured import ChangeWindow, CourseInterval, Measured

SCALE_OUT = "scale-out"
#: The rate before the change is that of so many seconds at most, and of one at least.
BEFORE_S_MAX, BEFORE_S_MIN = 3, 1
#: What a group delivers in steps is not even: a smaller deficit than in this time is none.
EVEN_S = 0.25
NAMES = ("lag_before", "lag_record_s", "dip_records", "break_even_s")


def scale_out_metrics(measured: Measured) -> dict[str, float | None]:
    """The figures of the first `scale-out`; None for a run without one, or without deliveries before it."""
    unknown: dict[str, float | None] = dict.fromkeys(NAMES)
    window = next((each for each in measured.changes if each.change == SCALE_OUT), None)
    if window is None or not measured.course:
        return unknown
    before = [
        each
        for each in measured.course
        if window.from_ns - BEFORE_S_MAX * NS_PER_S <= each.from_ns and each.until_ns <= window.from_ns
    ]
    after = [each for each in measured.course if window.from_ns <= each.from_ns and each.until_ns <= _end(measured)]
    lasted = _seconds(before)
    if not after or lasted < BEFORE_S_MIN:
        return unknown
    rate = sum(each.delivered for each in before) / lasted
    return {**unknown, **_lag(before, after), **_deficit(window, after, rate)}


def _end(measured: Measured) -> int:
    """When the load ended."""
    stages = (each for each in measured.runner if isinstance(each, StageEntered))
    ended = (each.t_ns for each in stages if each.stage in ("drain", "final", "stop"))
    return min(ended, default=measured.span.end_ns if measured.span else 0)


def _seconds(intervals: Sequence[CourseInterval]) -> float:
    return sum(each.until_ns - each.from_ns for each in intervals) / NS_PER_S


def _lag(before: Sequence[CourseInterval], after: Sequence[CourseInterval]) -> Mapping[str, float | None]:
    if before[-1].lag is None or any(each.lag is None for each in after):
        return {}
    area = sum((each.lag or 0) * (each.until_ns - each.from_ns) for each in after) / NS_PER_S
    return {"lag_before": float(before[-1].lag), "lag_record_s": round(area, 1)}


def _deficit(window: ChangeWindow, after: Sequence[CourseInterval], rate: float) -> Mapping[str, float | None]:
    """How far the group falls behind what it would have delivered, at most, and when it has made up for it."""
    delivered, worst, even_ns = 0, 0.0, window.from_ns
    behind = False
    for each in after:
        delivered += each.delivered
        deficit = rate * (each.until_ns - after[0].from_ns) / NS_PER_S - delivered
        if deficit > max(worst, EVEN_S * rate):
            worst, behind = deficit, True
        elif behind and deficit <= 0:
            behind, even_ns = False, each.until_ns
    return {
        "dip_records": round(worst),
        "break_even_s": None if behind else round((even_ns - window.from_ns) / NS_PER_S, 1),
    }
