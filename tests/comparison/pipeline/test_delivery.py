"""Ranges of polls, joined where one continues the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline import delivery
from tests.support.traces import e, staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def poll(at_ms: float, first: int, last: int, *, process: str = "m1", serials: bool = True) -> dict:
    numbers = {"serial_first": first + 100, "serial_last": last + 100} if serials else {}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member="a", stream=0, **numbers)


def acked(at_ms: float, first: int, last: int) -> dict:
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, serial_first=first, serial_last=last)


def test_polls_that_continue_each_other_are_one_range(spark: SparkSession) -> None:
    cases = {
        "goes on": [poll(1, 0, 4), poll(2, 5, 5), poll(3, 6, 9)],
        "skips": [poll(1, 0, 4), poll(2, 6, 9)],
        "goes back": [poll(1, 0, 4), poll(2, 3, 9)],
        "another goes on": [poll(1, 0, 4), poll(2, 5, 9, process="m2")],
        "without numbers": [poll(1, 0, 4, serials=False)],
    }
    rows = staged(spark, cases, delivery.delivered_ranges)
    found = {
        case: sorted((row.view, row.low, row.high, row.owner[:2]) for row in of_case) for case, of_case in rows.items()
    }
    assert found == {
        "goes on": [("offsets", 0, 10, "m1"), ("serials", 100, 110, "m1")],
        "skips": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 6, 10, "m1"),
            ("serials", 100, 105, "m1"),
            ("serials", 106, 110, "m1"),
        ],
        "goes back": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 3, 10, "m1"),
            ("serials", 100, 105, "m1"),
            ("serials", 103, 110, "m1"),
        ],
        "another goes on": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 5, 10, "m2"),
            ("serials", 100, 105, "m1"),
            ("serials", 105, 110, "m2"),
        ],
        "without numbers": [("offsets", 0, 5, "m1")],
    }


def test_acknowledged_records_are_wanted_by_their_serials(spark: SparkSession) -> None:
    cases = {"acked": [acked(1, 0, 9), acked(2, 10, 19), acked(3, 30, 39)]}
    rows = staged(spark, cases, delivery.acked_ranges)["acked"]
    assert sorted((row.view, row.low, row.high) for row in rows) == [("serials", 0, 20), ("serials", 30, 40)]
