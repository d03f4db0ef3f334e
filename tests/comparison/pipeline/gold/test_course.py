"""What was delivered, delivered again, and left to do, interval by interval."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.gold.course import COURSE_SCHEMA, course_table
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import RunSpan
from comparison.pipeline.silver.course import intervals_of
from comparison.results.causes import INTERVALS_MAX
from tests.support.trace.traces import MS, e, tables, traced_run


def acked(at_ms: float, first: int, last: int, p: int = 0) -> dict[str, Any]:
    return e(at_ms, "runner", "records_acked", p=p, first=first, last=last, serial_first=first, serial_last=last)


def polled(at_ms: float, first: int, last: int, process: str = "m1", p: int = 0) -> dict[str, Any]:
    return e(at_ms, process, "records_delivered", p=p, first=first, last=last, member=process, stream=0)


def committed(at_ms: float, offset: int, p: int = 0) -> dict[str, Any]:
    return e(at_ms, "observer", "offset_written", group="g", p=p, offset=offset, by="m1", epoch=1)


def course(*events: dict[str, Any], until_ms: float = 400) -> list[tuple[Any, ...]]:
    """(delivered, duplicates, undelivered, lag) in each 100 ms from 0."""
    started = [e(0, name, "member_started", group="g", member=name, stream=0) for name in ("m1", "m2")]
    steady, end = e(0, "runner", "stage_entered", stage="steady"), e(until_ms, "runner", "stage_entered", stage="final")
    traced = sorted([*started, steady, *events, end], key=lambda event: event["t_ns"])
    found, _ = measure(traced_run(), tables(traced))
    table = course_table(found.course)
    assert table.schema == COURSE_SCHEMA
    assert [row["from_ns"] // MS for row in table.to_pylist()] == list(range(0, 100 * len(table), 100))
    names = ("delivered", "duplicates", "undelivered", "lag")
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_records_wait_for_delivery_and_for_a_commit() -> None:
    events = [acked(10, 0, 9), polled(120, 0, 3), polled(230, 4, 9), committed(240, 4), committed(350, 10)]
    assert course(*events) == [(0, 0, 10, 10), (4, 0, 6, 10), (6, 0, 0, 6), (0, 0, 0, 0)]


def test_records_of_all_partitions_are_added_up() -> None:
    events = [acked(10, 0, 9), acked(20, 5, 9, p=1), polled(110, 0, 9), polled(120, 5, 6, p=1), committed(130, 10)]
    assert course(*events) == [(0, 0, 15, 15), (12, 0, 3, 5), (0, 0, 3, 5), (0, 0, 3, 5)]


def test_record_is_a_duplicate_whoever_had_it_before() -> None:
    events = [acked(10, 0, 9), polled(20, 0, 9), polled(110, 8, 9, "m2"), polled(120, 6, 7), polled(210, 6, 9, "m2")]
    assert [row[:2] for row in course(*events)] == [(10, 0), (4, 4), (4, 4), (0, 0)]


def test_record_handed_to_two_members_at_once_is_a_duplicate_once() -> None:
    assert course(acked(10, 0, 4), polled(110, 0, 4), polled(120, 0, 4, "m2"))[1] == (10, 5, 0, 5)


def test_committed_offset_that_moves_back_is_lag_again() -> None:
    events = [acked(10, 0, 9), polled(20, 0, 9), committed(110, 10), committed(210, 3)]
    assert [row[3] for row in course(*events)] == [10, 0, 7, 7]


def test_what_was_delivered_before_the_span_is_known_but_not_counted() -> None:
    events = [acked(-90, 0, 9), polled(-50, 0, 9), committed(-40, 6), polled(110, 8, 9)]
    assert course(*events) == [(0, 0, 0, 4), (2, 2, 0, 4), (0, 0, 0, 4), (0, 0, 0, 4)]


def test_without_acknowledgements_nobody_knows_what_is_left() -> None:
    assert course(polled(110, 0, 4))[1] == (5, 0, None, None)


def test_run_without_records_has_no_course() -> None:
    assert course() == []


def test_long_spans_have_longer_intervals_and_no_more_of_them() -> None:
    hour = intervals_of(RunSpan(start_ns=0, end_ns=3_600_000 * MS))
    assert (hour.length_ns, hour.count) == (6_000 * MS, INTERVALS_MAX)
    short = intervals_of(RunSpan(start_ns=5, end_ns=5 + 250 * MS))
    assert (short.length_ns, short.count) == (100 * MS, 3)
