"""The sticky algorithm for members that subscribe to different topics.

Members keep the partitions that they had and still subscribe to. Free partitions go to the least loaded subscribers,
topics with few subscribers first. Then partitions move one by one to members that have at least two less, until none
can: if two members differ by two or more, no partition of the fuller one could go to the other. If the result is no
more balanced than before, all moves are undone.

A partition first moves back to its owner of an older generation if that improves the balance, even if that member has
unsubscribed from the topic. A former owner that no longer takes part is skipped; Kafka's leader fails there with a
NullPointerException (3 of 9,240 random rounds).

Source: AbstractStickyAssignor.GeneralAssignmentBuilder of kafka-clients 4.1.1 without racks (KAFKA-12675). To check
the balance, Kafka compares all pairs of members and their partitions; this compares, for each topic, the most loaded
owner with the least loaded subscriber, which is equivalent.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from kernel.assignors.hash_order import PartitionTable
from kernel.assignors.sticky_data import NO_GENERATION
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kernel.assignors.claims import Claims
    from kernel.assignors.subscription import MemberSubscription


class Movements:
    """The original and current owner of each moved partition, and for each topic the partitions of each such pair.

    They are kept to avoid moving partitions back and forth. If a partition of a topic moved from A to B, and another
    one of that topic should now move from B to A, the first one moves back instead: the result is as balanced, with one
    move less.
    """

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], PartitionTable]] = {}

    def instead_of(self, tp: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """The partition to move to `taker` when `tp` would move there from `giver`."""
        pairs = self._by_topic.get(tp.topic, {})
        origin = self._moved[tp][0] if tp in self._moved else giver
        opposite = pairs.get((taker, origin))
        return tp if opposite is None else opposite.first()

    def record(self, tp: TopicPartition, giver: str, taker: str) -> None:
        """Record that `tp` moved from `giver` to `taker`."""
        origin = self._forget(tp) if tp in self._moved else giver
        if origin != taker:
            self._moved[tp] = (origin, taker)
            self._by_topic.setdefault(tp.topic, {}).setdefault((origin, taker), PartitionTable()).add(tp)

    def _forget(self, tp: TopicPartition) -> str:
        pair = self._moved.pop(tp)
        pairs = self._by_topic[tp.topic]
        pairs[pair].remove(tp)
        if not len(pairs[pair]):
            del pairs[pair]
        return pair[0]


#: The most passes over all partitions. One or two usually suffice; a chain of members, each of which shares one topic
#: with the next, needs hundreds. Moves back to former owners, with other partitions moving instead (see `Movements`),
#: can form a cycle, which is detected and ends the balancing. Kafka has no limit: its leader then never answers.
PASSES_MAX = 1_000

#: Up to this many subscribers are compared with each other; with more, members are searched in the order of load.
FEW_TAKERS = 64

Rank = tuple[int, bytes, str]


class GeneralAssignment:
    """The computation of one assignment by `build`."""

    def __init__(
        self, sizes: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription], claims: Claims
    ) -> None:
        self._topics_of = {m: frozenset(s.topics) & sizes.keys() for m, s in subscriptions.items()}
        self._room = {m: sum(sizes[topic] for topic in topics) for m, topics in self._topics_of.items()}
        self._takers: dict[str, list[str]] = {topic: [] for topic in sizes}
        for member in claims.owned:
            for topic in self._topics_of[member]:
                self._takers[topic].append(member)
        order = sorted(sizes, key=lambda topic: (len(self._takers[topic]), java_order(topic)))
        self._every = [TopicPartition(topic, n) for topic in order for n in range(sizes[topic])]
        self._sizes = sizes
        self._keys = {member: java_order(member) for member in claims.owned}
        self._held: dict[str, dict[TopicPartition, None]] = {
            member: {tp: None for tp in owned if tp.topic in self._topics_of[member]}
            for member, owned in claims.owned.items()
        }
        self._lost = any(len(self._held[member]) < len(owned) for member, owned in claims.owned.items())
        self._owner = {tp: member for member, held in self._held.items() for tp in held}
        self._holders = self._count_holders()
        self._before = _older_owners(claims)
        self._ranked: list[Rank] = []  #: the participating members by load and id
        self._part: Collection[str] = self._held.keys()  #: the participating members
        #: For topics with many subscribers: no participating subscriber comes before this rank in `_ranked`.
        self._no_taker_before: dict[str, Rank] = {}
        self._movements = Movements()
        self._even: bool | None = None  #: None if not computed since the last move
        self._lopsided = list(sizes)  #: all topics, recently unbalanced ones first

    def build(self) -> dict[str, list[TopicPartition]]:
        self._ranked = sorted(self._rank(member) for member in self._held)
        from_nothing = self._ranked[-1][0] == 0
        free = [tp for tp in self._every if tp not in self._owner]
        for tp in free:
            self._put(tp, self._least(tp.topic))
        movable = {topic for topic, takers in self._takers.items() if len(takers) > 1}
        self._ranked = [rank for rank in self._ranked if self._takes_part(rank[2], movable)]
        saved = {member: dict(self._held[member]) for *_, member in self._ranked}
        self._part = saved.keys()
        self._before = {tp: member for tp, member in self._before.items() if member in saved}
        if not self._lost:
            self._balance([tp for tp in free if tp.topic in movable])
        moved = self._balance([tp for tp in self._every if tp.topic in movable])
        if moved and not from_nothing and _unevenness(self._held[m] for m in saved) >= _unevenness(saved.values()):
            self._held.update(saved)
        return {member: list(held) for member, held in self._held.items()}

    def _takes_part(self, member: str, movable: set[str]) -> bool:
        """Whether the member could get another partition, or has one that could go to another member."""
        return not self._is_full(member) or any(tp.topic in movable for tp in self._held[member])

    def _balance(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions until the group is balanced. Returns whether any moved."""
        moved = False
        seen: set[int] = set()
        for _ in range(PASSES_MAX):
            again = False
            for tp in partitions:
                if self._is_even():
                    break
                taker = self._taker(tp)
                if taker is not None:
                    self._move(self._movements.instead_of(tp, self._owner[tp], taker), taker)
                    again = moved = True
            if not again:
                break
            owners = hash(tuple(self._owner.values()))
            if owners in seen:
                break
            seen.add(owners)
        return moved

    def _taker(self, tp: TopicPartition) -> str | None:
        """The member to which the partition should move, or None."""
        load = len(self._held[self._owner[tp]])
        former = self._before.get(tp)
        if former is not None and load > len(self._held[former]) + 1:
            return former
        least = self._least(tp.topic)
        return least if load > len(self._held[least]) + 1 else None

    def _least(self, topic: str) -> str:
        """The least loaded participating subscriber of the topic."""
        takers = self._takers[topic]
        if len(takers) < FEW_TAKERS:
            return min(self._rank(taker) for taker in takers if taker in self._part)[2]
        before = self._no_taker_before.get(topic)
        start = 0 if before is None else bisect_left(self._ranked, before)
        places = range(start, len(self._ranked))
        place = next(place for place in places if topic in self._topics_of[self._ranked[place][2]])
        self._no_taker_before[topic] = self._ranked[place]
        return self._ranked[place][2]

    def _is_even(self) -> bool:
        if self._even is None:
            self._even = self._ranked[0][0] >= self._ranked[-1][0] - 1 or not self._has_lopsided()
        return self._even

    def _has_lopsided(self) -> bool:
        """Whether any topic is unbalanced. The last one that was is checked first, as it probably still is."""
        place = next((place for place, topic in enumerate(self._lopsided) if self._is_lopsided(topic)), None)
        if place is None:
            return False
        self._lopsided.insert(0, self._lopsided.pop(place))
        return True

    def _is_lopsided(self, topic: str) -> bool:
        """Whether a subscriber that could get more has at least two partitions less than an owner."""
        loads = (len(self._held[member]) for member in self._takers[topic] if not self._is_full(member))
        most = max(len(self._held[member]) for member in self._holders[topic])
        return any(load + 1 < most for load in loads)

    def _is_full(self, member: str) -> bool:
        """Whether it has as many partitions as its topics. Partitions of unsubscribed topics count too."""
        return len(self._held[member]) == self._room[member]

    def _move(self, tp: TopicPartition, taker: str) -> None:
        giver = self._owner[tp]
        self._movements.record(tp, giver, taker)
        self._unrank(giver)
        del self._held[giver][tp]
        self._holders[tp.topic][giver] -= 1
        if not self._holders[tp.topic][giver]:
            del self._holders[tp.topic][giver]
        rank = self._rank(giver)
        insort(self._ranked, rank)
        for topic in self._topics_of[giver] & self._no_taker_before.keys():
            self._no_taker_before[topic] = min(self._no_taker_before[topic], rank)
        self._put(tp, taker)

    def _put(self, tp: TopicPartition, member: str) -> None:
        self._unrank(member)
        self._held[member][tp] = None
        self._owner[tp] = member
        counts = self._holders[tp.topic]
        counts[member] = counts.get(member, 0) + 1
        insort(self._ranked, self._rank(member))
        self._even = None

    def _rank(self, member: str) -> Rank:
        return len(self._held[member]), self._keys[member], member

    def _unrank(self, member: str) -> None:
        at = bisect_left(self._ranked, self._rank(member))
        assert self._ranked[at][2] == member, member
        del self._ranked[at]

    def _count_holders(self) -> dict[str, dict[str, int]]:
        holders: dict[str, dict[str, int]] = {topic: {} for topic in self._sizes}
        for tp, member in self._owner.items():
            holders[tp.topic][member] = holders[tp.topic].get(member, 0) + 1
        return holders


def _older_owners(claims: Claims) -> dict[TopicPartition, str]:
    """The last claimant of each partition before the newest generation; the first of them if there are several."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member, claim in claims.made.items():
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation < claims.generation:
            for tp in claim.partitions:
                if tp not in found or generation > found[tp][0]:
                    found[tp] = (generation, member)
    return {tp: member for tp, (_, member) in found.items()}


def _unevenness(hands: Iterable[Mapping[TopicPartition, None]]) -> int:
    """The sum of the differences between the loads of all pairs."""
    loads = sorted(map(len, hands))
    return sum((2 * position - len(loads) + 1) * load for position, load in enumerate(loads))
