"""The storage of one broker incarnation (signatures first; the implementation follows)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from uuid import UUID

    from kernel.broker.storage.batches import AppendBatch, AppendResult
    from kernel.values import TopicPartition


class PartitionLog:
    """One partition's records at one leader epoch, while this broker leads it."""

    topic_partition: TopicPartition
    leader_epoch: int

    @property
    def start_offset(self) -> int:
        raise NotImplementedError

    @property
    def end_offset(self) -> int:
        """Next offset to be given; everything below is acknowledged (high watermark = log end)."""
        raise NotImplementedError

    async def append(self, batches: Sequence[AppendBatch]) -> AppendResult:
        """Raises Fenced, StorageFailed, OutOfOrderSequence, InvalidProducerEpoch."""
        raise NotImplementedError

    async def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True) -> bytes:
        """Whole batches from the one that holds `offset`; b'' at the end. Raises OffsetOutOfRange, StorageFailed."""
        raise NotImplementedError

    async def batch_for_timestamp(self, timestamp_ms: int) -> bytes | None:
        """The first batch whose largest timestamp is >= `timestamp_ms`; the caller looks for the record inside."""
        raise NotImplementedError

    def on_advance(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the event loop when end_offset grows or the log closes; returns the cancel."""
        raise NotImplementedError


class KeyValueLog:
    """One partition of pairs (compacted): the coordinator's store for one `__consumer_offsets` partition."""

    topic_partition: TopicPartition
    leader_epoch: int

    async def upsert(self, pairs: Sequence[tuple[bytes, bytes | None]]) -> None:
        """All or none, in this order; None deletes. Returns when acknowledged. Raises Fenced, StorageFailed."""
        raise NotImplementedError

    async def items(self) -> list[tuple[bytes, bytes]]:
        """Everything, ordered by key. Raises Fenced, StorageFailed."""
        raise NotImplementedError


class Storage:
    """`await start()` before use; SQLite runs on threads of its own, nothing here blocks the event loop."""

    def __init__(self, data_dir: Path, node_id: int, incarnation: str | None = None) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Make this incarnation's file. Raises StorageFailed."""

    async def close(self) -> None:
        """Finish what is queued; every log handed out is closed."""

    async def take_over(self, tp: TopicPartition, topic_id: UUID, leader_epoch: int) -> PartitionLog:
        """Raises Fenced (a higher epoch is published), StorageFailed."""
        raise NotImplementedError

    async def take_over_pairs(self, tp: TopicPartition, topic_id: UUID, leader_epoch: int) -> KeyValueLog:
        raise NotImplementedError

    def resign(self, tp: TopicPartition) -> None:
        """Forget the log of `tp`: appends that are queued fail with Fenced."""

    async def forget_topic(self, topic_id: UUID) -> None:
        """The topic was deleted: drop its epochs and our rows of it."""
