"""`roundrobin`: all partitions of all topics are dealt like cards (Kafka's RoundRobinAssignor, 0.9 to 4.1).

One pointer goes round over *all* members; one that does not subscribe to the topic is passed over, and the
pointer goes on behind whoever was served. With equal subscriptions loads differ by at most one; with unequal
ones they may differ a lot (seed 000's second example).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.subscription import java_order, members_in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription


def deal_round_robin(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """See the module; topics are dealt in Java's order of their names, partitions ascending."""
    members = members_in_order(subscriptions)
    topics_of = {member: frozenset(subscriptions[member].topics) for member in members}
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    pointer = 0
    for topic in sorted(frozenset[str]().union(*topics_of.values()), key=java_order):
        for partition in range(partitions_per_topic.get(topic, 0)):
            while topic not in topics_of[members[pointer]]:
                pointer = (pointer + 1) % len(members)
            assignment[members[pointer]].append(TopicPartition(topic, partition))
            pointer = (pointer + 1) % len(members)
    return assignment
