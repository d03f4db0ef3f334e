"""The sweep beside its twin, which looks at every piece between two boundaries: any ranges, partitions and windows."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.gold.cover import Ranges, first_overlap, overlaps_of, segment_table, segments_of, united
from comparison.pipeline.measured import Coverage
from comparison.pipeline.silver.context import Window
from comparison.results.keys import BELIEVED, SERIALS
from tests.support.oracle import cover as oracle_cover
from tests.support.oracle.cover import WHOLE_RUN, Piece, coverage_over_time, pieces_of
from tests.support.properties import examples
from tests.support.trace.segments import coverage_of

KEYS = [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]
OWNERS = ["a", "b", "c"]
_PLACES = st.integers(0, 12)
#: (partition, from, until, owner); some are empty, some the wrong way round.
HELD = st.lists(st.tuples(st.integers(0, 2), _PLACES, _PLACES, st.integers(0, 2)), max_size=9)
WANTED = st.lists(st.tuples(st.integers(0, 2), _PLACES, _PLACES), max_size=5)
WINDOWS = st.tuples(_PLACES, _PLACES).map(lambda ends: Window(3, *ends))
TOLERANCES = st.integers(0, 4)
MANY = settings(max_examples=examples(300))

Held = list[tuple[int, int, int, int]]
Wanted = list[tuple[int, int, int]]


def ranges(rows: list[tuple[int, ...]]) -> Ranges:
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), -1).T if rows else np.zeros((4, 0), dtype=np.int64)
    return Ranges(*columns)


def lines(held: Held, wanted: Wanted) -> dict[tuple[str, str, int], list[Piece]]:
    return {
        name: pieces_of(
            [(low, high, OWNERS[owner]) for key, low, high, owner in held if key == number],
            [(low, high) for key, low, high in wanted if key == number],
        )
        for number, name in enumerate(KEYS)
    }


def swept(held: Held, wanted: Wanted, tolerance: int, windows: list[Window], view: str = BELIEVED) -> dict:
    segments = segments_of(ranges([*held]), united(ranges([*wanted]).not_empty()))
    return coverage_of(segments, overlaps_of(segments, tolerance), windows, KEYS, view)


@MANY
@given(HELD, WANTED, TOLERANCES, WINDOWS)
def test_coverage_is_that_of_the_pieces(held: Held, wanted: Wanted, tolerance: int, window: Window) -> None:
    whole = Window(WHOLE_RUN, -100, 100)
    expected: dict[tuple[int, str], Coverage] = {}
    for each in (whole, window):
        ends = (each.number, each.from_ns, each.until_ns)
        if (coverage := coverage_over_time(lines(held, wanted), ends, tolerance)) is not None:
            expected[each.number, BELIEVED], _ = coverage
    assert swept(held, wanted, tolerance, [whole, window]) == expected


@MANY
@given(HELD, TOLERANCES)
def test_first_overlap_is_that_of_the_pieces(held: Held, tolerance: int) -> None:
    holding = ranges([*held])
    overlaps = overlaps_of(segments_of(holding, Ranges.none()), tolerance)
    expected = coverage_over_time(lines(held, []), (WHOLE_RUN, -100, 100), tolerance)
    assert first_overlap(overlaps, holding, KEYS, OWNERS) == (expected[1] if expected else None)


@MANY
@given(HELD, WANTED)
def test_numbers_of_records_have_no_windows(held: Held, wanted: Wanted) -> None:
    """They are no times: the whole run has all of them, the other windows none."""
    windows = [Window(WHOLE_RUN, -100, 100), Window(0, 0, 12)]
    expected = coverage_over_time(lines(held, wanted), (WHOLE_RUN, -100, 100), 0)
    assert swept(held, wanted, 0, windows, SERIALS) == ({} if expected is None else {(WHOLE_RUN, SERIALS): expected[0]})


@MANY
@given(HELD, WANTED, TOLERANCES)
def test_table_of_segments_has_the_pieces_and_joins_those_that_are_alike(
    held: Held, wanted: Wanted, tolerance: int
) -> None:
    segments = segments_of(ranges([*held]), ranges([*wanted]))
    table = segment_table(BELIEVED, segments, overlaps_of(segments, tolerance), KEYS)
    names = ("low", "high", "holders", "is_wanted", "counts_as_overlap")
    found: defaultdict[tuple[str, str, int], list[tuple]] = defaultdict(list)
    for row in table.to_pylist():
        found[row["group"], row["topic"], row["partition"]].append(tuple(row[name] for name in names))
    expected = {key: alike_as_one(key, pieces, tolerance) for key, pieces in lines(held, wanted).items() if pieces}
    assert found == expected


def alike_as_one(key: tuple[str, str, int], pieces: list[Piece], tolerance: int) -> list[tuple]:
    counting = [each for each in oracle_cover.overlaps_of(key, pieces) if each.high - each.low > tolerance]
    rows: list[tuple] = []
    for piece in pieces:
        counts = any(each.low <= piece.low and piece.high <= each.high for each in counting)
        what = (len(piece.holders), piece.is_wanted, counts)
        if rows and rows[-1][2:] == what:
            rows[-1] = (rows[-1][0], piece.high, *what)
        else:
            rows.append((piece.low, piece.high, *what))
    return rows


@MANY
@given(WANTED)
def test_united_ranges_cover_the_same_places_without_touching(rows: Wanted) -> None:
    found = united(ranges([*rows]).not_empty())
    covered = {(key, place) for key, low, high in rows for place in range(low, high)}
    columns = list(zip(found.keys.tolist(), found.lows.tolist(), found.highs.tolist(), strict=True))
    assert [(key, place) for key, low, high in columns for place in range(low, high)] == sorted(covered)
    assert all((key, high) not in covered and (key, low - 1) not in covered for key, low, high in columns)
