"""`random`: assigns every partition to a random subscriber. The example of a plugged-in strategy.

It is not built in. Our own package offers it through an entry point, as a user's package would
(docs/writing-an-assignor.md). The choice is a digest of the generation, the subscribers and the partition, so that
every member computes the same assignment for a group, and a different one for the next generation.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kernel.assignors.subscription import members_in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription


def assign_at_random(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """The strategy. A member's partitions are sorted by topic and number."""
    members = members_in_order(subscriptions)
    generation = max((s.generation or 0 for s in subscriptions.values()), default=0)
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic in sorted(partitions_per_topic):
        subscribers = [member for member in members if topic in subscriptions[member].topics]
        for number in range(partitions_per_topic[topic] if subscribers else 0):
            seed = repr((generation, subscribers, topic, number)).encode("utf-8")
            drawn = int.from_bytes(hashlib.sha256(seed).digest()[:8], "big")
            assignment[subscribers[drawn % len(subscribers)]].append(TopicPartition(topic, number))
    return assignment
