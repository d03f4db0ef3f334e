"""`range`: divides each topic into consecutive ranges, one for each member (Kafka's RangeAssignor, 0.9 to 4.1).

Topics are independent, and the first members get the longer ranges of every topic. With many topics of few partitions,
the same members always get more (articles 000, 001 and 003 in docs/sources.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.subscription import members_in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription


def piece(size: int, pieces: int, position: int) -> tuple[int, int]:
    """(start, length) of a range when `size` items are divided: the first size % pieces ranges are one longer."""
    quotient, remainder = divmod(size, pieces)
    return quotient * position + min(position, remainder), quotient + (position < remainder)


def assign_ranges(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """The strategy. A member's partitions are sorted by topic and number."""
    subscribers: dict[str, list[str]] = {}
    for member in members_in_order(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            subscribers.setdefault(topic, []).append(member)
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic in sorted(subscribers):
        members = subscribers[topic]
        for position, member in enumerate(members):
            start, length = piece(partitions_per_topic.get(topic, 0), len(members), position)
            assignment[member] += [TopicPartition(topic, partition) for partition in range(start, start + length)]
    return assignment
