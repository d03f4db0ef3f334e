"""`cooperative-sticky`: sticky, but nobody is given what another may still be reading (KIP-429).

What changes hands is withheld from the answer: its owner sees that it is no longer assigned, stops, and rejoins;
the second rebalance gives out what is free by then. What nobody has is given out at once.

Withheld is, with equal subscriptions, whatever goes to another than its one valid claimant, partitions that were
claimed twice in one generation included; with different ones, whatever goes to a member that does not claim it
while one that does not get it claims it, stale claims and those of members that have unsubscribed included.

Source: CooperativeStickyAssignor of kafka-clients 4.1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.claims import cooperative_claim
from kernel.assignors.sticky import EXACT_PARTITIONS_MAX, stick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription
    from kernel.values import TopicPartition


def assign_cooperative_sticky(
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    *,
    exact_up_to: int = EXACT_PARTITIONS_MAX,
) -> dict[str, list[TopicPartition]]:
    """See the module; a partition that is in no list is given out in the rebalance that follows.

    `exact_up_to` is that of `assign_sticky`.
    """
    assignment, alike = stick(
        partitions_per_topic, subscriptions, cooperative_claim, exact_up_to=exact_up_to, withholding=True
    )
    if alike:
        return assignment
    withheld = _changing_hands(subscriptions, assignment)
    return {member: [tp for tp in partitions if tp not in withheld] for member, partitions in assignment.items()}


def _changing_hands(
    subscriptions: Mapping[str, MemberSubscription], assignment: Mapping[str, list[TopicPartition]]
) -> set[TopicPartition]:
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member, partitions in assignment.items():
        owned = set(subscriptions[member].owned)
        added |= set(partitions) - owned
        revoked |= owned - set(partitions)
    return added & revoked
