"""The partition logs that this broker leads now, taken over and resigned with leadership."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel.broker.cluster.cluster_view import Leadership
    from kernel.broker.storage.logs import PartitionLog, ReadableLog
    from kernel.broker.storage.storage import Storage
    from kernel.values import TopicPartition


class LedLogs:
    """A `LeadershipListener` for data topics; handlers look up partition logs here.

    Use: `logs = LedLogs(storage)`, `cluster.subscribe(logs, topics=lambda name: name != GROUP_METADATA_TOPIC)`. The
    coordinator subscribes its own listener for `__consumer_offsets` and calls `storage.take_over_pairs`.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._logs: dict[TopicPartition, PartitionLog] = {}

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        """The log of `tp`; None if this broker does not lead it (NOT_LEADER_OR_FOLLOWER)."""
        return self._logs.get(tp)

    def all(self) -> list[PartitionLog]:
        """Every log that this broker leads, ordered by topic and partition."""
        return [led for _, led in sorted(self._logs.items())]

    def readable(self, tp: TopicPartition) -> ReadableLog | None:
        """As `get`, for any readable log, including `__consumer_offsets`, to which clients cannot append."""
        return self._logs.get(tp) or self._storage.pairs_of(tp)

    async def on_lead(self, leadership: Leadership) -> None:
        tp = leadership.topic_partition
        self._logs[tp] = await self._storage.take_over(tp, leadership.topic_id, leadership.leader_epoch)

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        if self._logs.pop(topic_partition, None) is not None:
            self._storage.resign(topic_partition)
