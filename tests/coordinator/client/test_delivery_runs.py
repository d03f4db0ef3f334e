"""How delivered records are traced: runs in which offsets and serials both grow by one."""

from __future__ import annotations

import pytest

from coordinator.client.record_runs import runs
from kernel.serials import numbered_value
from kernel.values import Record


def record(offset: int, serial: int | None) -> Record:
    value = b"a value of somebody else's" if serial is None else numbered_value(serial)
    return Record("t", 0, offset, 0, None, value)


@pytest.mark.parametrize(
    ("delivered", "expected"),
    [
        ([], []),
        ([(5, 9)], [(5, 5, 9, 9)]),
        ([(5, 9), (6, 10), (7, 11)], [(5, 7, 9, 11)]),
        ([(5, 9), (7, 10)], [(5, 5, 9, 9), (7, 7, 10, 10)]),  # an offset without a record, as control batches make
        ([(5, 9), (6, 9)], [(5, 5, 9, 9), (6, 6, 9, 9)]),  # stored twice
        ([(5, 9), (6, 11)], [(5, 5, 9, 9), (6, 6, 11, 11)]),  # one is missing
        ([(5, None), (6, None)], [(5, 6, None, None)]),
        ([(5, None), (6, 0), (7, 1), (8, None)], [(5, 5, None, None), (6, 7, 0, 1), (8, 8, None, None)]),
    ],
)
def test_delivery_is_traced_in_runs(
    delivered: list[tuple[int, int | None]], expected: list[tuple[int, int, int | None, int | None]]
) -> None:
    assert list(runs([record(offset, serial) for offset, serial in delivered])) == expected
