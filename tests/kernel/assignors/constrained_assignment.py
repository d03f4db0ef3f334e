"""Kafka's algorithm for equal subscriptions, one partition at a time: the reference for the array version.

Goes through members in hash order; each keeps its partitions up to its share, and the rest are assigned in turn.

Source: AbstractStickyAssignor.ConstrainedAssignmentBuilder of kafka-clients 4.1.1 without racks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from kernel.assignors.claims import Claims, cooperative_claim, settle, sticky_claim
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition


def assign_one_by_one(strategy, partitions_per_topic, subscriptions):
    """The result of `sticky` or `cooperative-sticky` for equal subscriptions, lists in Kafka's order."""
    (topics,) = {frozenset(subscription.topics) for subscription in subscriptions.values()}
    sizes = {topic: partitions_per_topic[topic] for topic in topics if partitions_per_topic.get(topic, 0) > 0}
    claims = settle(sizes, subscriptions, sticky_claim if strategy == "sticky" else cooperative_claim)
    computed = ConstrainedAssignment(sizes, claims)
    computed.keep()
    computed.give_rest()
    withheld = computed.transferring if strategy == "cooperative-sticky" else ()
    return {member: [tp for tp in given if tp not in withheld] for member, given in computed.assignment.items()}


def by_number(tp: TopicPartition) -> tuple[int, bytes]:
    return tp.partition, java_order(tp.topic)


class ConstrainedAssignment:
    """One computation for equal subscriptions: call `keep`, then `give_rest`; the result is in `assignment`."""

    def __init__(self, sizes: Mapping[str, int], claims: Claims) -> None:
        self._sizes = sizes
        self._claims = claims
        self._least, self._extras_left = divmod(sum(sizes.values()), len(claims.owned))
        self._most = self._least + bool(self._extras_left)
        self._below: list[str] = []
        self._at_least: list[str] = []
        self._released: dict[TopicPartition, str] = {}  #: released by members with too many: partition -> former owner
        self.assignment: dict[str, list[TopicPartition]] = {member: [] for member in claims.owned}
        self.transferring: set[TopicPartition] = set()

    def keep(self) -> None:
        """Each member keeps what its share allows, smallest partition numbers first."""
        for member in texts_in_hash_order(self._claims.owned):  # a new table, whose order may differ with tree bins
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

    def give_rest(self) -> None:
        """Assign the other partitions in turn to members below the minimum, then one each to members at it."""
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
