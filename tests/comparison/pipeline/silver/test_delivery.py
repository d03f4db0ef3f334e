"""Ranges of polls, joined where one continues the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.silver.deliveries import NO_SERIAL, acks_of, claims_of, delivered_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from tests.support.traces import e, rows, staged

if TYPE_CHECKING:
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context


def poll(at_ms: float, first: int, last: int, *, process: str = "m1", serials: bool = True) -> dict:
    numbers = {"serial_first": first + 100, "serial_last": last + 100} if serials else {}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member="a", stream=0, **numbers)


def acked(at_ms: float, first: int, last: int) -> dict:
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, serial_first=first, serial_last=last)


def _ranges(tables: Tables, context: Context) -> list[tuple[str, int, int, str]]:
    found = []
    delivered = delivered_of(tables, claims_of(tables, context), context, Naming(naming_rows(tables)))
    for each in rows(delivered.stretches):
        found.append(("offsets", each.first, each.end, each.process))
        if each.serial_first != NO_SERIAL:
            found.append(("serials", each.serial_first, each.serial_end, each.process))
    return sorted(found)


def test_polls_that_continue_each_other_are_one_range() -> None:
    cases = {
        "goes on": [poll(1, 0, 4), poll(2, 5, 5), poll(3, 6, 9)],
        "skips": [poll(1, 0, 4), poll(2, 6, 9)],
        "goes back": [poll(1, 0, 4), poll(2, 3, 9)],
        "another goes on": [poll(1, 0, 4), poll(2, 5, 9, process="m2")],
        "without numbers": [poll(1, 0, 4, serials=False)],
    }
    found = staged(cases, _ranges)
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


def test_acknowledged_records_are_wanted_by_their_serials() -> None:
    cases = {"acked": [acked(1, 0, 9), acked(2, 10, 19), acked(3, 30, 39)]}
    found = staged(cases, lambda tables, _: acks_of(tables))["acked"]
    assert sorted((row.first, row.end) for row in found) == [(0, 20), (30, 40)]
