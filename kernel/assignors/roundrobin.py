"""`roundrobin`: assigns all partitions of all topics in turn (Kafka's RoundRobinAssignor, 0.9 to 4.1).

One pointer cycles over *all* members. It skips members that do not subscribe to the topic, and continues after the
one that got the partition. With equal subscriptions loads differ by at most one; with unequal ones they may differ a
lot (second example of article 000 in docs/sources.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.subscription import java_order, members_in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from kernel.assignors.subscription import MemberSubscription


def assign_round_robin(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """The strategy. Topics are assigned in Java's order of names, partitions in ascending order."""
    topics_of = {member: frozenset(subscriptions[member].topics) for member in members_in_order(subscriptions)}
    topics = sorted(frozenset[str]().union(*topics_of.values()), key=java_order)
    partitions = (TopicPartition(t, number) for t in topics for number in range(partitions_per_topic.get(t, 0)))
    return assign_in_turn(partitions, list(topics_of), topics_of)


def assign_in_turn(
    partitions: Iterable[TopicPartition], takers: Sequence[str], topics_of: Mapping[str, AbstractSet[str]]
) -> dict[str, list[TopicPartition]]:
    """{taker: its partitions in the order of assignment} for all takers, in the given order.

    Each partition's topic must be among the topics of at least one taker.
    """
    taken: dict[str, list[TopicPartition]] = {taker: [] for taker in takers}
    pointer = 0
    for tp in partitions:
        while tp.topic not in topics_of[takers[pointer]]:
            pointer = (pointer + 1) % len(takers)
        taken[takers[pointer]].append(tp)
        pointer = (pointer + 1) % len(takers)
    return taken
