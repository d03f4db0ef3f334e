"""What the controller decides: who leads which partition. Pure; `controlling.py` performs it.

The rules are those of Kafka's ZooKeeper-mode controller (KafkaController, PartitionStateMachine and
PartitionLeaderElectionAlgorithms of 3.9) with two differences that the shared data directory makes:

- every live replica is in sync, because there is one log and no copy: the ISR is the live replicas (the last
  member stays in it when nobody lives, as in Kafka), and any live replica may lead;
- the leader epoch grows when the leader changes, and only then. The ZooKeeper-mode controller also raised it when
  the ISR shrank, to fence followers; there are none here (KRaft has given that up as well: KAFKA-15021).
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
    """Give a partition this state. `expected_version` is the znode's, None when it is to be created."""

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
    """What has to be written so that every partition with a live replica has a live leader; topics by name.

    `doomed` topics are being deleted and left alone. `among`: only these topics are looked at, for the others have
    been since they changed.

    `live` may be less than `cluster.brokers`: a broker that has come back under the same id before anybody saw it
    go counts as gone for one decision, so that what its former incarnation led is led anew.
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
    """The state a partition should have; None when it has it, or when it is new and no replica lives.

    Also None when its state cannot be read: at which epoch it was led is not known then, so nobody can be sure to fence
    who leads it.
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
    """Who leads stays while alive; otherwise the first live replica in the order of the assignment."""
    if partition.leader in alive:
        return partition.leader
    return alive[0] if alive else NO_LEADER


def _isr(partition: PartitionView, alive: Sequence[int]) -> tuple[int, ...]:
    """Those that stayed, in their order, then those that came back; never empty."""
    if not alive:
        return partition.isr[:1] if partition.leader == NO_LEADER else (partition.leader,)
    stayed = [replica for replica in partition.isr if replica in alive]
    return (*stayed, *(replica for replica in alive if replica not in stayed))


def restarted(known: Mapping[int, int], now: Mapping[int, int]) -> frozenset[int]:
    """Brokers whose registration is another one than the one that is known: node id -> its znode's czxid."""
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
            f"replication factor {replication_factor} needs as many live brokers; there are {len(ids)}: {ids}"
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
            raise InvalidReplicaAssignment(f"partition {number} names brokers that are not there: {unknown}")
        if len(replicas) != len(assignment[0]):
            raise InvalidReplicaAssignment("all partitions must have the same number of replicas")
    return tuple(tuple(replicas) for replicas in assignment)
