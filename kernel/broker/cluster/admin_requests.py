"""What Kafka's older tools ask of the controller by znodes, and what a 3.9 controller makes of it. Pure.

`kafka-preferred-replica-election` and `kafka-reassign-partitions` (with --zookeeper, up to 3.x) write
/admin/preferred_replica_election and /admin/reassign_partitions; the controller does what they say and removes them.
Asked of a real 3.9.1: what names unknown partitions is dropped with a warning; a preferred election that makes no
sense is removed, a reassignment that makes no sense is left; a partition that is to go to a broker that does not run
waits in the node. Where Kafka copies records first, here a reassignment is done at once: brokers share their data.
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
    """Topics to write, by name; what has to wait for brokers; and why some of it is not done."""

    topics: Mapping[str, TopicNode]
    waiting: Mapping[TopicPartition, Replicas]
    refused: tuple[str, ...]


def preferred(
    cluster: ClusterSnapshot, live: Collection[int], wanted: Iterable[TopicPartition], controller_epoch: int
) -> list[WriteState]:
    """New states of those of `wanted` that are not led by their first replica, which runs and is in sync.

    The others keep theirs (PreferredReplicaPartitionLeaderElection).
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
    """Replicas of the partitions whose brokers all run are replaced; who leads follows from that (`decide`)."""
    topics: dict[str, TopicNode] = {}
    waiting: dict[TopicPartition, Replicas] = {}
    refused: list[str] = []
    for tp, replicas in wanted.items():
        partition = cluster.partition(tp)
        if partition is None:
            refused.append(f"partition {tp} is not reassigned: there is none")
        elif not set(replicas) <= set(live):
            waiting[tp] = replicas
        elif partition.replicas != replicas:
            view = cluster.topics[tp.topic]
            node = topics.get(tp.topic) or TopicNode(tuple(p.replicas for p in view.partitions), view.topic_id)
            changed = (*node.replicas[: tp.partition], replicas, *node.replicas[tp.partition + 1 :])
            topics[tp.topic] = replace(node, replicas=changed)
    return Reassignment(topics, waiting, tuple(refused))
