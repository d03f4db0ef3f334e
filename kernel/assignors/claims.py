"""Step one of the sticky strategies: who had what, when members contradict each other.

Members tell what they had and in which generation; some were away for a round, some never heard that they lost
it. Of two that claim one partition the one with the higher generation wins; two of the same generation have both
lost it (KAFKA-12984, KAFKA-14639), whatever a third one says later. This happens before anybody asks whether the
claimant still subscribes to the topic, so a member that has unsubscribed can cost another its partition.

Kafka takes one claimant's generation from where its strategy keeps it (user data, or the subscription) and that of
the claimant met before it always from the subscription; so do we. A claim on a partition that does not exist is
dropped. Kafka drops it only when the whole topic is gone, and then deals out others twice.

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
    """What is left of the claims, members in Kafka's order; partitions in the order in which they were claimed."""

    owned: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)
    told: dict[str, Claim] = field(default_factory=dict)  #: as the members put it
    contested: set[TopicPartition] = field(default_factory=set)  #: claimed twice in one generation
    generation: int = NO_GENERATION  #: the highest of all


def sticky_claim(subscription: MemberSubscription) -> Claim:
    """An eager member has given everything back before it joins, so its claim travels as user data.

    A subscription without any user data is taken at its word: owned partitions and generation.
    """
    if subscription.user_data is None:
        return Claim(subscription.owned, subscription.generation)
    return decode_sticky(subscription.user_data)


def cooperative_claim(subscription: MemberSubscription) -> Claim:
    """Owned partitions are part of the subscription; the generation too since 3.4, before it was user data."""
    if subscription.generation is not None:
        return Claim(subscription.owned, subscription.generation)
    return Claim(subscription.owned, decode_cooperative(subscription.user_data))


def settle(
    sizes: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], Claim],
) -> Claims:
    """See the module; `sizes` are those of the existing topics."""
    claims = Claims()
    claimant: dict[TopicPartition, str] = {}
    for member in texts_in_hash_order(subscriptions):
        claim = claims.told[member] = claim_of(subscriptions[member])
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
