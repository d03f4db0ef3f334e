"""Partitions and owners as numbers, alike in all views of a set of partitions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from comparison.pipeline.silver.naming import Names, keys_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from comparison.pipeline.gold.cover import Ranges
    from comparison.pipeline.silver.naming import Key


class Keys:
    """Numbers are given in the order in which partitions are first met."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self.owners = Names()

    @property
    def meanings(self) -> list[Key]:
        return list(self._numbers)

    def number(self, key: Key) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def column(self, table: pa.Table) -> NDArray[np.int64]:
        places, meanings = keys_of(table)
        return np.array([self.number(key) for key in meanings], dtype=np.int64)[places] if meanings else places

    def by_partition(self, ranges: Ranges) -> dict[Key, list[tuple[int, int]]]:
        """Ranges that are numbered by these keys, by what the numbers mean; in order if they are."""
        found: defaultdict[Key, list[tuple[int, int]]] = defaultdict(list)
        meanings = self.meanings
        for number, low, high in zip(ranges.keys.tolist(), ranges.lows.tolist(), ranges.highs.tolist(), strict=True):
            found[meanings[number]].append((low, high))
        return found
