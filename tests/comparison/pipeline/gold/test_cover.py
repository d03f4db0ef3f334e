"""The sweep: gaps and overlaps of ranges on a line, of any unit."""

from __future__ import annotations

import numpy as np
import pytest

from comparison.pipeline.gold.cover import Ranges, first_overlap, overlaps_of, segments_of, united
from comparison.pipeline.measured import Coverage, FirstOverlap
from comparison.pipeline.silver.context import Window
from tests.support.trace.segments import coverage_of

KEY = ("g", "t", 0)
WHOLE = Window(-1, -100, 100)

#: Ranges held, ranges wanted, and the segments they make: (low, high, holders, is wanted, owner, other).
CASES: dict[str, tuple[list[tuple[str, int, int]], list[tuple[int, int]], list[tuple]]] = {
    "one owner": ([("a", 2, 8)], [], [(2, 8, 1, False, "a", None)]),
    "touching ranges do not overlap": (
        [("a", 0, 5), ("b", 5, 9)],
        [],
        [(0, 5, 1, False, "a", None), (5, 9, 1, False, "b", "a")],
    ),
    "an overlap has two owners": (
        [("a", 0, 6), ("b", 4, 9)],
        [],
        [(0, 4, 1, False, "a", None), (4, 6, 2, False, "b", "a"), (6, 9, 1, False, "b", "b")],
    ),
    "the other owner is one that still holds": (
        [("a", 0, 9), ("b", 1, 2), ("c", 5, 7)],
        [],
        [
            (0, 1, 1, False, "a", None),
            (1, 2, 2, False, "b", "a"),
            (2, 5, 1, False, "b", "a"),
            (5, 7, 2, False, "c", "a"),
            (7, 9, 1, False, "c", "a"),
        ],
    ),
    "gaps before, between and after": (
        [("a", 2, 4), ("a", 6, 8)],
        [(0, 10)],
        [
            (0, 2, 0, True, None, None),
            (2, 4, 1, True, "a", None),
            (4, 6, 0, True, "a", "a"),
            (6, 8, 1, True, "a", "a"),
            (8, 10, 0, True, "a", "a"),
        ],
    ),
    "wanted and never held": ([], [(0, 3)], [(0, 3, 0, True, None, None)]),
    "an empty range is ignored": ([("a", 3, 3)], [], []),
    "three at once": ([("a", 0, 4), ("b", 0, 4), ("c", 0, 4)], [], [(0, 4, 3, False, "c", "b")]),
}


def ranges(spans: list[tuple[int, int]], owners: list[int] | None = None) -> Ranges:
    lows, highs = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return Ranges(np.zeros(len(spans), dtype=np.int64), lows, highs, None if owners is None else np.array(owners))


@pytest.mark.parametrize("case", CASES)
def test_segments_of(case: str) -> None:
    held, wanted, expected = CASES[case]
    found = segments_of(ranges([each[1:] for each in held], [0] * len(held)), ranges(wanted))
    columns = (found.lows, found.highs, found.holders, found.is_wanted)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [row[:4] for row in expected]


def covered(
    held: list[tuple[str, int, int]], wanted: list[tuple[int, int]], *, tolerance: int = 0, window: Window = WHOLE
) -> Coverage:
    segments = segments_of(ranges([each[1:] for each in held], [0] * len(held)), ranges(wanted))
    (found,) = coverage_of(segments, overlaps_of(segments, tolerance), [window], [KEY]).values()
    return found


def first_of(held: list[tuple[str, int, int]], wanted: list[tuple[int, int]]) -> FirstOverlap | None:
    names = sorted({name for name, *_ in held})
    spans = ranges([each[1:] for each in held], [names.index(name) for name, *_ in held])
    return first_overlap(overlaps_of(segments_of(spans, ranges(wanted)), 0), spans, [KEY], names)


@pytest.mark.parametrize("case", [case for case, (*_, rows) in CASES.items() if any(row[2] == 2 for row in rows)])
def test_first_overlap_names_two_that_held(case: str) -> None:
    held, wanted, rows = CASES[case]
    first = next(row for row in rows if row[2] == 2)
    found = first_of(held, wanted)
    assert found is not None
    assert (found.low, found.high, {found.owner, found.other}) == (*first[:2], {*first[4:]})


def test_overlap_lasts_as_long_as_there_are_any_two_owners() -> None:
    found = covered([("a", 0, 10), ("b", 2, 5), ("c", 5, 9)], [(0, 10)])
    assert (found.doubled, found.doubled_longest, found.gap, found.unsettled_until) == (7, 7, 0, 9)
    three = covered([("a", 0, 10), ("b", 2, 9), ("c", 4, 6)], [])
    assert (three.doubled, three.doubled_longest) == (9, 7)


@pytest.mark.parametrize("third", [[], [("c", 4, 5)], [("c", 0, 4)]])
def test_tolerance_applies_to_the_whole_overlap(third: list[tuple[str, int, int]]) -> None:
    """Three units of double ownership are three, also when a third owner divides them."""
    two = [("a", 0, 6), ("b", 3, 9)]
    assert covered([*two, *third], [(0, 9)], tolerance=2).doubled >= 3
    assert covered(two, [(0, 9)], tolerance=3).doubled == 0
    assert covered(two, [(0, 9)], tolerance=3).unsettled_until is None
    brief_and_long = covered([("a", 0, 20), ("b", 3, 4), ("b", 8, 12)], [], tolerance=1)
    assert (brief_and_long.doubled, brief_and_long.doubled_longest) == (4, 4)


def test_overlap_is_clipped_to_its_window_but_not_its_tolerance() -> None:
    found = covered([("a", 0, 6), ("b", 3, 9)], [], tolerance=2, window=Window(0, 5, 20))
    assert (found.held, found.doubled, found.doubled_longest) == (4, 1, 1)


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ([(0, 5), (5, 9)], [(0, 9)]),
        ([(3, 8), (0, 5)], [(0, 8)]),
        ([(0, 9), (2, 4), (9, 12)], [(0, 12)]),
        ([(0, 2), (4, 6)], [(0, 2), (4, 6)]),
        ([], []),
    ],
)
def test_united_ranges_are_as_few_as_possible(cut: list[tuple[int, int]], whole: list[tuple[int, int]]) -> None:
    found = united(ranges(cut))
    assert list(zip(found.lows.tolist(), found.highs.tolist(), strict=True)) == whole


def test_ranges_of_two_partitions_are_not_united() -> None:
    found = united(Ranges(np.array([1, 0, 1]), np.array([5, 0, 0]), np.array([9, 50, 5])))
    assert list(zip(found.keys.tolist(), found.lows.tolist(), found.highs.tolist(), strict=True)) == [
        (0, 0, 50),
        (1, 0, 9),
    ]
