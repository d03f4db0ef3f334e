"""The game's messages for all of its pages: the last increments are kept, so that each page reads at its own pace."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground.applying import applied
from comparison.playground.messages import Increment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from comparison.playground.messages import AnyChange, Snapshot

#: At five increments a second, a page may sleep for a minute without a new snapshot.
KEPT = 300


class Broadcast:
    """Publishes increments; `snapshot` is the state after the last one."""

    def __init__(self, first: Snapshot, *, kept: int = KEPT) -> None:
        self.snapshot = first
        self._increments: deque[Increment] = deque(maxlen=kept)
        self._more = asyncio.Event()
        self._ended = False
        self._watching = 0
        self._left_s = time.monotonic()

    @property
    def unwatched_s(self) -> float:
        """For how long nobody has been watching."""
        return 0.0 if self._watching else time.monotonic() - self._left_s

    def publish(self, at_ms: int, changes: Sequence[AnyChange] = ()) -> None:
        increment = Increment(seq=self.snapshot.seq + 1, at_ms=at_ms, changes=tuple(changes))
        self.snapshot = applied(self.snapshot, increment)
        self._increments.append(increment)
        self._wake()

    def begin_again(self, first: Snapshot) -> None:
        """Go on from this snapshot, whatever its `seq` is: every page gets it."""
        self.snapshot = replace(first, seq=self.snapshot.seq + 1)
        self._increments.clear()
        self._wake()

    def end(self) -> None:
        """Nothing more will be published: whoever follows ends after the last increment."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    async def follow(self, after: int | None = None) -> AsyncIterator[Snapshot | Increment]:
        """As `Game.subscribe`."""
        self._watching += 1
        try:
            seq = -1 if after is None else after
            while True:
                first = self.snapshot.seq - len(self._increments)
                if not first <= seq <= self.snapshot.seq:
                    snapshot = self.snapshot
                    seq = snapshot.seq
                    yield snapshot
                elif seq < self.snapshot.seq:
                    increment = self._increments[seq - first]
                    seq = increment.seq
                    yield increment
                elif self._ended:
                    return
                else:
                    await self._more.wait()
        finally:
            self._watching -= 1
            self._left_s = time.monotonic()
