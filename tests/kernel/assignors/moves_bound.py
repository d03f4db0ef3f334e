"""A lower bound for the partitions that must move to make a group fair, whatever the algorithm.

A group is fair if an owner of a topic's partition has at most one partition more than each subscriber of that topic.
Partitions without an owner, or whose owner has unsubscribed, are assigned in any case (`given`). The others (`taken`)
move only if loads have to change, and fairness bounds each single load from below and above. This considers one
component at a time: members linked by topics, P partitions in all, M members. The `share` of a member is what it would
have if each topic were divided equally among its subscribers. The shares of any members sum to at most the sizes of all
topics to which they subscribe, and the shares of all subscribers of some topics to at least the sizes of these topics.

Lower bound. Suppose that a member has at most k, and let A(j) be all members that have at most j. The member is in
A(k). The topics of A(j) are owned by members of A(j + 1), which have at most j + 1 each. So A(j + 1) has at least
(partitions of the topics of A(j)) / (j + 1) members. A(j)'s topics have at least as many partitions as the one member's
topics, as the smallest |A(j)| shares together, and as all topics that fewer than |A(j)| members do not subscribe to.
From j to j + 1 this bound grows or stays equal. If it exceeds M, the member has more than k.

Bounds of other members help: members that must have more than j are not in A(j). So even a single topic gives a bound:
if its subscribers that may have at most j cannot hold it with j each, one of them has more, and each subscriber of the
topic has more than j - 1.

Upper bound. Suppose that a member has at least k, and let B(j) be all members that have at least j. All subscribers of
a topic of which a member of B(j) has a partition are in B(j - 1). B(k - 1) has at least as many members as the most
subscribed of the topics that the member needs to reach k. B(j) has at least j |B(j)| partitions, so the shares of B(j -
1) sum to at least that, and B(j - 1) has at least as many members as the largest shares that sum to it. If j |B(j)|
exceeds P, or |B(j)| exceeds M, the member has less than k.

A member with more than its upper bound gives the difference away. A member with less than its lower bound gets the
difference from others, except for free partitions of topics to which such members subscribe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Shares are fractions: the tolerance for sums that should be whole numbers.
ROUNDING = 1e-6

#: Rounds in which single topics refine each other's bounds; fewer give a weaker bound, which is still valid.
ROUNDS = 10


class Moves(NamedTuple):
    """Numbers of partitions that change owners."""

    given: int  #: without an owner, or its owner has unsubscribed
    taken: int  #: from an owner that could have kept them

    @property
    def all(self):
        return self.given + self.taken


def moves(starts, subscribed, owner, new):
    """The moves of an assignment; arguments are those of `balanced.balance`, and its result."""
    kept = may_keep(starts, subscribed, owner)
    return Moves(int(np.count_nonzero(~kept & (new >= 0))), int(np.count_nonzero(kept & (new != owner))))


def may_keep(starts, subscribed, owner):
    """bool[N]: whether the partition has an owner that subscribes to it."""
    topic = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return (owner >= 0) & subscribed[owner, topic] if subscribed.size else np.zeros(len(owner), bool)


def moves_lower_bound(starts, subscribed, owner):
    """See the module; arguments are those of `balanced.balance`."""
    sizes = np.diff(starts)
    topic = np.repeat(np.arange(len(sizes)), sizes)
    kept = may_keep(starts, subscribed, owner)
    given = int(np.count_nonzero(subscribed.any(axis=0)[topic] & ~kept))
    loads = np.bincount(owner[kept], minlength=len(subscribed))
    free = np.bincount(topic[~kept], minlength=len(sizes))
    component = components(subscribed & (sizes > 0))
    taken = 0
    for number in range(component.max(initial=-1) + 1):
        members = np.flatnonzero(component == number)
        topics = np.flatnonzero((sizes > 0) & subscribed[members].any(axis=0))
        if len(members) > 1:
            limits = Limits(sizes[topics], subscribed[np.ix_(members, topics)])
            least, most = limits.least(), limits.most()
            surplus = np.maximum(loads[members] - most, 0).sum()
            lack = np.maximum(least - loads[members], 0)
            helped = subscribed[np.ix_(members[lack > 0], topics)].any(axis=0)
            taken += int(max(surplus, lack.sum() - free[topics[helped]].sum()))
    return Moves(given, taken)


def components(subscribed):
    """int[M]: members linked by topics have the same number; -1 for those without topics."""
    component = np.full(len(subscribed), -1)
    found = 0
    for start in range(len(subscribed)):
        if component[start] >= 0 or not subscribed[start].any():
            continue
        topics, new = np.zeros(subscribed.shape[1], bool), subscribed[start].copy()
        while new.any():
            topics |= new
            linked = subscribed[:, new].any(axis=1) & (component < 0)
            component[linked] = found
            new = subscribed[linked].any(axis=0) & ~topics
        found += 1
    return component


class Limits:
    """Bounds of the loads in one component, from the sizes of its topics and their subscribers."""

    def __init__(self, sizes, subscribed):
        self._sizes = sizes
        self._subscribed = subscribed
        self._members = len(subscribed)
        self._widths = subscribed.sum(axis=0)
        shares = np.sort(subscribed @ (sizes / self._widths))
        self._smallest = np.concatenate(([0], np.cumsum(shares)))
        self._greatest = np.concatenate(([0], np.cumsum(shares[::-1])))
        self._room = subscribed @ sizes
        without = np.bincount(self._members - self._widths, sizes, minlength=self._members + 1)
        #: [n]: the size of all topics that fewer than n members do not subscribe to
        self._known = np.concatenate(([0], np.cumsum(without)))

    def least(self):
        """int[M]: lower bounds of the loads in any fair assignment."""
        known = self._by_single_topics()
        (rooms, least), which = np.unique(np.stack((self._room, known)), axis=1, return_inverse=True)
        known = np.sort(known)
        return bisected(lambda k: ~self._can_have_so_little(k, rooms, known), least, rooms)[which.ravel()]

    def _by_single_topics(self):
        """As `least`, but from single topics."""
        known = np.zeros(self._members, int)
        for _ in range(ROUNDS):
            before = known.copy()
            for topic, size in enumerate(self._sizes):
                takers = np.flatnonzero(self._subscribed[:, topic])
                low = np.sort(known[takers])
                needed = np.maximum(low, -(-size // np.arange(1, len(low) + 1))).min()  # some owner has as many
                known[takers] = np.maximum(known[takers], needed - 1)
            if (known == before).all():
                break
        return known

    def _can_have_so_little(self, k, rooms, known):
        load, topics, few, possible = k, rooms.astype(float), np.ones(len(rooms), int), np.ones(len(rooms), bool)
        while True:
            load = load + 1
            more = np.maximum(few, np.ceil(topics / load - ROUNDING).astype(int))
            possible &= more <= np.searchsorted(known, load, side="right")
            more = np.minimum(more, self._members)
            richer = np.maximum(topics, np.maximum(self._smallest[more], self._known[more]))
            if not (possible & ((more > few) | (richer > topics))).any():
                return possible
            few, topics = more, richer

    def most(self):
        """int[M]: upper bounds of the loads in any fair assignment."""
        order = np.argsort(self._widths, kind="stable")
        widths, cells = self._widths[order], np.where(self._subscribed, self._sizes, 0)[:, order]
        reached = np.cumsum(cells, axis=1)

        def can_have(k):
            needed = np.minimum((reached < k[:, None]).sum(axis=1), len(widths) - 1)
            return self._can_have_so_much(k, widths[needed])

        return bisected(can_have, np.zeros_like(self._room), self._room + 1) - 1

    def _can_have_so_much(self, k, beside):
        load, many, possible = k - 1, np.where(k > 0, beside, 0), np.ones(len(k), bool)
        while True:
            held = load * many
            possible &= ~((load > 0) & ((many > self._members) | (held > self._greatest[-1] + ROUNDING)))
            more = np.searchsorted(self._greatest, held - ROUNDING)
            grows = possible & (load > 1) & (more > many)
            if not grows.any():
                return possible
            many = np.where(grows, more, many)
            load = load - 1


def bisected(holds, low, high):
    """For each entry, the smallest number from `low` to `high` for which `holds` is false, as it is for `high`."""
    while (low < high).any():
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true & (low < high), middle + 1, low), np.where(true, high, middle)
    return low
