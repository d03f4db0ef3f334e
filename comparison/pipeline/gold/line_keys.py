"""Partitions and owners as numbers, alike in all views of a set of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from comparison.pipeline.silver.naming import Names, keys_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

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
