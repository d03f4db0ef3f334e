"""Covering arrays: a few rows that combine every two options in every two of their values.

Most faults of options need one value, or two together. All pairs therefore find what all combinations would, in tens of
rows instead of tens of thousands.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Two options with a value each, by their places.
Pair = tuple[tuple[int, int], tuple[int, int]]


def covering_rows(options: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Rows of one value an option, in which each pair of values of two options comes at least once.

    Greedy and deterministic: each row begins with a pair that has not come yet, and takes, option by option, the value
    that brings most of those that have not.
    """
    names = list(options)
    sizes = [len(options[name]) for name in names]
    left: dict[Pair, None] = {
        ((first, a), (second, b)): None
        for first, second in combinations(range(len(names)), 2)
        for a, b in product(range(sizes[first]), range(sizes[second]))
    }
    rows = []
    while left:
        row = dict(next(iter(left)))
        # Those with many values first: they have most pairs to bring.
        for place in sorted(set(range(len(names))) - row.keys(), key=lambda each: -sizes[each]):
            row[place] = max(range(sizes[place]), key=lambda value: sum(p in left for p in _pairs(row, place, value)))
        for pair in combinations(sorted(row.items()), 2):
            left.pop(pair, None)
        rows.append({names[place]: options[names[place]][value] for place, value in sorted(row.items())})
    return rows


def _pairs(row: Mapping[int, int], place: int, value: int) -> list[Pair]:
    """What a value brings together with those that the row has already."""
    return [((place, value), each) if place < each[0] else (each, (place, value)) for each in row.items()]
