"""Names with numbers in them are sorted as people count, whatever is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comparison.screen.natural_order import natural


@given(st.lists(st.integers(0, 10**30)))
def test_names_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    assert sorted((f"m{number}" for number in numbers), key=natural) == [f"m{number}" for number in sorted(numbers)]


def test_names_with_thousands_of_digits_or_digits_of_other_scripts_have_a_place() -> None:
    long = "m" + "9" * 5_000
    assert sorted([long, "m²", "m10", "m2", "m1.2", "m1", "m٣"], key=natural)[:5] == ["m1", "m1.2", "m2", "m10", long]
