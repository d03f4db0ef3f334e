"""Names for the topic ids in what the group assigned to a member.

A name may be unknown: the topic is new, or the metadata is old. The member then reconciles the part that is known, as
Kafka's does (AbstractMembershipManager.findResolvableAssignmentAndTriggerMetadataUpdate of kafka-clients 4.1.1). The
name of a topic that the member was given stays known to it, even if the topic is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from coordinator.client.consumer.calls import ById
    from kernel.client.client import ClusterClient


class Targets:
    """The last target of one member, by topic id and by name."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._target: ById = {}
        self._names: dict[UUID, str] = {}  #: of all topics that the member was ever given

    def take(self, target: ById) -> None:
        """Replace the target: {topic id: partitions}."""
        self._target = target

    def known(self) -> frozenset[TopicPartition]:
        """Return the part of the target whose topics have names in the metadata of now."""
        for name, topic_id in self._client.metadata.topic_ids.items():
            if topic_id is not None and topic_id in self._target:
                self._names[topic_id] = name
        return frozenset(
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in self._target.items()
            if topic_id in self._names
            for number in numbers
        )

    @property
    def unknown(self) -> frozenset[UUID]:
        """The ids without a name."""
        return frozenset(self._target.keys() - self._names.keys())

    @property
    def ids(self) -> Mapping[str, UUID]:
        """{topic: its id}; of a topic that was deleted and created again, the one in the target."""
        in_target = {name: topic_id for topic_id, name in self._names.items() if topic_id in self._target}
        return {**{name: topic_id for topic_id, name in self._names.items()}, **in_target}
