"""A queue for bulk work, run in pieces with a time budget, so that urgent requests are served in between.

An event loop is as fair as its longest turn is short. Bulk work goes here: the responses of thousands that waited for
the same event, or requests that were not served as they were read. Pieces run in the order in which they were queued,
for two milliseconds in each turn of the loop; in between the loop reads its sockets and answers heartbeats.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Time for pieces in one turn of the loop. A piece is never interrupted, however long it takes.
BUDGET_S = 0.002


class Turns:
    """One queue for the running loop. No work is dropped; failures go to the loop's exception handler."""

    def __init__(self, stopwatch: Callable[[], float], budget_s: float = BUDGET_S) -> None:
        self.longest_s = 0.0  #: duration of the longest piece so far
        self.longest = ""  #: the name of its work
        self._budget_s = budget_s
        self._stopwatch = stopwatch
        self._queue: deque[tuple[str, Iterator[object]]] = deque()
        self._is_due = False

    def __len__(self) -> int:
        """The number of unfinished works, including the current one."""
        return len(self._queue)

    def run_in_turns(self, pieces: Iterator[object], what: str = "") -> None:
        """Queue work; each `next(pieces)` does one piece. All pieces run before work that is queued later.

        A piece that raises ends its own work only, and is reported to the loop's exception handler.
        """
        self._queue.append((what, pieces))
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def soon(self, work: Callable[[], object], what: str = "") -> None:
        """Queue a single piece."""
        self.run_in_turns(_once(work), what)

    def forget_longest(self) -> None:
        """Reset the longest piece."""
        self.longest_s, self.longest = 0.0, ""

    def _turn(self) -> None:
        queue, stopwatch = self._queue, self._stopwatch
        before = stopwatch()
        end = before + self._budget_s
        try:
            while queue:
                what, pieces = queue[0]
                is_done = True
                try:
                    for _ in pieces:
                        now = stopwatch()
                        if now - before > self.longest_s:
                            self.longest_s, self.longest = now - before, what
                        before = now
                        if now >= end:
                            is_done = False
                            return
                finally:
                    if is_done:
                        queue.popleft()
        finally:
            self._is_due = bool(queue)
            if queue:
                asyncio.get_running_loop().call_soon(self._turn)


def _once(work: Callable[[], object]) -> Iterator[object]:
    yield work()
