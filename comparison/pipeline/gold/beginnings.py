"""When members first had partitions that nobody had before: those that were added to a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from comparison.pipeline.measured import Begun
from comparison.pipeline.silver.arrays import integers
from comparison.pipeline.silver.naming import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from comparison.pipeline.silver.context import Window


def begun_in(view: str, intervals: pa.Table, windows: Sequence[Window]) -> dict[tuple[int, str], Begun]:
    """By window: the partitions whose first interval of this view begins there; windows without any are left out."""
    keys, meanings = keys_of(intervals)
    first = np.full(len(meanings), np.iinfo(np.int64).max)
    np.minimum.at(first, keys, integers(intervals["from_ns"]))
    found = {}
    for window in windows:
        inside = first[(first >= window.from_ns) & (first < window.until_ns)]
        if len(inside):
            found[window.number, view] = Begun(partitions=len(inside), last_ns=int(inside.max()))
    return found


def added_begun(parts: Iterable[Mapping[tuple[int, str], Begun]]) -> dict[tuple[int, str], Begun]:
    """Those of several sets of partitions of one run together."""
    found: dict[tuple[int, str], Begun] = {}
    for part in parts:
        for place, each in part.items():
            before = found.get(place, Begun(partitions=0, last_ns=each.last_ns))
            found[place] = Begun(
                partitions=before.partitions + each.partitions, last_ns=max(before.last_ns, each.last_ns)
            )
    return found
