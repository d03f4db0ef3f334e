"""Loading much on the event loop: in pieces between which others are served, and without the garbage collector.

A full collection goes through all objects in one piece: 50 ms for 100,000 committed offsets, several times while they
are loaded, and again whenever a quarter more has come. None of them is garbage.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel.broker.loop.turns import BUDGET_S

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is less is collected as everything else.
RECORDS_MIN = 10_000


class Loading:
    """All loads of one coordinator, one at a time: several at once would each take their share of every turn."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._records = 0  # that were loaded, and are not passed over by collections
        self._is_kept = False

    async def run(self, pieces: Iterator[int]) -> None:
        """Exhaust `pieces`, whose items are how many records each has loaded. What they raise, this raises."""
        async with self._lock:
            with _collection_put_off():
                self._records += await in_pieces(pieces)
                if self._records >= RECORDS_MIN:
                    gc.freeze()
                    self._records, self._is_kept = 0, True

    def given_up(self) -> None:
        """Something that was loaded is not needed any more: collections are to find it."""
        if self._is_kept:
            gc.unfreeze()
            self._is_kept = False


async def in_pieces(pieces: Iterator[int]) -> int:
    """As `kernel.broker.loop.turns`, for work that somebody waits for: the sum of what the pieces have done.

    It takes at most `BUDGET_S` in each turn of the loop; a piece that was begun is finished.
    """
    total = 0
    end = time.perf_counter() + BUDGET_S
    for done in pieces:
        total += done
        if time.perf_counter() >= end:
            await asyncio.sleep(0)
            end = time.perf_counter() + BUDGET_S
    return total


@contextmanager
def _collection_put_off() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
