"""Numbered records: how the load generator numbers what it produces, and how a consumer reads the number back.

Offsets cannot show that a broker stored a record twice or dropped one after it was acknowledged; a number that
travels in the record itself can. A numbered value is `<decimal serial>:<anything>`, and serials count from 0 in
each partition.
"""

from __future__ import annotations

#: More digits than any run produces: a longer "number" is somebody else's data.
_DIGITS_MAX = 18


def numbered_value(serial: int, padding: bytes = b"") -> bytes:
    """The value of the record numbered `serial` (>= 0)."""
    if serial < 0:
        raise ValueError(f"serials count from 0: {serial}")
    return b"%d:%b" % (serial, padding)


def serial_of(value: bytes | None) -> int | None:
    """The number of a record, or None for a record that was not numbered by us."""
    if value is None:
        return None
    digits, colon, _ = value[: _DIGITS_MAX + 1].partition(b":")
    if not colon or not digits.isdigit():
        return None
    return int(digits)
