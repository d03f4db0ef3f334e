"""Text becomes a number in one way, and whatever is no number of ours raises nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.decimals import DIGITS_MAX, decimal, signed_decimal
from kernel.zookeeper import paths


@given(st.integers(0, 10**DIGITS_MAX - 1))
def test_every_number_is_read_as_it_is_written(number: int) -> None:
    assert decimal(str(number)) == decimal(b"%d" % number) == signed_decimal(str(number)) == number
    assert signed_decimal(f"-{number}") == -number


@pytest.mark.parametrize(
    "text", ["", "²", "1²", "٣", "9" * 5_000, "9" * (DIGITS_MAX + 1), "1_0", "+1", " 1", "1\n", "--1"]
)
def test_other_text_is_no_number(text: str) -> None:
    assert decimal(text) is None
    assert signed_decimal(text) is None
    assert decimal(text.encode()) is None
    assert paths.parse_offset(f"/consumers/g/offsets/t/{text}") is None


@given(st.text(st.characters(categories=["Nd", "No"]), max_size=3))
def test_digits_of_other_scripts_are_no_number(text: str) -> None:
    assert (decimal(text) is None) == (not text.isascii() or not text)
