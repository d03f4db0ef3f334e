"""What a group skips when its position is set to the log's end, and what it lost apart from that."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold.partitions import measure_partitions
from comparison.pipeline.gold.run import summed
from comparison.pipeline.gold.skips import without
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.reduce import reduced
from comparison.results.keys import SERIALS, WHOLE_RUN
from tests.support.trace.traces import e, staged, traced_run


def joined(at_ms: float, process: str = "m1") -> dict:
    return e(at_ms, process, "member_started", group="g", member=process)


def reset(at_ms: float, offset: int, process: str = "m1", to: str = "latest") -> list[dict]:
    where = {"p": 0, "offset": offset, "member": process, "stream": 0}
    return [e(at_ms, process, "position_reset", reset=to, **where), e(at_ms, process, "position_started", **where)]


def poll(at_ms: float, first: int, last: int, process: str = "m1") -> dict:
    numbers = {"serial_first": first + 100, "serial_last": last + 100}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member=process, stream=0, **numbers)


def acked(at_ms: float, first: int, last: int) -> dict:
    numbers = {"serial_first": first + 100, "serial_last": last + 100}
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, **numbers)


def led(at_ms: float) -> dict:
    return e(at_ms, "broker-1", "leader_changed", p=0, leader=1, leader_epoch=0)


def committed(at_ms: float, offset: int) -> dict:
    return e(at_ms, "broker-1", "offset_written", p=0, group="g", offset=offset, by="m1", epoch=1)


def _found(tables: Tables, context: Context) -> list[Any]:
    """Of each skip its offsets, records and last commit; then the records that were lost."""
    figures, of_partitions = measure_partitions(reduced(tables, context)[0], context)
    coverage = summed(traced_run(), context.windows, of_partitions).coverage
    skips = [(each.first, each.end, each.records, each.committed) for each in figures.skips]
    serials = coverage.get((WHOLE_RUN, SERIALS))
    return [*skips, serials.gap if serials else 0]


FIRST = [joined(1), *reset(2, 10), poll(3, 10, 14)]
CASES: dict[str, tuple[list[dict], list[Any]]] = {
    "before the group": ([acked(0.5, 0, 9), *FIRST, acked(2.5, 10, 14)], [0]),
    "between two members": (
        [acked(0.5, 0, 9), *FIRST, acked(2.5, 10, 19), joined(5, "m2"), *reset(6, 20, "m2"), poll(7, 20, 21, "m2")],
        [(15, 20, 5, None), 0],
    ),
    "in the words of 0.8": ([*FIRST, *reset(6, 20, "m2", to="largest")], [(15, 20, 5, None), 0]),
    "to the beginning": ([*FIRST, *reset(6, 0, "m2", to="earliest"), poll(7, 0, 9, "m2")], [0]),
    "delivered by another one later": (
        [
            *FIRST,
            *reset(6, 20, "m2"),
            e(8, "m3", "position_started", p=0, offset=15, member="m3"),
            poll(9, 15, 19, "m3"),
        ],
        [0],
    ),
    "twice": ([*FIRST, *reset(6, 20, "m2"), *reset(7, 30, "m3")], [(15, 20, 5, None), (20, 30, 10, None), 0]),
    "an added partition": ([joined(1), led(2), *reset(3, 4), poll(4, 4, 8)], [(0, 4, 4, None), 0]),
    "without what was never acknowledged": (
        [acked(0.5, 0, 16), *FIRST, acked(5, 19, 21), *reset(6, 20, "m2"), poll(7, 20, 21, "m2")],
        [(15, 20, 3, None), 0],
    ),
    "although committed": ([*FIRST, committed(4, 15), *reset(6, 20, "m2")], [(15, 20, 5, 15), 0]),
    "lost behind the reset": (
        [acked(0.5, 0, 29), *FIRST, *reset(6, 20, "m2"), poll(7, 22, 29, "m2")],
        [(15, 20, 5, None), 2],
    ),
    "lost before what was delivered": (
        [acked(0.5, 0, 29), *FIRST, poll(4, 17, 18), *reset(6, 20, "m2"), poll(7, 20, 29, "m2")],
        [(19, 20, 1, None), 2],
    ),
}


def test_skipped_are_the_records_right_before_a_reset_to_the_end_that_nobody_was_handed() -> None:
    found = staged({name: events for name, (events, _) in CASES.items()}, _found)

    assert found == {name: expected for name, (_, expected) in CASES.items()}


@pytest.mark.parametrize(
    ("ranges", "left_out", "remain"),
    [
        ([(0, 10)], [], [(0, 10)]),
        ([(0, 10)], [(0, 10)], []),
        ([(0, 10)], [(3, 5)], [(0, 3), (5, 10)]),
        ([(0, 10), (20, 30)], [(5, 25)], [(0, 5), (25, 30)]),
        ([(0, 10)], [(0, 2), (2, 4), (9, 12)], [(4, 9)]),
    ],
)
def test_ranges_are_cut(ranges: list[tuple[int, int]], left_out: list[tuple[int, int]], remain: list[Any]) -> None:
    assert list(without(ranges, left_out)) == remain
