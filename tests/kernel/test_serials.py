"""Numbers of records survive a round trip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.serials import numbered_value, serial_of


@given(st.integers(min_value=0, max_value=10**18 - 1), st.binary(max_size=40))
def test_a_serial_is_read_back_whatever_follows_it(serial: int, padding: bytes) -> None:
    assert serial_of(numbered_value(serial, padding)) == serial


@pytest.mark.parametrize("value", [None, b"", b":", b"12", b"-1:x", b"1.5:x", b"x1:2", b"9" * 19 + b":", "²:".encode()])
def test_a_value_that_we_did_not_number_has_no_serial(value: bytes | None) -> None:
    assert serial_of(value) is None


def test_a_negative_serial_is_refused() -> None:
    with pytest.raises(ValueError, match="count from 0"):
        numbered_value(-1)
