"""Serial numbers in records: the load generator writes them, and consumers read them back.

Offsets cannot show that a broker stored a record twice, or dropped it after the acknowledgement; a number within the
record can. A numbered value is `<decimal serial>:<anything>`, and serials count from 0 in each partition.
"""

from __future__ import annotations

from kernel.decimals import DIGITS_MAX, decimal


def numbered_value(serial: int, padding: bytes = b"") -> bytes:
    """The value of the record numbered `serial` (>= 0)."""
    if serial < 0:
        raise ValueError(f"serials count from 0: {serial}")
    return b"%d:%b" % (serial, padding)


def serial_of(value: bytes | None) -> int | None:
    """The serial number in a record's value, or None if it has none."""
    if value is None:
        return None
    digits, colon, _ = value[: DIGITS_MAX + 1].partition(b":")
    return decimal(digits) if colon else None
