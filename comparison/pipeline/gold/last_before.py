"""Commits whose judgement is open because the clocks of different boots are only known to a tolerance.

Two rows of one boot have an order. Two rows of different boots have one only if they are further apart than the
tolerance. A row may be the last one before a moment if it is not certainly after it, and if no other row is certainly
between the two. What a commit is accused of must be true of every row that may be the last one before it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from comparison.pipeline.silver.arrays import ends, starts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


class Rows(NamedTuple):
    """Rows by key, with their places in time and the numbers of their boots."""

    keys: NDArray[np.int64]
    t_ns: NDArray[np.int64]
    seq: NDArray[np.int64]
    boots: NDArray[np.int64]

    def taken(self, rows: NDArray[np.int64]) -> Rows:
        return Rows(*(column[rows] for column in self))


class _OfBoot(NamedTuple):
    boot: int
    rows: NDArray[np.int64]
    t_ns: NDArray[np.int64]
    seq: NDArray[np.int64]


class _Span(NamedTuple):
    """The rows of one boot: `before` are certainly before the moment, and those from `until` certainly after it."""

    of: _OfBoot
    before: int
    until: int


class LastBefore:
    """Which of some known rows may be the last one before a moment."""

    def __init__(self, known: Rows, tolerance_ns: int, *, inclusive: bool = True) -> None:
        """`inclusive`: a row of the same boot at the very moment counts as before it."""
        self._tolerance_ns = tolerance_ns
        self._inclusive = inclusive
        order = np.lexsort((known.seq, known.t_ns, known.boots, known.keys))
        ordered = known.taken(order)
        by_key: defaultdict[int, list[_OfBoot]] = defaultdict(list)
        firsts, lasts = ends(starts(ordered.keys, ordered.boots))
        for low, high in zip(firsts.tolist(), (lasts + 1).tolist(), strict=True):
            boot = _OfBoot(int(ordered.boots[low]), order[low:high], ordered.t_ns[low:high], ordered.seq[low:high])
            by_key[int(ordered.keys[low])].append(boot)
        self._by_key: Mapping[int, Sequence[_OfBoot]] = by_key

    def of(self, asked: Rows, row: int) -> list[int]:
        """The known rows that may be the last one before this one; none if there may be none before it."""
        t_ns, seq, boot = int(asked.t_ns[row]), int(asked.seq[row]), int(asked.boots[row])
        spans = [self._span(each, t_ns, seq, boot) for each in self._by_key.get(int(asked.keys[row]), ())]
        if not any(span.before for span in spans):
            return []
        found: list[int] = []
        for span in spans:
            latest = (int(each.of.t_ns[each.before - 1]) for each in spans if each is not span and each.before)
            lows = (int(np.searchsorted(span.of.t_ns, t_ns - self._tolerance_ns)) for t_ns in latest)
            low = max(span.before - 1, 0, *lows)
            found += span.of.rows[low : span.until].tolist()
        return found

    def _span(self, each: _OfBoot, t_ns: int, seq: int, boot: int) -> _Span:
        if each.boot == boot:
            low, high = (int(np.searchsorted(each.t_ns, t_ns, side=side)) for side in ("left", "right"))
            at = low + int(np.searchsorted(each.seq[low:high], seq, side="right" if self._inclusive else "left"))
            return _Span(each, at, at)
        before = int(np.searchsorted(each.t_ns, t_ns - self._tolerance_ns, side="left"))
        return _Span(each, before, int(np.searchsorted(each.t_ns, t_ns + self._tolerance_ns, side="right")))
