"""The controller's decisions, as tables."""

from __future__ import annotations

import uuid

import pytest

from kernel.broker.cluster.cluster_view import (
    ClusterSnapshot,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    PartitionView,
    TopicView,
)
from kernel.broker.cluster.controller import WriteState, checked_assignment, decide, next_state, restarted, spread
from kernel.broker.cluster.znodes import PartitionState
from kernel.values import TopicPartition

EPOCH = 7


def partition(
    leader: int, leader_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2)
) -> PartitionView:
    return PartitionView(replicas, leader, leader_epoch, isr, controller_epoch=1, state_version=4)


@pytest.mark.parametrize(
    ("view", "live", "expected"),
    [
        # A new partition: the first live replica leads at epoch 0.
        (PartitionView((1, 2)), {1, 2}, PartitionState(1, 0, (1, 2), EPOCH)),
        (PartitionView((1, 2)), {2, 3}, PartitionState(2, 0, (2,), EPOCH)),
        # ... and it has no leader if none is alive.
        (PartitionView((1, 2)), {3}, None),
        # Nothing has to change.
        (partition(1, 3, (1, 2)), {1, 2, 3}, None),
        # The leader fails: the other one leads, the epoch grows.
        (partition(1, 3, (1, 2)), {2}, PartitionState(2, 4, (2,), EPOCH)),
        # The follower fails: the ISR shrinks, the leader and its epoch stay.
        (partition(1, 3, (1, 2)), {1}, PartitionState(1, 3, (1,), EPOCH)),
        # It returns: it comes after those that stayed.
        (partition(2, 3, (2,)), {1, 2}, PartitionState(2, 3, (2, 1), EPOCH)),
        # No replica is left: no leader, the last one stays in the ISR. Recorded from 3.9.1.
        (partition(2, 0, (2,), (2,)), {1}, PartitionState(-1, 1, (2,), EPOCH)),
        (partition(2, 0, (1, 2)), set(), PartitionState(-1, 1, (2,), EPOCH)),
        # ... and nothing more happens until one returns: recorded from 3.9.1 as well.
        (partition(-1, 1, (2,), (2,)), {1}, None),
        (partition(-1, 1, (2,), (2,)), {1, 2}, PartitionState(2, 2, (2,), EPOCH)),
        # All replicas share one log, so one that was not in the ISR may lead.
        (partition(-1, 1, (2,)), {1}, PartitionState(1, 2, (1,), EPOCH)),
    ],
)
def test_next_state_of_a_partition(view: PartitionView, live: set[int], expected: PartitionState | None) -> None:
    assert next_state(view, live, EPOCH) == expected


def test_decide_names_the_writes_and_skips_topics_being_deleted() -> None:
    topics = {
        "b": TopicView("b", uuid.UUID(int=1), (partition(1, 0, (1, 2)), PartitionView((2, 1)))),
        "a": TopicView("a", uuid.UUID(int=2), (partition(2, 5, (2,), (2,)),)),
        "c": TopicView("c", uuid.UUID(int=3), (partition(1, 0, (1,)),)),
    }
    assert decide(ClusterSnapshot(topics=topics), {2}, EPOCH, doomed=["c"]) == [
        WriteState(TopicPartition("b", 0), PartitionState(2, 1, (2,), EPOCH), 4),
        WriteState(TopicPartition("b", 1), PartitionState(2, 0, (2,), EPOCH), None),
    ]


def test_restarted_brokers_are_those_with_another_registration() -> None:
    assert restarted({1: 10, 2: 20}, {1: 10, 2: 21, 3: 30}) == {2}


def test_replicas_are_spread_over_the_brokers_as_by_kafka() -> None:
    """The example in the comment of Kafka's AdminUtils: 5 brokers, 10 partitions, 3 replicas, start 0, shift 0."""
    assert spread(range(5), 10, 3, start=0, shift=0) == (
        *((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1), (0, 2, 3), (1, 3, 4), (2, 4, 0)),
        *((3, 0, 1), (4, 1, 2)),
    )
    assert spread([1, 2], 3, 2, start=1, shift=0) == ((2, 1), (1, 2), (2, 1))
    assert spread([4], 2, 1, start=0, shift=0, first=5) == ((4,), (4,))


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "error"),
    [
        (0, 1, InvalidPartitions),
        (10_001, 1, InvalidPartitions),
        (1, 0, InvalidReplicationFactor),
        (1, 3, InvalidReplicationFactor),
    ],
)
def test_spreading_refuses_numbers_out_of_range(
    partitions: int, replication_factor: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        spread([1, 2], partitions, replication_factor, start=0, shift=0)


@pytest.mark.parametrize(
    ("assignment", "error"),
    [
        ([], InvalidPartitions),
        ([[]], InvalidReplicaAssignment),
        ([[1, 1]], InvalidReplicaAssignment),
        ([[1, 9]], InvalidReplicaAssignment),
        ([[1, 2], [1]], InvalidReplicaAssignment),
    ],
)
def test_manual_assignment_is_checked(assignment: list[list[int]], error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_assignment(assignment, {1, 2})
