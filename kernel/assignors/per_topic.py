"""`range`: each topic is cut into consecutive pieces, one a member (Kafka's RangeAssignor, 0.9 to 4.1).

Topics are independent of each other, and the first members get the longer pieces of every topic: with many
topics of few partitions the same members are always ahead (seeds 000, 001, 003).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.subscription import members_in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription


def piece(size: int, pieces: int, position: int) -> tuple[int, int]:
    """(start, length) of a piece when `size` things are cut into `pieces`: the first size % pieces are one longer."""
    quotient, remainder = divmod(size, pieces)
    return quotient * position + min(position, remainder), quotient + (position < remainder)


def assign_ranges(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """See the module; a member's partitions come topic by topic, in the order of the topics' names."""
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
