"""Runs of records: what a trace says of records that were delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.serials import serial_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.values import Record


def runs(records: Iterable[Record]) -> Iterable[tuple[int, int, int | None, int | None]]:
    """Yield (first offset, last offset, first serial, last serial) of runs in which both grow by one.

    A record without a serial is a separate run.
    """
    first = last = -1
    serial_first: int | None = None
    serial_last: int | None = None
    for record in records:
        serial = serial_of(record.value)
        expected = None if serial_last is None else serial_last + 1
        if first >= 0 and (record.offset, serial) == (last + 1, expected):
            last, serial_last = record.offset, serial
            continue
        if first >= 0:
            yield first, last, serial_first, serial_last
        first = last = record.offset
        serial_first = serial_last = serial
    if first >= 0:
        yield first, last, serial_first, serial_last
