"""Numbers in three digits, and ranges that cannot be misread."""

from __future__ import annotations

import pytest

from comparison.screen.brief_number import brief, brief_range


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4, "4"), (0.25, "0.25"), (999.4, "999"), (999.6, "1k"), (13_412, "13.4k"), (2.53e6, "2.53M")],
)
def test_number_has_three_digits(value: float, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.667, 6.29, "0.667-6.29"),
        (5120, 5240, "5.12k-5.24k"),
        (17.4, 16_300, "0.02k-16.3k"),
        (968, 20_700, "0.97k-20.7k"),
        (1.09, 1430, "0-1.43k"),
        (0, 5330, "0-5.33k"),
        (86_000, 2.5e6, "0.09M-2.5M"),
    ],
)
def test_both_ends_of_a_range_have_one_unit(low: float, high: float, text: str) -> None:
    assert brief_range(low, high) == text
