"""The leader's assignment: the log names the algorithm, and an option sets the size from which it changes."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from coordinator.client.classic.group_leader import GroupLeader
from coordinator.membership.classic.effects import RunAssignor
from coordinator.membership.classic.events import GroupMember
from coordinator.protocol.consumer_protocol import decode_assignment, encode_subscription
from kernel.assignors.subscription import MemberSubscription
from kernel.runtime import REAL
from kernel.values import TopicPartition

SIZES = {"t": 3, "u": 2}


def leader(exact_partitions_max: int = 0, fault: int = 0) -> GroupLeader:
    """A leader that already knows SIZES."""
    metadata = SimpleNamespace(sizes=lambda: SIZES)
    config = SimpleNamespace(
        allow_auto_create_topics=False,
        sticky_exact_partitions_max=exact_partitions_max,
        fault_kafka_12984=fault == 12984,
        fault_kafka_14639=fault == 14639,
    )
    client = SimpleNamespace(metadata=metadata)
    return GroupLeader(SimpleNamespace(client=client, config=config, runtime=REAL))  # type: ignore[arg-type]  # it uses nothing else


def members(*topics: tuple[str, ...]) -> tuple[GroupMember, ...]:
    return tuple(
        GroupMember(f"m{n}", None, encode_subscription(MemberSubscription(topics=names)))
        for n, names in enumerate(topics)
    )


@pytest.mark.parametrize("protocol", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize(
    ("group", "exact_partitions_max", "algorithm"),
    [
        (members(("t", "u"), ("u", "t")), 0, "equal subscriptions"),
        (members(("t", "u"), ("u",)), 5, "Kafka's own order"),
        (members(("t", "u"), ("u",)), 4, "balanced arrays"),
    ],
)
def test_leader_logs_the_algorithm_of_its_assignment(
    protocol: str,
    group: tuple[GroupMember, ...],
    exact_partitions_max: int,
    algorithm: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "coordinator.client.classic.group_leader")
    group_leader = leader(exact_partitions_max)
    decided = asyncio.run(group_leader.decide(RunAssignor(1, protocol, group), 7, wanted=lambda: True))
    assert caplog.messages == [f"generation 7 assigned by {protocol} ({algorithm}): 5 partitions, 2 members"]
    assert sorted(tp for data in decided.values() for tp in decode_assignment(data).partitions) == [
        (topic, n) for topic in "tu" for n in range(SIZES[topic])
    ]
    assert group_leader.assigned_sizes == SIZES


@pytest.mark.parametrize(
    ("protocol", "fault", "assigned"),
    [
        ("cooperative-sticky", 0, {"a": [0], "b": [2], "c": [1]}),
        ("cooperative-sticky", 14639, {"a": [0], "b": [1], "c": [2]}),
        ("cooperative-sticky", 12984, {"a": [0], "b": [0], "c": [1]}),
        ("range", 12984, {"a": [0], "b": [1], "c": [2]}),
    ],
)
def test_leader_of_cooperative_members_has_the_fault_that_a_setting_brings_back(
    protocol: str, fault: int, assigned: dict[str, list[int]]
) -> None:
    """As in KAFKA-12984 and KAFKA-14639: `b` has missed the round in which `a` got its partition."""
    claims = {"a": (2, [0]), "b": (1, [0, 2]), "c": (-1, [])}
    group = tuple(
        GroupMember(
            member,
            None,
            encode_subscription(
                MemberSubscription(
                    topics=("t",), owned=tuple(TopicPartition("t", n) for n in owned), generation=generation
                )
            ),
        )
        for member, (generation, owned) in claims.items()
    )
    decided = asyncio.run(leader(fault=fault).decide(RunAssignor(1, protocol, group), 7, wanted=lambda: True))
    found = {
        member: sorted(tp.partition for tp in decode_assignment(data).partitions) for member, data in decided.items()
    }
    assert found == assigned
