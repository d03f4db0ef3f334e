"""The bytes that carry the delay, and the page that documents them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.delayed.delay_data import DELAY_MS_MAX, delay_of, encode_delay
from coordinator.protocol import MalformedMetadata


@given(st.integers(0, DELAY_MS_MAX), st.binary(max_size=4))
def test_delay_comes_back_whatever_a_newer_writer_appends(delay_ms, appended):
    assert delay_of(encode_delay(delay_ms) + appended) == delay_ms


@pytest.mark.parametrize("nothing", [None, b""])
def test_assignment_without_user_data_asks_for_no_rejoin(nothing):
    assert delay_of(nothing) == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\0\0\0\1", "a delay in 5 bytes"),
        (b"\0\0\xff\xff\xff\xff", "a delay of -1 ms"),
        (b"\xff\xff\0\0\0\1", "version -1"),
    ],
)
def test_unreadable_delay_is_malformed(data, message):
    with pytest.raises(MalformedMetadata, match=message):
        delay_of(data)
