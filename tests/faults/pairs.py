"""Covering arrays: a few rows that combine every two options in every two of their values.

Most faults of options need one value, or two together. So all pairs find almost what all combinations would, in tens of
rows instead of tens of thousands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

#: Two options with a value each, by index.
Pair = tuple[tuple[int, int], tuple[int, int]]


def covering_rows(options: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Rows with one value per option that contain each pair of values of two options at least once.

    Greedy and deterministic: each row begins with a missing pair, and takes, option by option, the value that adds most
    of the missing pairs.
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
        # Options with many values first: they have the most pairs to add.
        for place in sorted(set(range(len(names))) - row.keys(), key=lambda each: -sizes[each]):
            row[place] = max(range(sizes[place]), key=lambda value: sum(p in left for p in _pairs(row, place, value)))
        for pair in combinations(sorted(row.items()), 2):
            left.pop(pair, None)
        rows.append({names[place]: options[names[place]][value] for place, value in sorted(row.items())})
    return rows


def _pairs(row: Mapping[int, int], place: int, value: int) -> list[Pair]:
    """The pairs that a value forms with those already in the row."""
    return [((place, value), each) if place < each[0] else (each, (place, value)) for each in row.items()]
