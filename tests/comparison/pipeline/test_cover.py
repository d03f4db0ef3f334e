"""The sweep: gaps and overlaps of ranges on a line, of any unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from comparison.pipeline import cover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RANGES = "run int, view string, topic string, partition bigint, owner string, low bigint, high bigint"

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
    "three at once": (
        [("a", 0, 4), ("b", 0, 4), ("c", 0, 4)],
        [],
        [(0, 4, 3, False, "c", "b")],
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[tuple]]:
    names = list(CASES)

    def rows(kind: int) -> list[tuple]:
        return [
            (run, "v", "t", 0, *(each if kind == 0 else (None, *each)))
            for run, name in enumerate(names)
            for each in CASES[name][kind]
        ]

    ends = cover.held(spark.createDataFrame(rows(0), _RANGES)).unionByName(
        cover.wanted(spark.createDataFrame(rows(1), _RANGES))
    )
    segments: dict[str, list[tuple]] = {name: [] for name in names}
    for row in cover.segments(ends).orderBy("run", "low").collect():
        segments[names[row.run]].append((row.low, row.high, row.holders, row.is_wanted, row.owner, row.other))
    return segments


@pytest.mark.parametrize("case", CASES)
def test_segments_of(found: dict[str, list[tuple]], case: str) -> None:
    expected = CASES[case][2]
    assert [row[:4] for row in found[case]] == [row[:4] for row in expected]
    # Owners matter only where there are two, in any order.
    assert [{*row[4:]} for row in found[case] if row[2] == 2] == [{*row[4:]} for row in expected if row[2] == 2]
