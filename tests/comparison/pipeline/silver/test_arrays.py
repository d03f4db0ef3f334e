"""Operations on groups of rows, each compared with a naive twin that handles one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from comparison.pipeline.silver.arrays import (
    ENCODED_TEXT,
    NOWHERE,
    as_of,
    codes,
    ends,
    following,
    highest,
    in_order,
    integers,
    latest,
    lowest_over,
    numbers,
    previous,
    ranked,
    running,
    starts,
    taken,
    together,
    total,
)

INT64 = np.iinfo(np.int64)
#: Rows of a sorted table: (key, marked, value).
ROWS = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(-5, 5)), max_size=12).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)
#: Few different keys and times, so that there are ties.
TIMED = st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 2)), max_size=10)


def column(values: list[Any]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> tuple[NDArray[np.int64], ...]:
    return tuple(column(rows).reshape(len(rows), width).T)


def firsts(rows: list[tuple[int, bool, int]]) -> NDArray[np.bool_]:
    return starts(column([key for key, *_ in rows]))


def same(rows: list[tuple[int, bool, int]], place: int) -> range:
    """The rows of the stretch that contains `place`."""
    mine = [other for other, row in enumerate(rows) if row[0] == rows[place][0]]
    return range(mine[0], mine[-1] + 1)


@given(ROWS)
def test_stretches_are_runs_of_equal_keys(rows: list[tuple[int, bool, int]]) -> None:
    first = firsts(rows)
    assert first.tolist() == [same(rows, place)[0] == place for place in range(len(rows))]
    stretches = [len(list(each)) for _, each in groupby(rows, key=lambda row: row[0])]
    assert numbers(first).tolist() == [number for number, size in enumerate(stretches) for _ in range(size)]


@given(ROWS)
def test_neighbours_are_in_the_same_stretch(rows: list[tuple[int, bool, int]]) -> None:
    first, places = firsts(rows), range(len(rows))
    assert previous(first).tolist() == [at - 1 if at - 1 in same(rows, at) else NOWHERE for at in places]
    assert following(first).tolist() == [at + 1 if at + 1 in same(rows, at) else NOWHERE for at in places]


@given(ROWS)
def test_latest_marked_row_is_of_the_same_stretch(rows: list[tuple[int, bool, int]]) -> None:
    first, marked = firsts(rows), np.array([is_marked for _, is_marked, _ in rows], dtype=np.bool_)

    def last(place: int, until: int) -> int:
        return max((other for other in same(rows, place) if other < until and rows[other][1]), default=NOWHERE)

    assert latest(marked, first).tolist() == [last(place, place + 1) for place in range(len(rows))]


@given(ROWS)
def test_sums_are_those_of_one_stretch(rows: list[tuple[int, bool, int]]) -> None:
    first, values = firsts(rows), column([value for *_, value in rows])

    def total(among: range) -> int:
        return sum(rows[other][2] for other in among)

    stretches = [same(rows, place) for place in range(len(rows))]
    assert running(values, first).tolist() == [total(range(of[0], place + 1)) for place, of in enumerate(stretches)]


@given(ROWS)
def test_highest_value_and_ends_are_those_of_one_stretch(rows: list[tuple[int, bool, int]]) -> None:
    first, values = firsts(rows), column([value for *_, value in rows])
    stretches = [same(rows, place) for place in range(len(rows))]
    assert highest(values, first).tolist() == [
        max(rows[other][2] for other in range(of[0], place + 1)) for place, of in enumerate(stretches)
    ]
    begins, lasts = ends(first)
    distinct = sorted({(of[0], of[-1]) for of in stretches})
    assert list(zip(begins.tolist(), lasts.tolist(), strict=True)) == distinct


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.data())
def test_taken_values_are_those_of_the_rows(values: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(NOWHERE, len(values) - 1)))
    assert taken(column(values), column(rows), 99).tolist() == [99 if row == NOWHERE else values[row] for row in rows]


def test_nothing_is_taken_of_no_values() -> None:
    assert taken(column([]), column([NOWHERE, NOWHERE]), otherwise=7).tolist() == [7, 7]


@given(TIMED, TIMED)
def test_as_of_finds_the_last_known_row_up_to_a_moment(
    asked: list[tuple[int, ...]], known: list[tuple[int, ...]]
) -> None:
    found = as_of(columns(asked, 3), columns(known, 3))
    assert len(found) == len(asked)
    for (key, *moment), row in zip(asked, found.tolist(), strict=True):
        before = [
            (tuple(when), number) for number, (other, *when) in enumerate(known) if other == key and when <= moment
        ]
        # Of rows that are equal in everything, it is the last one.
        assert row == max(before, default=((), NOWHERE))[1]


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.one_of(st.integers(0, 3), st.sampled_from([1 << 20, 1 << 40, (1 << 60) - 1]))] * width),
            min_size=1,
            max_size=12,
        )
    )
)
def test_numbers_of_combinations_are_equal_where_all_columns_are(rows: list[tuple[int, ...]]) -> None:
    found = together(*columns(rows, len(rows[0]))).tolist()
    for one, number in zip(rows, found, strict=True):
        assert 0 <= number <= INT64.max
        assert [other == number for other in found] == [other == one for other in rows]


def test_no_rows_are_no_combinations() -> None:
    assert together(column([]), column([])).tolist() == []


#: Numbers as they come, and some that only comparing can sort.
MIXED = st.lists(st.one_of(st.integers(0, 4), st.sampled_from([-1, 70_000, INT64.max, INT64.min])), max_size=12)


@given(MIXED)
def test_ranks_are_those_of_numpy(values: list[int]) -> None:
    distinct, places = ranked(column(values))
    expected, expected_places = np.unique(column(values), return_inverse=True)
    assert (distinct.tolist(), places.tolist()) == (expected.tolist(), expected_places.tolist())


@given(MIXED, st.data(), st.booleans())
def test_rows_in_order_are_those_of_numpy(keys: list[int], data: st.DataObject, are_sorted: bool) -> None:
    then = data.draw(st.lists(st.integers(-2, 2), min_size=len(keys), max_size=len(keys)))
    then = sorted(then) if are_sorted else then
    assert in_order(column(keys), column(then)).tolist() == np.lexsort((column(then), column(keys))).tolist()


@pytest.mark.parametrize("type_", [pa.string(), ENCODED_TEXT])
@given(texts=st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "é"])), max_size=8), cut=st.integers(0, 8))
def test_codes_stand_for_text_and_null(texts: list[str | None], cut: int, type_: pa.DataType) -> None:
    chunks = pa.chunked_array([pa.array(part, pa.string()).cast(type_) for part in (texts[:cut], texts[cut:])])
    places, meanings = codes(chunks)
    assert [meanings[place] for place in places.tolist()] == texts
    assert len(set(meanings)) == len(meanings)


@pytest.mark.parametrize("null", [0, -1, INT64.min])
def test_integers_keep_64_bits_beside_null(null: int) -> None:
    values = [INT64.max, None, INT64.min + 1, (1 << 53) + 1]
    found = integers(pa.chunked_array([pa.array(values, pa.int64())]), null=null)
    assert found.dtype == np.int64
    assert found.tolist() == [null if value is None else value for value in values]


@given(st.lists(st.tuples(st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 40)), max_size=6))
def test_totals_do_not_wrap(rows: list[tuple[int, int]]) -> None:
    values, times = columns(rows, 2)
    assert total(values) == sum(value for value, _ in rows)
    assert total(values, times) == sum(value * often for value, often in rows)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 31), st.integers(-2, 9)), max_size=12))
def test_lowest_value_over_a_place_is_that_of_the_ranges_over_it(rows: list[tuple[int, int, int]]) -> None:
    size, otherwise = 32, 7
    lows, lengths, values = columns(rows, 3)
    highs = np.minimum(lows + lengths, size)
    expected = [
        min([otherwise, *(value for low, high, value in zip(lows, highs, values, strict=True) if low <= place < high)])
        for place in range(size)
    ]
    assert lowest_over(lows, highs, values, size, otherwise).tolist() == expected
