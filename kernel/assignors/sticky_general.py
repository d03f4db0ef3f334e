"""The sticky strategies' algorithm for members that subscribe to different topics.

Everybody keeps what it had and still wants; what is free goes to whoever may have it and has least, topics with
few subscribers first. Then partitions move, one by one, from a member to one that has at least two less, until
none can: for any two members that differ by two or more, nothing of the fuller one could go to the other. If that
has not made the whole any more even, all moves are undone.

A partition that somebody had in an older generation goes back there first, when that makes things more even, even
if that member has unsubscribed from the topic. A former owner that takes no part any more is passed over; Kafka's
leader fails there with a NullPointerException (3 of 9,240 random rounds).

Source: AbstractStickyAssignor.GeneralAssignmentBuilder of kafka-clients 4.1.1 without racks (KAFKA-12675). The
question whether all is even, which Kafka asks of every pair of members and partitions, is asked here of topics:
the largest owner against the smallest subscriber; the answer is the same.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from kernel.assignors.movements import Movements
from kernel.assignors.sticky_data import NO_GENERATION
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kernel.assignors.claims import Claims
    from kernel.assignors.subscription import MemberSubscription

#: Walks over all partitions before the balancing gives up. One or two are mostly enough, hundreds where partitions seep
#: through a chain of members each of which shares one topic with the next. When partitions go back to former owners,
#: and others move in their place (see `movements`), they can go in a circle: that is noticed, and ends it. Kafka has no
#: limit: its leader never answers then.
WALKS = 1_000

#: With fewer subscribers they are compared; with more, the first of them among all members by load is looked for.
FEW_TAKERS = 64

Rank = tuple[int, bytes, str]


class GeneralAssignment:
    """One computation; `build` does it."""

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
        self._ranked: list[Rank] = []  #: who takes part, by load and id
        self._part: Collection[str] = self._held.keys()  #: the same
        #: Of a topic with many subscribers: none of them that takes part comes before this in `_ranked`.
        self._no_taker_before: dict[str, Rank] = {}
        self._movements = Movements()
        self._even: bool | None = None  #: None until asked since the last move
        self._lopsided = list(sizes)  #: all topics, those that were found lopsided lately first

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
        """Whether it lacks something that it could have, or has something that another could have."""
        return not self._is_full(member) or any(tp.topic in movable for tp in self._held[member])

    def _balance(self, partitions: Sequence[TopicPartition]) -> bool:
        """Whether anything moved."""
        moved = False
        seen: set[int] = set()
        for _ in range(WALKS):
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
        """To whom the partition should go; None where it should stay."""
        load = len(self._held[self._owner[tp]])
        former = self._before.get(tp)
        if former is not None and load > len(self._held[former]) + 1:
            return former
        least = self._least(tp.topic)
        return least if load > len(self._held[least]) + 1 else None

    def _least(self, topic: str) -> str:
        """Who takes part, could have the topic, and has least."""
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
        """Whether any topic is; the last one that was is looked at first, most likely it still is."""
        place = next((place for place, topic in enumerate(self._lopsided) if self._is_lopsided(topic)), None)
        if place is None:
            return False
        self._lopsided.insert(0, self._lopsided.pop(place))
        return True

    def _is_lopsided(self, topic: str) -> bool:
        """Whether somebody has two or more partitions less than one of the topic's owners, and could have more."""
        loads = (len(self._held[member]) for member in self._takers[topic] if not self._is_full(member))
        most = max(len(self._held[member]) for member in self._holders[topic])
        return any(load + 1 < most for load in loads)

    def _is_full(self, member: str) -> bool:
        """By number: one that was given back what it has unsubscribed from counts as full before it is."""
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
    """Who says that it had a partition in a generation that is not the newest; the latest of them, first come."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member, claim in claims.told.items():
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation < claims.generation:
            for tp in claim.partitions:
                if tp not in found or generation > found[tp][0]:
                    found[tp] = (generation, member)
    return {tp: member for tp, (_, member) in found.items()}


def _unevenness(hands: Iterable[Mapping[TopicPartition, None]]) -> int:
    """The differences between the loads of all pairs, added up."""
    loads = sorted(map(len, hands))
    return sum((2 * position - len(loads) + 1) * load for position, load in enumerate(loads))
