"""A broker's view of its cluster, as values; `leadership.Cluster` has the present one.

A `ClusterSnapshot` is immutable and replaced as a whole when ZooKeeper changes; handlers read `cluster.snapshot` and
never wait. It follows ZooKeeper by this broker's own watches, so it may lag by a moment, like Metadata of a Kafka
broker; writes are kept safe by the storage's epoch fence, not by this view.

Listeners are notified of leadership, in order for each partition: `on_lead` with a leader epoch, `on_resign` when
another broker leads, the partition is deleted, or this broker's ZooKeeper session is lost. Between the two the broker
may accept writes. The same epoch may be led twice, with a resignation between (a session that was lost and
regained before the controller noticed).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from kernel.errors import RebalanceLabError
from kernel.topic_names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kernel.values import BrokerAddress, TopicPartition

#: No broker leads: none of the replicas is alive.
NO_LEADER = -1
#: Stands for a state's version: the node exists, but its content is malformed.
UNREADABLE = -2


class TopicExists(RebalanceLabError):
    """CreateTopics of an existing topic (TOPIC_ALREADY_EXISTS)."""


class UnknownTopic(RebalanceLabError):
    """There is no topic of that name (UNKNOWN_TOPIC_OR_PARTITION)."""


class InvalidTopic(RebalanceLabError):
    """The name is not allowed (INVALID_TOPIC_EXCEPTION)."""


class InvalidPartitions(RebalanceLabError):
    """The number of partitions is below 1, above the limit, or not above the current number (INVALID_PARTITIONS)."""


class InvalidReplicationFactor(RebalanceLabError):
    """Below 1 or more than there are live brokers (INVALID_REPLICATION_FACTOR)."""


class InvalidReplicaAssignment(RebalanceLabError):
    """A replica assignment given by hand is incomplete, repeats a broker or names an unknown one."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as ZooKeeper has it; `leader` is NO_LEADER and `leader_epoch` -1 before its state is written."""

    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    controller_epoch: int = -1
    #: ZooKeeper's data version of the state node, -1 if there is none, UNREADABLE if it is malformed.
    state_version: int = -1


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic; `partitions` is indexed by partition number. `node_version` is ZooKeeper's of the topic node."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionView, ...]
    node_version: int = 0

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The data for Metadata responses. `brokers` has live brokers only; `broker_epochs` their nodes' czxid."""

    cluster_id: str = ""
    controller_id: int = -1
    controller_epoch: int = -1
    brokers: Mapping[int, BrokerAddress] = field(default_factory=lambda: MappingProxyType({}))
    broker_epochs: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicView] = field(default_factory=lambda: MappingProxyType({}))
    topic_names: Mapping[UUID, str] = field(default_factory=lambda: MappingProxyType({}))

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def leader_of(self, tp: TopicPartition) -> BrokerAddress | None:
        """The live leader's address; None if the partition is unknown or has no leader."""
        partition = self.partition(tp)
        return None if partition is None else self.brokers.get(partition.leader)


@dataclass(frozen=True, slots=True)
class Leadership:
    """This broker is to lead `topic_partition` of the topic with `topic_id` at `leader_epoch`."""

    topic_partition: TopicPartition
    topic_id: UUID
    leader_epoch: int


class LeadershipListener(Protocol):
    """Called on the event loop, one call at a time per partition; calls for different partitions may overlap.

    `on_lead` may take long (loading a log); a resignation in the meantime is reported after it returns. It may raise
    `storage.errors.Fenced` (another broker leads at a higher epoch: the view lags) or `StorageFailed`: the partition
    then counts as not led, and is tried again when the view changes.
    """

    async def on_lead(self, leadership: Leadership) -> None: ...

    async def on_resign(self, topic_partition: TopicPartition) -> None: ...


def changed_topics(before: Mapping[str, TopicView], after: Mapping[str, TopicView]) -> list[str]:
    """Names of topics that were added, removed or changed. An unchanged topic's view is the same object."""
    if before is after:
        return []
    came = [name for name, view in after.items() if before.get(name) is not view]
    return came + [name for name in before if name not in after]


def without_brokers(snapshot: ClusterSnapshot) -> tuple[int, list[int]] | None:
    """The number of partitions without a live replica, and the brokers they wait for; None if there are none."""
    waiting = [
        partition.replicas
        for topic in snapshot.topics.values()
        for partition in topic.partitions
        if snapshot.brokers.keys().isdisjoint(partition.replicas)
    ]
    return (len(waiting), sorted({broker for replicas in waiting for broker in replicas})) if waiting else None
