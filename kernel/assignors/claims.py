"""Step one of the sticky strategies: find the former owners from conflicting claims.

Each member claims the partitions that it had, in a generation. Some missed a rebalance or never learned of a loss. If
two members claim a partition, the higher generation wins; with equal generations both lose it (KAFKA-12984,
KAFKA-14639), whatever a third claims later. Subscriptions are checked only afterwards, so an unsubscribed member can
cost another its partition.

Like Kafka, this reads the generation of the claim at hand from where the strategy stores it (user data or the
subscription), but that of the previous claimant always from the subscription. Claims on partitions that do not exist
are dropped. Kafka drops them only if the whole topic is gone, and otherwise assigns other partitions twice.

Source: AbstractStickyAssignor.allSubscriptionsEqual of kafka-clients 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.sticky_data import NO_GENERATION, Claim, decode_cooperative, decode_sticky

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.assignors.subscription import MemberSubscription
    from kernel.values import TopicPartition


@dataclass(slots=True)
class Claims:
    """The claims and the valid ones among them: members in Kafka's order, partitions in the order of the claims."""

    owned: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)  #: the valid claims
    made: dict[str, Claim] = field(default_factory=dict)  #: as the members sent them
    contested: set[TopicPartition] = field(default_factory=set)  #: claimed twice in one generation
    generation: int = NO_GENERATION  #: the highest of all claims


def sticky_claim(subscription: MemberSubscription) -> Claim:
    """The claim of an eager member. It gives up everything before it joins, so its claim is in the user data.

    Without user data, its owned partitions and generation are used.
    """
    if subscription.user_data is None:
        return Claim(subscription.owned, subscription.generation)
    return decode_sticky(subscription.user_data)


def cooperative_claim(subscription: MemberSubscription) -> Claim:
    """The claim of a cooperative member: its owned partitions and generation (before 3.4 in the user data)."""
    if subscription.generation is not None:
        return Claim(subscription.owned, subscription.generation)
    return Claim(subscription.owned, decode_cooperative(subscription.user_data))


def settle(
    sizes: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], Claim],
) -> Claims:
    """Find the former owners, as the module docstring says. `sizes` has the existing topics."""
    claims = Claims()
    claimant: dict[TopicPartition, str] = {}
    for member in texts_in_hash_order(subscriptions):
        claim = claims.made[member] = claim_of(subscriptions[member])
        generation = NO_GENERATION if claim.generation is None else claim.generation
        claims.generation = max(claims.generation, generation)
        mine: dict[TopicPartition, None] = {}
        claims.owned[member] = mine
        for tp in claim.partitions:
            if not 0 <= tp.partition < sizes.get(tp.topic, 0):
                continue
            other = claimant.get(tp)
            if other is not None:
                in_subscription = subscriptions[other].generation
                theirs = NO_GENERATION if in_subscription is None else in_subscription
                if generation < theirs:
                    continue
                claims.owned[other].pop(tp, None)
                claimant[tp] = member
                if generation == theirs:
                    claims.contested.add(tp)
                    continue
            mine[tp] = None
            claimant[tp] = member
    return claims
