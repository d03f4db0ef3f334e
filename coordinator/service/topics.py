"""Which topics and partitions exist, by the broker's view of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coordinator.groups.consumer.topics import Topic
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.groups.requests import OffsetToCommit
    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.cluster.leadership import Cluster
    from kernel.clock import Clock


class Topics:
    """The topics, as the broker knows them now."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._seen: ClusterSnapshot | None = None
        self._names_version = 0

    def has_topic(self, topic: str) -> bool:
        return topic in self._cluster.snapshot.topics

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether offsets may be committed for it. Commits for absent topics are refused partition by partition."""
        return self._cluster.snapshot.partition(TopicPartition(topic, partition)) is not None

    def unknown_among(self, offsets: Iterable[OffsetToCommit]) -> set[tuple[str, int]]:
        """Those for which `has_partition` is false."""
        unknown: set[tuple[str, int]] = set()
        topic, size = "", 0  # of the previous offset: they come grouped by topic
        for o in offsets:
            if o.topic != topic:
                topic = o.topic
                size = self.size_of(topic)
            if not 0 <= o.partition < size:
                unknown.add((topic, o.partition))
        return unknown

    def size_of(self, topic: str) -> int:
        """The topic's number of partitions, 0 if it does not exist."""
        view = self._cluster.snapshot.topics.get(topic)
        return 0 if view is None else len(view.partitions)

    def find(self, topic: str) -> Topic | None:
        """As groups of the `consumer` design know it."""
        view = self._cluster.snapshot.topics.get(topic)
        return None if view is None else Topic(view.topic_id.bytes, len(view.partitions))

    def view(self) -> object:
        """The same object as long as no topic changes."""
        return self._cluster.snapshot.topics

    def names_version(self) -> int:
        """Greater whenever topics have been created since it was asked last; no two brokers start with the same."""
        now, seen = self._cluster.snapshot, self._seen
        if seen is None or now.topics is not seen.topics:
            # By id: a topic may have been deleted and created again meanwhile.
            if seen is None or now.topic_names.keys() - seen.topic_names.keys():
                self._names_version = max(self._names_version + 1, self._clock.wall_ms())
            self._seen = now
        return self._names_version

    def names(self) -> tuple[str, ...]:
        return tuple(self._cluster.snapshot.topics)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._cluster.snapshot.topic_names.get(UUID(bytes=topic_id))
