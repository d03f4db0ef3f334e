"""What the application of a member does: it remembers what it has processed, and its listener may break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.consumer import SilentListener

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.values import Batch, TopicPartition


class ListenerBroken(Exception):
    """An exception of the application's own, as any other that its listener may raise."""


class Breakage:
    """Whether the application's listener raises an exception when it is called next."""

    def __init__(self) -> None:
        self.callback = ""  #: `any`, `revoked` or `assigned`; '': it works

    def strike(self, callback: str) -> None:
        if self.callback in ("any", callback):
            self.callback = ""
            raise ListenerBroken(f"the application's listener failed in on_{callback}")


class Memory(SilentListener):
    """What one application has processed: the next offset of each partition."""

    def __init__(self, breakage: Breakage | None = None) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self._lost: dict[int, frozenset[TopicPartition]] = {}  #: by stream, since its last assignment
        self._breakage = breakage or Breakage()

    def add(self, batches: Sequence[Batch]) -> None:
        self.positions |= {batch.topic_partition: batch.records[-1].offset + 1 for batch in batches}

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Forget partitions revoked in order: another member commits them now. A loss is noticed too late for that."""
        self._breakage.strike("revoked")
        for partition in partitions:
            self.positions.pop(partition, None)

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Remember them until the next assignment, as an application does that is not done with their records."""
        self._lost[stream] = self._lost.get(stream, frozenset()) | partitions

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """Forget what was lost before: in the new generation the coordinator would accept commits of it."""
        for partition in self._lost.pop(stream, frozenset()):
            self.positions.pop(partition, None)
        self._breakage.strike("assigned")
