"""Work in pieces, a budget of time at once, so that what must not wait is served between them.

An event loop is as fair as its longest turn is short. Whatever may be much (the answers of thousands who have waited
for one thing, requests that were not served as they were read) is put here: the pieces are done in the order in which
they were put, for two milliseconds in each turn of the loop, and in between the loop reads its sockets, where
heartbeats are answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: How long pieces are done in one turn of the loop. A piece that was begun is finished, however long it takes.
BUDGET_S = 0.002


class Turns:
    """One queue for the loop that runs when it is used; nothing put here is dropped, and failures are reported."""

    def __init__(self, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.perf_counter) -> None:
        self.longest_s = 0.0  #: of the pieces so far
        self.longest = ""  #: what that piece was part of
        self._budget_s = budget_s
        self._clock = clock
        self._queue: deque[tuple[str, Iterator[object]]] = deque()
        self._is_due = False

    def __len__(self) -> int:
        """How many works are not done yet, the one that was begun among them."""
        return len(self._queue)

    def run_in_turns(self, pieces: Iterator[object], what: str = "") -> None:
        """Each `next(pieces)` does one piece; all of them are done before whatever is put later.

        A piece that raises ends its own work, is reported to the loop's exception handler, and harms no other.
        """
        self._queue.append((what, pieces))
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def soon(self, work: Callable[[], object], what: str = "") -> None:
        """One piece, in its turn."""
        self.run_in_turns(_once(work), what)

    def forget_longest(self) -> None:
        """Look for the longest piece anew."""
        self.longest_s, self.longest = 0.0, ""

    def _turn(self) -> None:
        queue, clock = self._queue, self._clock
        before = clock()
        end = before + self._budget_s
        try:
            while queue:
                what, pieces = queue[0]
                is_done = True
                try:
                    for _ in pieces:
                        now = clock()
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
