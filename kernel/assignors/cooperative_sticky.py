"""`cooperative-sticky`: sticky, but no member gets a partition that another may still be reading (KIP-429).

Partitions that change owners are withheld from the assignment. Their owner sees that it lost them, stops, and rejoins;
the second rebalance assigns them. Partitions without an owner are assigned at once.

With equal subscriptions, a partition is withheld if it goes to another member than its only valid claimant, or if it
was claimed twice in one generation. With different subscriptions, it is withheld if it goes to a member that does not
claim it while another member claims it, even with a stale claim or without a subscription.

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
    counted: Mapping[str, MemberSubscription] | None = None,
) -> dict[str, list[TopicPartition]]:
    """The strategy. The next rebalance assigns partitions that are in no list. `exact_up_to`: see `assign_sticky`.

    `counted` has the subscriptions with only those claims that count, if not all do (`cooperative_faults`).
    """
    assignment, alike = stick(
        partitions_per_topic,
        subscriptions if counted is None else counted,
        cooperative_claim,
        exact_up_to=exact_up_to,
        withholding=True,
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
