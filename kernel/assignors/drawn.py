"""`random`: every partition is drawn for by its subscribers. The example of a strategy that is plugged in.

It is not built in but found by an entry point of our own package, as a user's is (docs/writing-an-assignor.md). A
draw is the digest of what is at stake, so that the same group gets the same answer wherever it is computed, and the
next generation another.
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
    """See the module; a member's partitions come in the order of topics and numbers."""
    members = members_in_order(subscriptions)
    generation = max((s.generation or 0 for s in subscriptions.values()), default=0)
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic in sorted(partitions_per_topic):
        takers = [member for member in members if topic in subscriptions[member].topics]
        for number in range(partitions_per_topic[topic] if takers else 0):
            stake = repr((generation, takers, topic, number)).encode("utf-8")
            draw = int.from_bytes(hashlib.sha256(stake).digest()[:8], "big")
            assignment[takers[draw % len(takers)]].append(TopicPartition(topic, number))
    return assignment
