"""`cooperative-sticky` with two faults that it had, one after the other. Both need a member that missed a rebalance.

Such a member claims what it had before. Up to 2.8.0 claims had no generation, and a partition that two members claim
stayed with both: two owners in one generation (KAFKA-12984). Since then only the claims of the highest generation
counted: what the late member claims had no owner and was assigned at once, while the member still reads it
(KAFKA-14639). Since 3.4.1 the higher generation wins each partition, as in `claims`.

Source: AbstractStickyAssignor and CooperativeStickyAssignor of kafka-clients 2.8.0 and 3.4.0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.assignors.checking import BadAssignment
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.sticky_data import NO_GENERATION, decode_cooperative
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kernel.assignors.subscription import MemberSubscription


def assign_by_highest_generation(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """As 2.8.1 to 3.4.0 (KAFKA-14639).

    The generation is that of the member's last assignment, which is in the user data: the one beside its partitions
    (since 3.4) is that of its last JoinGroup.
    """
    of_claims = {
        member: replace(each, generation=_generation(each), user_data=None) for member, each in subscriptions.items()
    }
    highest = max((_generation(each) for each in of_claims.values()), default=NO_GENERATION)
    counted = {
        member: each if each.generation == highest else replace(each, owned=()) for member, each in of_claims.items()
    }
    return assign_cooperative_sticky(partitions_per_topic, subscriptions, counted=counted)


def assign_by_every_claim(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """As 2.4.0 to 2.8.0 (KAFKA-12984), if all members subscribe to the same topics; otherwise as today."""
    topics = {topic for each in subscriptions.values() for topic in each.topics}
    if not all(topics.issubset(each.topics) for each in subscriptions.values()):
        return assign_cooperative_sticky(partitions_per_topic, subscriptions)
    in_order = sorted(topics, key=java_order)
    everything = [TopicPartition(topic, n) for topic in in_order for n in range(partitions_per_topic.get(topic, 0))]
    return _Shares(dict.fromkeys(everything).keys(), subscriptions).filled() if subscriptions else {}


def _generation(subscription: MemberSubscription) -> int:
    stated = decode_cooperative(subscription.user_data)
    generation = subscription.generation if stated is None else stated
    return NO_GENERATION if generation is None else generation


class _Shares:
    """Each member keeps what it claims up to the largest share, whoever else claims it; the rest is shared out."""

    def __init__(self, everything: Collection[TopicPartition], subscriptions: Mapping[str, MemberSubscription]) -> None:
        self._least, more = divmod(len(everything), len(subscriptions))
        self._most = self._least + bool(more)
        self._shares: dict[str, list[TopicPartition]] = {}
        self._given_up: set[TopicPartition] = set()
        self._withheld: set[tuple[str, TopicPartition]] = set()  #: somebody else has to give it up first
        for member in texts_in_hash_order(subscriptions):
            claimed = [tp for tp in subscriptions[member].owned if tp in everything]
            self._shares[member] = claimed[: self._most]
            self._given_up.update(claimed[self._most :])
        kept = {tp for share in self._shares.values() for tp in share}
        self._left = deque(tp for tp in everything if tp not in kept)

    def filled(self) -> dict[str, list[TopicPartition]]:
        """The assignment, without what is withheld. Raises `BadAssignment` where Kafka's leader gives up."""
        below = sorted((member for member, share in self._shares.items() if len(share) < self._least), key=java_order)
        lowest = deque(member for member, share in self._shares.items() if len(share) == self._least)
        full = deque(member for member, share in self._shares.items() if len(share) == self._most)
        while below and self._left:
            for member in tuple(below):
                if self._left:
                    self._give(member, self._left.popleft())
                if len(self._shares[member]) == self._least:
                    below.remove(member)
                    lowest.append(member)
        for member in below:
            while len(self._shares[member]) < self._least:
                if not full:
                    raise BadAssignment("some members have less than their share, and all partitions are assigned")
                taken = self._shares[full.popleft()].pop(0)
                self._given_up.add(taken)
                self._give(member, taken)
            lowest.append(member)
        for tp in self._left:
            if not lowest:
                raise BadAssignment("some partitions are unassigned, and all members have their share")
            self._give(lowest.popleft(), tp)
        return {
            member: [tp for tp in share if (member, tp) not in self._withheld] for member, share in self._shares.items()
        }

    def _give(self, member: str, tp: TopicPartition) -> None:
        self._shares[member].append(tp)
        if tp in self._given_up:
            self._withheld.add((member, tp))
