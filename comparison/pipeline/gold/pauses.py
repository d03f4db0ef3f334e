"""What became of the pauses that applications asked for when their groups rebalanced.

A pause is the stream's own. In designs that stop everything a rebalance drops it, and the stream may get the partition
back at once: records come although nobody has resumed them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.measured_pauses import Pauses
from comparison.pipeline.silver.arrays import tuples_of
from comparison.pipeline.silver.hindrances import PAUSED, RESUMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.reduce import Bundle

_COLUMNS = ("t_ns", "seq", "kind", "process", "stream", "group", "topic", "partition")


def pauses_of(bundle: Bundle, context: Context) -> Pauses | None:
    """Those of these partitions; None if nothing was paused."""
    hindrances = bundle.hindrances.filter(pc.is_in(bundle.hindrances["kind"], pa.array((PAUSED, RESUMED))))
    if not len(hindrances):
        return None
    assigned: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for t_ns, seq, kind, process, stream, *key in sorted(tuples_of(bundle.claims, _COLUMNS), key=lambda row: row[:2]):
        if kind == "partitions_assigned":
            assigned[tuple(key)].append(((t_ns, seq), (process, stream)))
    rounds = {group: _Rounds(whole) for group, whole in context.whole_rounds.items()}
    dropped = moved = outlasting = 0
    since: dict[tuple[Any, ...], int] = {}
    rows = sorted(tuples_of(hindrances, (*_COLUMNS, "cause")), key=lambda row: (row[3], row[1]))
    for t_ns, seq, kind, process, stream, *key, cause in rows:
        pause = process, stream, *key
        if kind == PAUSED:
            since.setdefault(pause, t_ns)
            continue
        from_ns = since.pop(pause, None)
        if from_ns is None:
            continue
        outlasting += key[0] in rounds and rounds[key[0]].has_one(from_ns, t_ns)
        if cause == "rebalance":
            later = assigned[tuple(key)]
            place = bisect_left(later, ((t_ns, seq),))
            back = place < len(later) and later[place][1] == (process, stream)
            dropped, moved = dropped + back, moved + (not back)
    for (_, _, group, *_), from_ns in since.items():
        outlasting += group in rounds and rounds[group].has_one(from_ns, context.span.end_ns)
    return Pauses(dropped=dropped, moved=moved, outlasting=outlasting)


class _Rounds:
    """Whether one of a group's rounds was within a stretch of time."""

    def __init__(self, rounds: Sequence[tuple[int, int]]) -> None:
        self._from_ns = [from_ns for from_ns, _ in rounds]
        #: The earliest end of a round that begins at the same place in the list, or later.
        self._ends_ns = list(accumulate((until_ns for _, until_ns in reversed(rounds)), min))[::-1]

    def has_one(self, from_ns: int, until_ns: int) -> bool:
        place = bisect_left(self._from_ns, from_ns)
        return place < len(self._ends_ns) and self._ends_ns[place] <= until_ns


def added(parts: Iterable[Pauses | None]) -> Pauses | None:
    """Those of several sets of partitions together."""
    known = [part for part in parts if part is not None]
    return sum(known, Pauses()) if known else None
