"""Creates, grows and deletes topics by writes to ZooKeeper; the controller then elects leaders or deletes.

Any broker may write them, as Kafka's own tools did; conditional writes decide races.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.broker.cluster import znodes
from kernel.broker.cluster.cluster_view import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidTopic,
    PartitionView,
    TopicExists,
    TopicView,
    UnknownTopic,
)
from kernel.broker.cluster.controller import checked_assignment, spread
from kernel.random_ids import fresh_uuid
from kernel.topic_names import INTERNAL_TOPICS, topic_name_problem
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.zookeeper.session import ZooKeeperSession

_STEP = "topics"
#: Partitions of all topics together, except internal ones: as many as the embedded ZooKeeper's heap can hold, with
#: watches (`kernel.zookeeper.server`), and as a broker can handle on one core.
PARTITIONS_IN_ALL_MAX = 50_000


class TopicWriter:
    """Writes topics. Its results may be ahead of this broker's view."""

    def __init__(self, session: ZooKeeperSession, random: Random) -> None:
        self._session = session
        self._random = random

    async def create(
        self,
        cluster: ClusterSnapshot,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None,
        assignment: Sequence[Sequence[int]] | None,
        validate_only: bool,
    ) -> TopicView:
        """Write the settings before the topic, as Kafka does.

        Raises TopicExists, InvalidTopic, InvalidPartitions, InvalidReplicationFactor, InvalidReplicaAssignment.
        """
        _check_name(name, cluster)
        if assignment is None:
            start, shift = self._randoms(cluster)
            replicas = spread(cluster.brokers, partitions, replication_factor, start=start, shift=shift)
        else:
            replicas = checked_assignment(assignment, cluster.brokers)
        node = znodes.TopicNode(replicas, fresh_uuid(self._random))
        _check_room(cluster, name, node, added=len(replicas))
        if validate_only:
            return _view(name, node, 0)
        await self._write_config(name, config or {})
        try:
            await self._session.create(paths.topic(name), znodes.topic_node(node), makepath=True, step=_STEP)
        except NodeExists:
            raise TopicExists(f"topic {name!r} exists") from None
        return _view(name, node, 0)

    async def grow(
        self,
        cluster: ClusterSnapshot,
        name: str,
        *,
        partitions: int,
        assignment: Sequence[Sequence[int]] | None,
        validate_only: bool,
    ) -> TopicView:
        """Grow the topic to `partitions` partitions; `assignment` is for new ones. Raises UnknownTopic and as `create`.

        New partitions continue the round that the first one's leader began.
        """
        while True:
            try:
                data, stat = await self._session.get(paths.topic(name), step=_STEP)
            except NoNode:
                raise UnknownTopic(f"there is no topic {name!r}") from None
            old = znodes.parse_topic(data)
            grown = znodes.TopicNode(old.replicas + _more(cluster, name, old, partitions, assignment), old.topic_id)
            if grown.topic_id is None:
                grown = znodes.TopicNode(grown.replicas, fresh_uuid(self._random))
            _check_room(cluster, name, grown, added=len(grown.replicas) - len(old.replicas))
            if validate_only:
                return _view(name, grown, stat.version)
            try:
                stat = await self._session.set(paths.topic(name), znodes.topic_node(grown), stat.version, step=_STEP)
            except BadVersion:
                continue
            return _view(name, grown, stat.version)

    async def delete(self, name: str) -> None:
        """Mark the topic for deletion; the controller removes it. Raises UnknownTopic."""
        if await self._session.exists(paths.topic(name), step=_STEP) is None:
            raise UnknownTopic(f"there is no topic {name!r}")
        try:
            await self._session.create(paths.topic_deletion(name), None, makepath=True, step=_STEP)
        except NodeExists:
            return  # already requested

    async def _write_config(self, name: str, config: Mapping[str, str]) -> None:
        data = znodes.topic_config_node(config)
        try:
            await self._session.create(paths.topic_configuration(name), data, makepath=True, step=_STEP)
        except NodeExists:
            # Settings of an existing topic, which must not be changed here, or leftovers.
            if await self._session.exists(paths.topic(name), step=_STEP) is not None:
                raise TopicExists(f"topic {name!r} exists") from None
            await self._session.set(paths.topic_configuration(name), data, step=_STEP)

    def _randoms(self, cluster: ClusterSnapshot) -> tuple[int, int]:
        count = max(len(cluster.brokers), 1)
        return self._random.randrange(count), self._random.randrange(count)


def _check_name(name: str, cluster: ClusterSnapshot) -> None:
    if problem := topic_name_problem(name):
        raise InvalidTopic(problem)
    if name in cluster.topics:
        raise TopicExists(f"topic {name!r} exists")
    # Kafka's metrics write '.' as '_', so two such names would collide (Topic.hasCollision).
    if "." not in name and "_" not in name:
        return
    for other in cluster.topics:
        if other.replace(".", "_") == name.replace(".", "_"):
            raise InvalidTopic(f"{name!r} collides with topic {other!r}: '.' and '_' count as the same")


def _check_room(cluster: ClusterSnapshot, name: str, node: znodes.TopicNode, *, added: int) -> None:
    if len(node.replicas) > znodes.PARTITIONS_MAX:
        raise InvalidPartitions(
            f"topic {name!r} would have {len(node.replicas)} partitions, at most {znodes.PARTITIONS_MAX} are allowed"
        )
    if (size := len(znodes.topic_node(node))) > znodes.NODE_BYTES_MAX:
        raise InvalidPartitions(
            f"the replicas of topic {name!r} are {size} bytes, more than ZooKeeper accepts ({znodes.NODE_BYTES_MAX}):"
            " use fewer partitions or fewer replicas"
        )
    present = sum(len(topic.partitions) for topic in cluster.topics.values() if not topic.internal)
    if name not in INTERNAL_TOPICS and present + added > PARTITIONS_IN_ALL_MAX:
        raise InvalidPartitions(
            f"there are {present} partitions in all topics, and at most {PARTITIONS_IN_ALL_MAX} are allowed:"
            f" {added} more do not fit. Delete topics, or use fewer partitions"
        )


def _more(
    cluster: ClusterSnapshot,
    name: str,
    old: znodes.TopicNode,
    partitions: int,
    assignment: Sequence[Sequence[int]] | None,
) -> tuple[tuple[int, ...], ...]:
    """Replicas for the partitions to add (AdminZkClient.addPartitions)."""
    present = len(old.replicas)
    if partitions <= present:
        raise InvalidPartitions(
            f"topic {name!r} already has {present} partitions; it cannot be changed to {partitions}"
        )
    if assignment is not None:
        added = checked_assignment(assignment, cluster.brokers)
        if len(added) != partitions - present:
            raise InvalidReplicaAssignment(f"{len(added)} assignments for {partitions - present} new partitions")
        return added
    first = old.replicas[0] if old.replicas else (0,)
    ids = sorted(cluster.brokers)
    start = ids.index(first[0]) if first[0] in ids else 0
    return spread(cluster.brokers, partitions - present, len(first), start=start, shift=start, first=present)


def _view(name: str, node: znodes.TopicNode, version: int) -> TopicView:
    assert node.topic_id is not None
    return TopicView(name, node.topic_id, tuple(PartitionView(replicas) for replicas in node.replicas), version)
