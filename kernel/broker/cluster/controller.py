"""The controller's decisions: which broker leads which partition. Pure; `controlling.py` performs them.

The rules are those of Kafka's ZooKeeper-mode controller (KafkaController, PartitionStateMachine and
PartitionLeaderElectionAlgorithms of 3.9) with two differences, because brokers share one data directory:

- every live replica is in sync, because there is one log and no copy: the ISR is the live replicas (the last
  member stays in it when none is alive, as in Kafka), and any live replica may lead;
- the leader epoch grows when the leader changes, and only then. The ZooKeeper-mode controller also raised it when
  the ISR shrank, to fence followers; there are none here (KRaft has dropped this as well: KAFKA-15021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.broker.cluster.cluster_view import (
    NO_LEADER,
    UNREADABLE,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
)
from kernel.broker.cluster.znodes import PARTITIONS_MAX, PartitionState
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kernel.broker.cluster.cluster_view import ClusterSnapshot, PartitionView


@dataclass(frozen=True, slots=True)
class WriteState:
    """Write a partition's state. `expected_version` is the znode's; None creates it."""

    topic_partition: TopicPartition
    state: PartitionState
    expected_version: int | None


def decide(
    cluster: ClusterSnapshot,
    live: Collection[int],
    controller_epoch: int,
    *,
    doomed: Collection[str] = (),
    among: Iterable[str] | None = None,
) -> list[WriteState]:
    """The writes that give every partition with a live replica a live leader; topics in order of name.

    `doomed` topics are being deleted, and skipped. `among` limits the decision to topics that have changed since the
    last one.

    `live` may be smaller than `cluster.brokers`: a broker that has restarted under the same id before its absence was
    noticed counts as gone for one decision, so that the partitions of its previous incarnation get a new leader epoch.
    """
    writes = []
    names = cluster.topics.keys() if among is None else cluster.topics.keys() & set(among)
    for name in sorted(names - set(doomed)):
        for number, partition in enumerate(cluster.topics[name].partitions):
            state = next_state(partition, live, controller_epoch)
            if state is not None:
                version = None if partition.state_version < 0 else partition.state_version
                writes.append(WriteState(TopicPartition(name, number), state, version))
    return writes


def next_state(partition: PartitionView, live: Collection[int], controller_epoch: int) -> PartitionState | None:
    """The state a partition should have; None if it has it, or if it is new and no replica is alive.

    Also None if its state is unreadable: its epoch is unknown then, so a new leader could not be sure to fence the
    old one.
    """
    if partition.state_version == UNREADABLE:
        return None
    alive = [replica for replica in partition.replicas if replica in live]
    is_new = partition.state_version < 0
    if is_new and not alive:
        return None
    leader = _leader(partition, alive)
    isr = _isr(partition, alive)
    if leader == partition.leader and not is_new:
        if isr == partition.isr:
            return None
        return PartitionState(leader, partition.leader_epoch, isr, controller_epoch)
    return PartitionState(leader, partition.leader_epoch + 1, isr, controller_epoch)


def _leader(partition: PartitionView, alive: Sequence[int]) -> int:
    """The current leader while it is alive; otherwise the first live replica of the assignment."""
    if partition.leader in alive:
        return partition.leader
    return alive[0] if alive else NO_LEADER


def _isr(partition: PartitionView, alive: Sequence[int]) -> tuple[int, ...]:
    """Members still alive, in their order, then replicas that returned; never empty."""
    if not alive:
        return partition.isr[:1] if partition.leader == NO_LEADER else (partition.leader,)
    stayed = [replica for replica in partition.isr if replica in alive]
    return (*stayed, *(replica for replica in alive if replica not in stayed))


def restarted(known: Mapping[int, int], now: Mapping[int, int]) -> frozenset[int]:
    """Brokers whose registration has been replaced since; by node id and its znode's czxid."""
    return frozenset(broker for broker, epoch in now.items() if broker in known and known[broker] != epoch)


def spread(
    brokers: Iterable[int], partitions: int, replication_factor: int, *, start: int, shift: int, first: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Replicas for partitions `first` .. `first + partitions - 1`, preferred leader first.

    Kafka's rule without racks (AdminUtils.assignReplicasToBrokersRackUnaware): leaders go round the brokers from
    `start`, followers stand at a distance that begins with `shift` and grows by one with each full round.
    Raises InvalidPartitions, InvalidReplicationFactor.
    """
    ids = sorted(brokers)
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise InvalidPartitions(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
    if not 1 <= replication_factor <= len(ids):
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor} needs as many live brokers, but there are {len(ids)}: {ids}"
        )
    assignment = []
    for number in range(first, first + partitions):
        leader = (number + start) % len(ids)
        if number > 0 and number % len(ids) == 0:
            shift += 1
        replicas = [ids[leader]]
        for follower in range(replication_factor - 1):
            distance = 1 + (shift + follower) % (len(ids) - 1)
            replicas.append(ids[(leader + distance) % len(ids)])
        assignment.append(tuple(replicas))
    return tuple(assignment)


def checked_assignment(assignment: Sequence[Sequence[int]], brokers: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """An assignment given by hand, as Kafka accepts it. Raises InvalidPartitions, InvalidReplicaAssignment."""
    if not 1 <= len(assignment) <= PARTITIONS_MAX:
        raise InvalidPartitions(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {len(assignment)}")
    for number, replicas in enumerate(assignment):
        if not replicas or len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"partition {number}: {list(replicas)} is empty or repeats a broker")
        if unknown := sorted(set(replicas) - set(brokers)):
            raise InvalidReplicaAssignment(f"partition {number} names brokers that are not running: {unknown}")
        if len(replicas) != len(assignment[0]):
            raise InvalidReplicaAssignment("all partitions must have the same number of replicas")
    return tuple(tuple(replicas) for replicas in assignment)
