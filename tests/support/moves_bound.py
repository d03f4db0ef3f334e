"""How many partitions have to move at least before a group is fair: a bound that holds for every algorithm.

Fair is: whoever has a partition of a topic has at most one more than each subscriber of that topic. Partitions that
nobody had, or whose owner may not have them any more, go to somebody in any case (`given`). The others (`taken`) move
only as far as loads have to change, and how far that is follows from what fairness makes of a single load. All within
one component: members that are linked by topics, P partitions in all, M members. `share` of a member is what it would
have if each topic were divided equally among its subscribers; the shares of any members add up to no more than the
sizes of all topics to which they subscribe, and the shares of all subscribers of some topics to no less than these
topics' sizes.

At least. Suppose that a member has k or less, and let A(j) be all members that have j or less. It is in A(k). What
A(j) subscribes to is had by members of A(j + 1), and these have j + 1 each at most. So A(j + 1) has at least
(partitions of the topics of A(j)) / (j + 1) members, and A(j)'s topics have at least as many partitions as: those of
the one member; the smallest |A(j)| shares together; all topics that fewer than |A(j)| members do not subscribe to. From
j to j + 1 that grows or comes to rest. If it grows beyond M, the member has more than k.

What is known of the others helps: members that must have more than j are not in A(j). With that, a topic alone says
something already: if its subscribers that may have j or less could not hold it with j each, one of them has more, and
each subscriber of the topic has more than j - 1.

At most. Suppose that a member has k or more, and let B(j) be all members that have j or more. Whoever subscribes to a
topic of which a member of B(j) has something is in B(j - 1). B(k - 1) has at least as many members as the one of the
topics needed to have k that has most subscribers; and as B(j) has j |B(j)| partitions, the shares of B(j - 1) add
up to that, so that it has at least as many members as the greatest shares that do. If j |B(j)| grows beyond P, or
B(j) beyond M, the member has less than k.

Whoever has more than the most possible gives the difference away. Whoever has less than the least possible gets the
difference, from others but for the free partitions of topics to which such members subscribe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Shares are fractions; a sum that is meant to be a whole number is not taken for more.
ROUNDING = 1e-6

#: What single topics say about each other is followed so far; less of it is a weaker bound, but a bound.
ROUNDS = 10


class Moves(NamedTuple):
    """Partitions that change their owner."""

    given: int  #: nobody had them, or somebody that may not any more
    taken: int  #: from somebody that could have kept them

    @property
    def all(self):
        return self.given + self.taken


def moves(starts, subscribed, owner, new):
    """What an assignment has moved; arguments as of `balanced.balance`, and its answer."""
    kept = may_keep(starts, subscribed, owner)
    return Moves(int(np.count_nonzero(~kept & (new >= 0))), int(np.count_nonzero(kept & (new != owner))))


def may_keep(starts, subscribed, owner):
    """bool[N]: whether the partition's owner is there and subscribes to it."""
    topic = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return (owner >= 0) & subscribed[owner, topic] if subscribed.size else np.zeros(len(owner), bool)


def moves_lower_bound(starts, subscribed, owner):
    """See the module; arguments as of `balanced.balance`."""
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
    """int[M]: members that are linked by topics have the same number, those without topics -1."""
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
    """Of the loads in one component: its topics' sizes, and who subscribes to which of them."""

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
        self._known = np.concatenate(([0], np.cumsum(without)))  #: topics that fewer than so many do not subscribe to

    def least(self):
        """int[M]: no fair assignment gives a member less."""
        known = self._by_single_topics()
        which = np.unique(np.stack((self._room, known)), axis=1, return_inverse=True)
        (rooms, least), which = which[0], which[1].ravel()
        known = np.sort(known)
        return bisected(lambda k: ~self._can_have_so_little(k, rooms, known), least, rooms)[which]

    def _by_single_topics(self):
        """The same, but from one topic at a time."""
        known = np.zeros(self._members, int)
        for _ in range(ROUNDS):
            before = known.copy()
            for topic, size in enumerate(self._sizes):
                takers = np.flatnonzero(self._subscribed[:, topic])
                low = np.sort(known[takers])
                needed = np.maximum(low, -(-size // np.arange(1, len(low) + 1))).min()  # some owner has so many
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
        """int[M]: no fair assignment gives a member more."""
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
    """For each entry the smallest number from `low` to `high` for which `holds` is false; at `high` it is."""
    while (low < high).any():
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true & (low < high), middle + 1, low), np.where(true, high, middle)
    return low
