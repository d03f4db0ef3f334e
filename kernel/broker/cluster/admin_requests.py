"""Requests that Kafka's older tools make to the controller by znodes, handled as by a 3.9 controller. Pure.

`kafka-preferred-replica-election` and `kafka-reassign-partitions` (with --zookeeper, up to 3.x) write
/admin/preferred_replica_election and /admin/reassign_partitions; the controller carries them out and removes them.
As observed on a real 3.9.1: unknown partitions are dropped with a warning; a malformed preferred election is removed, a
malformed reassignment is left; a partition to be moved to a broker that is not running waits in the node. Kafka copies
records first; here a reassignment is immediate, because brokers share their data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel.broker.cluster.controller import WriteState
from kernel.broker.cluster.znodes import PartitionState, TopicNode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.values import TopicPartition

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Topics to write, by name; partitions that wait for brokers; and reasons for refused ones."""

    topics: Mapping[str, TopicNode]
    waiting: Mapping[TopicPartition, Replicas]
    refused: tuple[str, ...]


def preferred(
    cluster: ClusterSnapshot, live: Collection[int], wanted: Iterable[TopicPartition], controller_epoch: int
) -> list[WriteState]:
    """New states for those of `wanted` whose first replica is alive and in sync but does not lead.

    The others keep their state (PreferredReplicaPartitionLeaderElection).
    """
    writes = []
    for tp in sorted(set(wanted)):
        partition = cluster.partition(tp)
        if partition is None or partition.state_version < 0:
            continue
        first = partition.replicas[0]
        if first != partition.leader and first in live and first in partition.isr:
            state = PartitionState(first, partition.leader_epoch + 1, partition.isr, controller_epoch)
            writes.append(WriteState(tp, state, partition.state_version))
    return writes


def reassigned(
    cluster: ClusterSnapshot, live: Collection[int], wanted: Mapping[TopicPartition, Replicas]
) -> Reassignment:
    """Replace the replicas of partitions whose new brokers are all alive; their leaders follow (`decide`)."""
    topics: dict[str, TopicNode] = {}
    waiting: dict[TopicPartition, Replicas] = {}
    refused: list[str] = []
    for tp, replicas in wanted.items():
        partition = cluster.partition(tp)
        if partition is None:
            refused.append(f"cannot reassign partition {tp}: it does not exist")
        elif not set(replicas) <= set(live):
            waiting[tp] = replicas
        elif partition.replicas != replicas:
            view = cluster.topics[tp.topic]
            node = topics.get(tp.topic) or TopicNode(tuple(p.replicas for p in view.partitions), view.topic_id)
            changed = (*node.replicas[: tp.partition], replicas, *node.replicas[tp.partition + 1 :])
            topics[tp.topic] = replace(node, replicas=changed)
    return Reassignment(topics, waiting, tuple(refused))
