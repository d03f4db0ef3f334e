"""A group as integer arrays, with which the sticky strategies compute: a million partitions need no million tuples.

A partition is an index: all topics in Java's order of names, one after the other (`Grid`). A member is its index in
hash order, the order in which Kafka iterates over the subscriptions (`Roster`). Former owners (`settle`, as described
in `claims`) and new owners are then arrays over partitions:

    owner       int32[N]    the member that had or gets the partition, or NOBODY
    contested   bool[N]     claimed twice in one generation, so it has no owner
    subscribed  bool[M, T]  whether a member subscribes to a topic

No loop here iterates over partitions or claims. N is the number of partitions, M of members, T of topics, C of claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.sticky_data import NO_GENERATION
from kernel.assignors.subscription import java_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from kernel.assignors.sticky_data import Claim
    from kernel.assignors.subscription import MemberSubscription

#: The owner of a partition without an owner.
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Grid:
    """The existing partitions: partition p of topic t (an index into `topics`) has the id `starts[t] + p`."""

    topics: tuple[str, ...]  #: in Java's order
    starts: NDArray[np.int64]  #: [T + 1]; the last entry is N

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Grid:
        """Of {topic: number of partitions}; a topic of size 0 does not exist."""
        topics = tuple(sorted((topic for topic, size in sizes.items() if size > 0), key=java_order))
        starts = np.zeros(len(topics) + 1, np.int64)
        np.cumsum([sizes[topic] for topic in topics], out=starts[1:])
        return cls(topics, starts)

    @property
    def partitions(self) -> int:
        """The number of partitions, N."""
        return int(self.starts[-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[T]."""
        return np.diff(self.starts)

    def located(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Topic indices and partition numbers of ids."""
        topics = np.repeat(np.arange(len(self.topics)), self.sizes)[ids]
        return topics, ids - self.starts[topics]


@dataclass(frozen=True, slots=True)
class Roster:
    """The members of a group, and the orders in which Kafka iterates over them."""

    members: tuple[str, ...]  #: in the hash order of the subscriptions; a member's index is its place here
    walk: NDArray[np.int32]  #: indices in the order of a new table filled in that order; equal without tree bins
    ranks: NDArray[np.int32]  #: the rank of each member in Java's order of ids

    @classmethod
    def of(cls, members: Iterable[str]) -> Roster:
        """Of ids in the order in which the coordinator sent them."""
        ordered = texts_in_hash_order(members)
        index = {member: at for at, member in enumerate(ordered)}
        walk = [index[member] for member in texts_in_hash_order(ordered)]
        ranks = np.empty(len(ordered), np.int32)
        ranks[[index[member] for member in sorted(ordered, key=java_order)]] = np.arange(len(ordered))
        return cls(tuple(ordered), np.array(walk, np.int32), ranks)


@dataclass(frozen=True, slots=True)
class ClaimArrays:
    """The claims of all members on existing partitions."""

    ids: NDArray[np.int64]  #: [C]: partitions, in any order
    claimants: NDArray[np.int32]  #: [C]
    generations: NDArray[np.int64]  #: [M]: of the claims, or NO_GENERATION
    in_subscriptions: NDArray[np.int64]  #: [M]: of the subscriptions (`claims` says which one is used when)


@dataclass(frozen=True, slots=True)
class Settled:
    """The former owners, as arrays."""

    owner: NDArray[np.int32]
    contested: NDArray[np.bool_]


def settle(grid: Grid, made: ClaimArrays) -> Settled:
    """As `claims.settle`: of two claims the higher generation wins; if they are equal, neither does."""
    owner = np.full(grid.partitions, NOBODY, np.int32)
    contested = np.zeros(grid.partitions, np.bool_)
    owner[made.ids] = made.claimants
    again = np.bincount(made.ids, minlength=grid.partitions) > 1
    if again.any():
        _settle_conflicts(made, np.flatnonzero(again[made.ids]), owner, contested)
    return Settled(owner, contested)


def _settle_conflicts(
    made: ClaimArrays, claims: NDArray[np.int64], owner: NDArray[np.int32], contested: NDArray[np.bool_]
) -> None:
    """For partitions with several claims: process the first claim on each of them, then the second on each, ..."""
    claims = claims[np.lexsort((made.claimants[claims], made.ids[claims]))]
    claims = claims[~_repeated_twice(made.ids[claims], made.claimants[claims])]
    partitions, firsts, counts = np.unique(made.ids[claims], return_index=True, return_counts=True)
    turns = np.arange(len(claims)) - np.repeat(firsts, counts)
    claims = claims[np.argsort(turns, kind="stable")]
    done = 0
    last = np.full(len(owner), NOBODY, np.int32)  # the last claimant whose claim counted, contested ones included
    for size in np.bincount(turns).tolist():
        turn = claims[done : done + size]
        done += size
        ids, claimants = made.ids[turn], made.claimants[turn]
        before = last[ids]
        theirs = made.in_subscriptions[before]
        mine = made.generations[claimants]
        counts_now = (before == NOBODY) | (mine >= theirs)
        equal = (before != NOBODY) & (mine == theirs)
        last[ids[counts_now]] = claimants[counts_now]
        owner[ids[counts_now]] = np.where(equal, NOBODY, claimants)[counts_now]
        contested[ids[equal]] = True
    assert (last[partitions] != NOBODY).all()


def _repeated_twice(ids: NDArray[np.int64], claimants: NDArray[np.int32]) -> NDArray[np.bool_]:
    """A member's third and further claims on the same partition, which change nothing after the second."""
    repeated = np.zeros(len(ids), np.bool_)
    repeated[2:] = (ids[2:] == ids[:-2]) & (claimants[2:] == claimants[:-2])
    return repeated


def claims_from_tuples(
    grid: Grid,
    roster: Roster,
    subscriptions: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], Claim],
) -> ClaimArrays:
    """The claims of individually decoded subscriptions."""
    starts = dict(zip(grid.topics, grid.starts.tolist(), strict=False))
    sizes = dict(zip(grid.topics, grid.sizes.tolist(), strict=True))
    ids: list[int] = []
    counts, generations, in_subscriptions = [], [], []
    for member in roster.members:
        subscription = subscriptions[member]
        claim = claim_of(subscription)
        before = len(ids)
        ids += [starts[topic] + number for topic, number in claim.partitions if 0 <= number < sizes.get(topic, 0)]
        counts.append(len(ids) - before)
        generations.append(NO_GENERATION if claim.generation is None else claim.generation)
        in_subscriptions.append(NO_GENERATION if subscription.generation is None else subscription.generation)
    return ClaimArrays(
        np.array(ids, np.int64),
        np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        np.array(generations, np.int64),
        np.array(in_subscriptions, np.int64),
    )


def subscribed_from_tuples(
    grid: Grid, roster: Roster, subscriptions: Mapping[str, MemberSubscription]
) -> NDArray[np.bool_]:
    """The array `subscribed` of individually decoded subscriptions."""
    columns = {topic: column for column, topic in enumerate(grid.topics)}
    found = np.zeros((len(roster.members), len(columns)), np.bool_)
    for row, member in zip(found, roster.members, strict=True):
        row[[columns[topic] for topic in subscriptions[member].topics if topic in columns]] = True
    return found


def stable_order(values: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """A stable argsort of nonnegative values; several times faster, as numpy has a radix sort for 16 bits."""
    top = int(values.max(initial=0))
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, top.bit_length(), 16):
        digits = (values[order] >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order
