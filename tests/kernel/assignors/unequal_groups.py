"""Groups whose members subscribe to different topics, as arrays for `balanced.balance`, with checks of its answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernel.assignors.balanced import balance

NOBODY = -1


class Group(NamedTuple):
    starts: np.ndarray  #: int64[T + 1]
    subscribed: np.ndarray  #: bool[M, T]
    owner: np.ndarray  #: int32[N]

    @property
    def topic(self):
        """int64[N], of each partition."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def balanced(self):
        """The same group after an assignment, as its members would rejoin."""
        return self._replace(owner=balance(*self))

    def without(self, gone):
        """The group without these members; the others move up."""
        staying = np.setdiff1d(np.arange(len(self.subscribed)), gone)
        place = np.full(len(self.subscribed) + 1, NOBODY, np.int32)  # NOBODY refers to the last entry
        place[staying] = np.arange(len(staying))
        return self._replace(subscribed=self.subscribed[staying], owner=place[self.owner])

    def joined_by(self, subscribed):
        """The group with additional members with these subscriptions."""
        return self._replace(subscribed=np.concatenate((self.subscribed, subscribed)))


def group(sizes, subscribed, owner=None):
    """A group; without `owner`, all partitions are free."""
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    if owner is None:
        owner = np.full(starts[-1], NOBODY)
    return Group(starts, np.array(subscribed, bool), np.array(owner, np.int32))


def counts(asked, answer):
    """int64[T, M]: the number of partitions of each topic that each member has."""
    shape = len(asked.starts) - 1, len(asked.subscribed)
    given = answer >= 0
    return np.bincount(asked.topic[given] * shape[1] + answer[given], minlength=shape[0] * shape[1]).reshape(shape)


def fault_of(asked, answer):
    """Why an assignment is invalid, or unfair by the rule of Kafka's own tests; empty if it is neither."""
    wanted = asked.subscribed.any(axis=0)[asked.topic]
    if answer.shape != asked.owner.shape or ((answer >= 0) != wanted).any():
        return "the assigned partitions are not those with subscribers"
    if not asked.subscribed[answer[wanted], asked.topic[wanted]].all():
        return "a member has a partition of a topic that it does not subscribe to"
    had = counts(asked, answer)
    loads = had.sum(axis=0)
    for topic, takers in enumerate(asked.subscribed.T):
        if had[topic].any() and loads[had[topic] > 0].max() >= loads[takers].min() + 2:
            return f"an owner of topic {topic} has two or more than a subscriber: {loads.tolist()}"
    return ""


def ways_to_share(partitions, members):
    """All ways to divide interchangeable partitions among this many members."""
    if members == 1:
        return [(partitions,)]
    return [(n, *rest) for n in range(partitions + 1) for rest in ways_to_share(partitions - n, members - 1)]


def fewest_taken(asked):
    """The fewest partitions that a fair assignment takes from owners that could keep them, by exhaustive search."""
    members = len(asked.subscribed)
    kept = (asked.owner >= 0) & asked.subscribed[asked.owner, asked.topic]
    before = counts(asked, np.where(kept, asked.owner, NOBODY))
    loads, taken, owners = np.zeros((1, members), int), np.zeros(1, int), []
    for topic, size in enumerate(np.diff(asked.starts)):
        takers = np.flatnonzero(asked.subscribed[:, topic])
        if not size or not len(takers):
            continue
        ways = np.zeros((len(ways_to_share(size, len(takers))), members), int)
        ways[:, takers] = ways_to_share(size, len(takers))
        owners = [(other, np.repeat(held, len(ways), axis=0)) for other, held in owners]
        owners.append((topic, np.tile(ways > 0, (len(loads), 1))))
        loads = (loads[:, np.newaxis] + ways).reshape(-1, members)
        taken = (taken[:, np.newaxis] + np.maximum(before[topic] - ways, 0).sum(axis=1)).ravel()
    fair = np.ones(len(loads), bool)
    for topic, held in owners:
        most = np.where(held, loads, -1).max(axis=1)
        fair &= most < loads[:, asked.subscribed[:, topic]].min(axis=1) + 2
    return int(taken[fair].min())


def kinds(partitions, members, topics, seed):
    """{kind: group without owners}: the benchmark's unequal groups, and others that are hard to balance."""
    rng = np.random.default_rng(seed)
    sizes = np.full(topics, partitions // topics)
    own = np.arange(members) % topics
    every, nothing = np.ones((members, topics), bool), np.zeros((members, topics), bool)
    one = every.copy()
    one[0, 1:] = False
    fifth, ten, chain, apart = every.copy(), nothing.copy(), nothing.copy(), nothing.copy()
    for member in range(members):
        fifth[member, rng.choice(topics, topics // 5, replace=False)] = False
        ten[member, rng.choice(topics, min(10, topics), replace=False)] = True
        at = member * (topics - 1) // members
        chain[member, at : at + 2] = True
        apart[member, (own[member] // 2) * 2 : (own[member] // 2) * 2 + 2] = True
    nested = np.arange(topics) <= np.arange(members)[:, np.newaxis] * topics // members
    found = {
        "one member with one topic": one,
        "each lacks a fifth": fifth,
        "random half": rng.random((members, topics)) < 0.5,
        "ten random topics": ten,
        "nested prefixes": nested,
        "chain": chain,
        "pairs of topics": apart,
    }
    return {kind: group(sizes, subscribed) for kind, subscribed in found.items()}
