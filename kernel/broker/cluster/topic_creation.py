"""Automatic creation of topics: on demand, and Kafka's internal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.broker.cluster.cluster_view import NO_LEADER, TopicExists
from kernel.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kernel.broker.cluster.cluster_view import ClusterSnapshot, TopicView
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.settings.configuration import BrokerConfig

#: How long to wait until every partition of a topic created on demand has a leader.
CREATED_WITHIN_MS = 1_000


class DefaultTopics:
    """Creates topics with the partitions and replicas that the settings name."""

    def __init__(self, cluster: Cluster, config: BrokerConfig) -> None:
        self._cluster = cluster
        self._config = config

    async def create(self, name: str) -> None:
        """Create `name` and wait up to `CREATED_WITHIN_MS` for its leaders. Raises as `TopicWriter.create`."""
        await self.begin(name)
        await self._cluster.until(lambda snapshot: all_led(snapshot, name), CREATED_WITHIN_MS)

    async def begin(self, name: str) -> None:
        """Create `name` without waiting for its leaders. Raises as `TopicWriter.create`."""
        prefix = "offsets.topic" if name == OFFSETS_TOPIC else ""
        await self._cluster.create_topic(
            name,
            partitions=self._config.number(f"{prefix}.num.partitions" if prefix else "num.partitions"),
            replication_factor=self._config.number(
                f"{prefix}.replication.factor" if prefix else "default.replication.factor"
            ),
            config={"cleanup.policy": "compact"} if prefix else None,
        )

    async def ensure(self, name: str) -> TopicView | None:
        """The topic, created if missing; None while its leaders are not known."""
        if name not in self._cluster.snapshot.topics:
            try:
                await self.create(name)
            except TopicExists:
                await self._cluster.until(lambda snapshot: all_led(snapshot, name), CREATED_WITHIN_MS)
        return self._cluster.snapshot.topics.get(name)


def all_led(snapshot: ClusterSnapshot, name: str, *, partitions: int = 1) -> bool:
    """Whether the topic has at least `partitions` partitions, and each of them has a leader."""
    topic = snapshot.topics.get(name)
    return (
        topic is not None
        and len(topic.partitions) >= partitions
        and all(partition.leader != NO_LEADER for partition in topic.partitions)
    )
