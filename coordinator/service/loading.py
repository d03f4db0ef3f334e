"""Loading large partitions on the event loop: in pieces between which other work runs, without garbage collections.

A full collection visits all objects in one go: 50 ms for 100,000 committed offsets, several times during a load, and
again whenever their number has grown by a quarter. None of them is garbage.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

from kernel.broker.loop.turns import BUDGET_S
from kernel.platform.garbage import collection_put_off

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Smaller loads stay with the garbage collector.
RECORDS_MIN = 10_000


class Loading:
    """All loads of one coordinator, one at a time: each concurrent load would take its share of every turn."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._lock = asyncio.Lock()
        self._records = 0  # loaded and not frozen yet
        self._is_kept = False

    async def run(self, pieces: Iterator[int]) -> None:
        """Exhaust `pieces`, which yield the number of records loaded. Raises what they raise."""
        async with self._lock:
            with collection_put_off():
                self._records += await in_pieces(pieces, self._stopwatch)
                if self._records >= RECORDS_MIN:
                    gc.freeze()
                    self._records, self._is_kept = 0, True

    def given_up(self) -> None:
        """A loaded partition is no longer needed: let the garbage collector find it."""
        if self._is_kept:
            gc.unfreeze()
            self._is_kept = False


async def in_pieces(pieces: Iterator[int], stopwatch: Callable[[], float]) -> int:
    """As `kernel.broker.loop.turns`, for work that a caller awaits. Return the sum of the pieces' items.

    Uses about `BUDGET_S` of each turn of the loop; a piece that has begun is finished.
    """
    total = 0
    end = stopwatch() + BUDGET_S
    for done in pieces:
        total += done
        if stopwatch() >= end:
            await asyncio.sleep(0)
            end = stopwatch() + BUDGET_S
    return total
