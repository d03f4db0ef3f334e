"""`sticky`: as even as round robin, and everybody keeps as much as that allows (Kafka's StickyAssignor, 4.1).

Members that all subscribe to the same topics get the fast algorithm below, others the general one
(`sticky_general`). The strategy is eager: everything stops for a rebalance, and most of it starts where it was.

Equal subscriptions: with P partitions and M members, everybody is due min = P div M, and P mod M members one more.
Members are gone through in hash order and keep what they had up to that; who had more than min while the longer
shares lasted keeps min + 1. What is left is dealt to those below min, one each in turns, then to those at min.

Source: AbstractStickyAssignor of kafka-clients 4.1.1 without racks (KAFKA-9987, KAFKA-12464, KAFKA-13081).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kernel.assignors.claims import settle, sticky_claim
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.sticky_general import GeneralAssignment
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kernel.assignors.claims import Claims
    from kernel.assignors.sticky_data import Claim
    from kernel.assignors.subscription import MemberSubscription


def assign_sticky(
    partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """See the module; a member's partitions come in the order in which it got them, kept ones first."""
    return stick(partitions_per_topic, subscriptions, sticky_claim)[0]


def stick(
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], Claim],
) -> tuple[dict[str, list[TopicPartition]], set[TopicPartition] | None]:
    """The assignment, and the partitions that go from one claimant to somebody else.

    The general algorithm does not know the latter: None.
    """
    if not subscriptions:
        return {}, set()
    topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    sizes = {t: partitions_per_topic[t] for t in topics if partitions_per_topic.get(t, 0) > 0}
    claims = settle(sizes, subscriptions, claim_of)
    if all(topics.issubset(subscription.topics) for subscription in subscriptions.values()):
        constrained = ConstrainedAssignment(sizes, claims)
        constrained.keep()
        constrained.deal()
        return constrained.assignment, constrained.transferring
    return GeneralAssignment(sizes, subscriptions, claims).build(), None


def by_topic(tp: TopicPartition) -> tuple[bytes, int]:
    return java_order(tp.topic), tp.partition


def by_number(tp: TopicPartition) -> tuple[int, bytes]:
    return tp.partition, java_order(tp.topic)


class ConstrainedAssignment:
    """One computation for equal subscriptions; `keep`, then `deal`, then the answer is in `assignment`."""

    def __init__(self, sizes: Mapping[str, int], claims: Claims) -> None:
        self._sizes = sizes
        self._claims = claims
        self._least, self._extras_left = divmod(sum(sizes.values()), len(claims.owned))
        self._most = self._least + bool(self._extras_left)
        self._below: list[str] = []
        self._at_least: list[str] = []
        self._released: dict[TopicPartition, str] = {}  #: had too many: partition -> who had it
        self.assignment: dict[str, list[TopicPartition]] = {member: [] for member in claims.owned}
        self.transferring: set[TopicPartition] = set()

    def keep(self) -> None:
        """Everybody keeps what the shares allow, smallest partition numbers first."""
        for member in texts_in_hash_order(self._claims.owned):  # a table anew, which may be another order if crowded
            had = sorted((tp for tp in self._claims.owned[member] if tp not in self._claims.contested), key=by_number)
            if len(had) < self._least:
                kept = len(had)
                self._below.append(member)
            elif len(had) >= self._most and self._extras_left:
                kept = self._most
                self._extras_left -= 1
                if not self._extras_left:
                    self._at_least.clear()
            else:
                kept = self._least
                if self._extras_left:
                    self._at_least.append(member)
            self.assignment[member] += had[:kept]
            self._released.update(dict.fromkeys(had[kept:], member))

    def deal(self) -> None:
        """What nobody kept goes round among those below the minimum, then one each to those at it."""
        waiting = deque(sorted(self._at_least, key=java_order))
        hungry = deque(sorted(self._below, key=java_order))
        for tp in self._left_over():
            if hungry:
                member = hungry.popleft()
                self._give(tp, member)
                (waiting if len(self.assignment[member]) == self._least else hungry).append(member)
            else:
                self._give(tp, waiting.popleft())

    def _left_over(self) -> Sequence[TopicPartition]:
        kept = {tp for partitions in self.assignment.values() for tp in partitions}
        every = (TopicPartition(t, n) for t in sorted(self._sizes, key=java_order) for n in range(self._sizes[t]))
        return [tp for tp in every if tp not in kept]

    def _give(self, tp: TopicPartition, member: str) -> None:
        self.assignment[member].append(tp)
        if self._released.get(tp, member) != member or tp in self._claims.contested:
            self.transferring.add(tp)
