"""Operations on groups of rows in columns, after the manner of SQL's windows; everything in the silver and gold stages
is made of these.

Rows that are sorted by a group (`order`) form stretches of equal keys. `starts` marks the first row of each, and the
other functions take such marks: they never look at keys again.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

#: A place that holds no row, in arrays of row numbers.
NOWHERE = -1
#: Text as Parquet's dictionaries have it.
ENCODED_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Numbers below it are sorted by their digits, which is much quicker than by comparing.
_FEW = 1 << 16


def integers(column: pa.ChunkedArray | pa.Array, null: int = 0) -> NDArray[np.int64]:
    """A column of numbers, with `null` for null."""
    filled = column.fill_null(null) if column.null_count else column
    return np.asarray(filled, dtype=np.int64)


def codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str | None]]:
    """A column of text as numbers, and the text for each; null is a value like any other."""
    if column.type == ENCODED_TEXT:
        encoded = column.unify_dictionaries().combine_chunks()
        texts = encoded.dictionary.to_pylist()
        return integers(encoded.indices, null=len(texts)), [*texts, None] if encoded.null_count else texts
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64), encoded.dictionary.to_pylist()


def tuples_of(table: pa.Table, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """The values of these columns, row by row."""
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def together(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each combination of values of several columns of numbers that are not negative."""
    combined = columns[0]
    size = int(combined.max(initial=0)) + 1
    for each in columns[1:]:
        column = each
        width = int(column.max(initial=0)) + 1
        if size * width >= 1 << 62:
            size, combined = _numbered(combined)
        if size * width >= 1 << 62:
            width, column = _numbered(column)
        combined, size = combined * width + column, size * width
    return combined


def _numbered(values: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
    """How many different values there are, and the number of each row's."""
    distinct, places = ranked(values)
    return len(distinct), places


def ranked(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values in order, and the place of each row's among them."""
    if not len(values) or values.min() < 0 or values.max() >= max(_FEW, len(values)):
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places
    is_there = np.zeros(int(values.max()) + 1, dtype=np.bool_)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def in_order(keys: NDArray[np.int64], then: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows by key, and those of one key by `then`: quick if they already are in the order of `then`."""
    few, numbers = ranked(keys)
    order = np.argsort(numbers.astype(np.uint16) if len(few) <= _FEW else numbers, kind="stable")
    sorted_keys, sorted_then = numbers[order], then[order]
    if ((sorted_then[1:] >= sorted_then[:-1]) | (sorted_keys[1:] != sorted_keys[:-1])).all():
        return order
    return np.lexsort((then, numbers))


def starts(*sorted_columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are the first with their values."""
    first = np.ones(len(sorted_columns[0]), dtype=np.bool_)
    if len(first) > 1:
        first[1:] = False
        for column in sorted_columns:
            first[1:] |= column[1:] != column[:-1]
    return first


def numbers(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The number of each row's stretch, from 0."""
    return np.cumsum(first) - 1


def ends(first: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last row of each stretch."""
    rows = np.flatnonzero(first)
    return rows, np.append(rows[1:], len(first)) - 1 if len(rows) else rows


def from_zero(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers moved up so that none is negative."""
    return values - int(values.min(initial=0))


def previous(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The row before each one in its stretch; NOWHERE for the first."""
    return np.where(first, NOWHERE, np.arange(len(first)) - 1)


def following(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The row behind each one in its stretch; NOWHERE for the last."""
    last = np.append(first[1:], True) if len(first) else first
    return np.where(last, NOWHERE, np.arange(len(first)) + 1)


def latest(marked: NDArray[np.bool_], first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The last marked row of the stretch up to each row, which may be it; NOWHERE if there is none."""
    rows = np.arange(len(marked))
    found = np.maximum.accumulate(np.where(marked, rows, NOWHERE)) if len(rows) else rows
    return np.where(found >= _first_rows(first), found, NOWHERE)


def running(values: NDArray[np.int64], first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The sum of the stretch's values up to each row, and with it."""
    if not len(values):
        return values
    total = np.cumsum(values)
    at = _first_rows(first)
    return total - (total[at] - values[at])


def total(values: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> int:
    """The sum of the values, each as often as `times` says, however large it is: 64 bits may be too few."""
    most = int(np.abs(values).max(initial=0)) * (1 if times is None else int(np.abs(times).max(initial=0)))
    if most * len(values) < 1 << 63:
        return int((values if times is None else values * times).sum())
    numbers = values.tolist()
    return sum(numbers) if times is None else sum(map(mul, numbers, times.tolist()))


def highest(values: NDArray[np.int64], first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The largest value of the stretch up to each row, and with it."""
    if not len(values):
        return values
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    # Every stretch has ranks above all of those before it, so that one running maximum serves them all.
    above = numbers(first) * len(values)
    found: NDArray[np.int64] = values[order][np.maximum.accumulate(rank + above) - above]
    return found


def lowest_over(
    lows: NDArray[np.int64], highs: NDArray[np.int64], values: NDArray[np.int64], size: int, otherwise: int
) -> NDArray[np.int64]:
    """For each place below `size` the lowest value of the ranges [low, high) over it, none of them empty, at most
    `otherwise`.

    A range is two blocks of a power of two, which may overlap; what is known of a block is known of its halves.
    """
    found = np.full(size, otherwise)
    levels = np.frexp((highs - lows).astype(np.float64))[1] - 1
    for level in range(int(levels.max(initial=-1)), -1, -1):
        width = 1 << level
        of_halves = found.copy()
        np.minimum(found[:-width], of_halves[width:], out=of_halves[width:])
        found, mine = of_halves, levels == level
        np.minimum.at(found, lows[mine], values[mine])
        np.minimum.at(found, highs[mine] - width, values[mine])
    return found


def _first_rows(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first row of each row's stretch."""
    return np.flatnonzero(first)[numbers(first)] if len(first) else np.zeros(0, dtype=np.int64)


def taken(values: NDArray[Any], rows: NDArray[np.int64], otherwise: Any) -> NDArray[Any]:
    """The values at these rows, and `otherwise` for NOWHERE."""
    if not len(values):
        return np.full(len(rows), otherwise)
    return np.where(rows == NOWHERE, otherwise, values[rows])


def as_of(asked: tuple[NDArray[np.int64], ...], known: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """For each row of `asked` the last row of `known` with the same key, at or before it; NOWHERE if there is none.

    Both are (key, time...): further columns decide between equal times.
    """
    count = len(known[0])
    side = np.repeat([0, 1], [count, len(asked[0])])
    joined = [np.concatenate(pair) for pair in zip(known, asked, strict=True)]
    order = np.lexsort((side, *reversed(joined)))
    is_known = order < count
    found = latest(is_known, starts(joined[0][order]))
    rows = np.full(len(order), NOWHERE)
    rows[order] = np.where(found == NOWHERE, NOWHERE, order[found])
    return rows[count:]
