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

SIZES = {"t": 3, "u": 2}


def leader(exact_partitions_max: int) -> GroupLeader:
    """A leader that already knows SIZES."""
    metadata = SimpleNamespace(sizes=lambda: SIZES)
    config = SimpleNamespace(allow_auto_create_topics=False, sticky_exact_partitions_max=exact_partitions_max)
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
