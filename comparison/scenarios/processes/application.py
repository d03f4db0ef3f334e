"""What the application of a member does: it remembers what it has processed, and its listener may misbehave."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from kernel.consumer import SilentListener

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kernel.values import Batch, TopicPartition


class ListenerBroken(Exception):
    """An exception of the application's own, as any other that its listener may raise."""


class Trouble(msgspec.Struct, frozen=True):
    """What the application's listener does wrong, in this order, when it is called next."""

    callback: str = ""  #: `any`, `revoked` or `assigned`; '': nothing
    for_ms: int = 0  #: it takes so long
    commits: bool = False
    raises: bool = False


class Breakage:
    """Whether the application's listener misbehaves when it is called next, once."""

    def __init__(self) -> None:
        self._trouble = Trouble()
        self._changed = asyncio.Event()

    def change(self, trouble: Trouble) -> None:
        """Also a call that is slow ends now."""
        self._trouble = trouble
        self._changed.set()

    async def strike(self, callback: str, commit: Callable[[], Awaitable[None]]) -> None:
        """Misbehave if it is time to. Raises `ListenerBroken`."""
        trouble = self._trouble
        if trouble.callback not in ("any", callback):
            return
        self._trouble = Trouble()
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(trouble.for_ms / 1000):  # 3.11's wait_for may forget a cancellation (gh-86296)
                await self._changed.wait()
        if trouble.commits and not self._changed.is_set():
            await commit()
        if trouble.raises:
            raise ListenerBroken(f"the application's listener failed in on_{callback}")


async def _nothing() -> None:
    """Commit nothing."""


class Memory(SilentListener):
    """What one application has processed: the next offset of each partition."""

    def __init__(self, breakage: Breakage | None = None, commit: Callable[[], Awaitable[None]] = _nothing) -> None:
        """`commit` commits what its consumer has delivered."""
        self.positions: dict[TopicPartition, int] = {}
        self._lost: dict[int, frozenset[TopicPartition]] = {}  #: by stream, since its last assignment
        self._breakage = breakage or Breakage()
        self._commit = commit

    def add(self, batches: Sequence[Batch]) -> None:
        self.positions |= {batch.topic_partition: batch.records[-1].offset + 1 for batch in batches}

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Forget partitions revoked in order: another member commits them now. A loss is noticed too late for that."""
        await self._breakage.strike("revoked", self._commit)
        for partition in partitions:
            self.positions.pop(partition, None)

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Remember them until the next assignment, as an application does that is not done with their records."""
        self._lost[stream] = self._lost.get(stream, frozenset()) | partitions

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Forget what was lost before: in the new generation the coordinator would accept commits of it."""
        for partition in self._lost.pop(stream, frozenset()):
            self.positions.pop(partition, None)
        await self._breakage.strike("assigned", self._commit)
