"""`sticky`: as balanced as round robin, and members keep as much as that allows (Kafka's StickyAssignor, 4.1).

If all members subscribe to the same topics, the fast algorithm below is used, otherwise the general one
(`sticky_general`), which follows Kafka's step by step. It is slow, so larger groups are `balanced` instead: just as
evenly and validly, but not identically. The strategy is eager: a rebalance stops everything, and most partitions then
resume where they were.

Equal subscriptions: with P partitions and M members, each member gets min = P div M, and P mod M members get one more.
Members keep their partitions up to min, in hash order; those that had more than min keep min + 1 while such larger
shares remain. The rest goes one at a time to members below min, then to those at min.

Source: AbstractStickyAssignor of kafka-clients 4.1.1 without racks (KAFKA-9987, KAFKA-12464, KAFKA-13081). It iterates
over partitions and members; this computes the same from the number of partitions that each member had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernel.assignors import claims as one_by_one
from kernel.assignors.balanced import balance
from kernel.assignors.group_arrays import (
    NOBODY,
    Grid,
    Roster,
    Settled,
    claims_from_tuples,
    settle,
    stable_order,
    subscribed_from_tuples,
)
from kernel.assignors.sticky_general import GeneralAssignment
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from kernel.assignors.sticky_data import Claim
    from kernel.assignors.subscription import MemberSubscription

#: The most partitions of a group with different subscriptions for which Kafka's algorithm is used. It usually takes a
#: few tenths of a CPU second, and a few seconds in the worst case found (`docs/design-eager.md`).
EXACT_PARTITIONS_MAX = 20_000


class Shares(NamedTuple):
    """The assignment, by partition."""

    owner: NDArray[np.int32]  #: [N]; NOBODY if unassigned
    kept: NDArray[np.bool_]  #: [N]; whether it simply stayed with its owner


def assign_sticky(
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    *,
    exact_up_to: int = EXACT_PARTITIONS_MAX,
) -> dict[str, list[TopicPartition]]:
    """The strategy. A member's partitions are in the order of assignment, kept ones first.

    With different subscriptions and more partitions than `exact_up_to`, the group is `balanced`.
    """
    return stick(partitions_per_topic, subscriptions, one_by_one.sticky_claim, exact_up_to=exact_up_to)[0]


def stick(
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], Claim],
    *,
    exact_up_to: int,
    withholding: bool = False,
) -> tuple[dict[str, list[TopicPartition]], bool]:
    """The assignment, and whether all members have equal subscriptions.

    If they have, `withholding` leaves out partitions that would move from their claimant to another member. The
    general algorithm cannot do that.
    """
    if not subscriptions:
        return {}, True
    topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    sizes = {t: partitions_per_topic[t] for t in topics if partitions_per_topic.get(t, 0) > 0}
    alike = all(topics.issubset(subscription.topics) for subscription in subscriptions.values())
    if not alike and sum(sizes.values()) <= exact_up_to:
        claims = one_by_one.settle(sizes, subscriptions, claim_of)
        return GeneralAssignment(sizes, subscriptions, claims).build(), alike
    grid, roster = Grid.of(sizes), Roster.of(subscriptions)
    settled = settle(grid, claims_from_tuples(grid, roster, subscriptions, claim_of))
    if not alike:
        subscribed = subscribed_from_tuples(grid, roster, subscriptions)
        return in_tuples(grid, roster, assign_balanced(grid, subscribed, settled)), alike
    shares = assign_equal(grid, roster, settled)
    if withholding:
        shares.owner[changing_hands(settled, shares)] = NOBODY
    return in_tuples(grid, roster, shares), alike


def assign_balanced(grid: Grid, subscribed: NDArray[np.bool_], settled: Settled) -> Shares:
    """Assign all partitions that have subscribers; `subscribed` is bool[M, T]."""
    owner = balance(grid.starts, subscribed, settled.owner)
    return Shares(owner, (owner == settled.owner) & (owner != NOBODY))


def assign_equal(grid: Grid, roster: Roster, settled: Settled) -> Shares:
    """Assign all partitions with the fast algorithm (see the module docstring) to at least one member."""
    had = np.where(settled.contested, np.int32(NOBODY), settled.owner)
    members = len(roster.members)
    counts = np.bincount(had + 1, minlength=members + 1)[1:]
    least, extras = divmod(grid.partitions, members)
    quota = np.full(members, least)
    above = roster.walk[counts[roster.walk] > least][:extras]
    quota[above] += 1
    owner = had.copy()
    owner[_released(grid, had, counts, quota)] = NOBODY
    left_over = np.flatnonzero(owner == NOBODY)
    kept = np.ones(grid.partitions, np.bool_)
    kept[left_over] = False
    owner[left_over] = _filled_up(roster, counts, least, extras - len(above))
    return Shares(owner, kept)


def changing_hands(settled: Settled, shares: Shares) -> NDArray[np.bool_]:
    """[N]: whether a partition goes to another member than its only valid claimant, or was claimed twice."""
    lost = (settled.owner != NOBODY) & (settled.owner != shares.owner)
    withheld: NDArray[np.bool_] = ~shares.kept & (settled.contested | lost)
    return withheld


def in_tuples(grid: Grid, roster: Roster, shares: Shares) -> dict[str, list[TopicPartition]]:
    """The lists in Kafka's order: kept partitions by number and topic, then others by topic and number."""
    ids = np.flatnonzero(shares.owner != NOBODY)
    topics, numbers = grid.located(ids)
    numbers_first = np.where(shares.kept[ids], numbers, 0)
    order = np.lexsort((ids, numbers_first, ~shares.kept[ids], shares.owner[ids]))
    ends = np.cumsum(np.bincount(shares.owner[ids], minlength=len(roster.members))).tolist()
    names = map(grid.topics.__getitem__, topics[order].tolist())
    partitions = list(map(TopicPartition, names, numbers[order].tolist()))
    return {member: partitions[start:end] for member, start, end in zip(roster.members, [0, *ends], ends, strict=False)}


def _released(
    grid: Grid, had: NDArray[np.int32], counts: NDArray[np.int64], quota: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The partitions that members above their quota release: all but the first by number and topic."""
    over = counts > quota
    theirs = np.flatnonzero(np.append(over, False)[had])  # the last entry is for NOBODY
    _, numbers = grid.located(theirs)
    theirs = theirs[stable_order(numbers)]
    theirs = theirs[stable_order(had[theirs])]
    lengths = counts[over]
    places = np.arange(len(theirs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return theirs[places >= np.repeat(quota[over], lengths)]


def _filled_up(roster: Roster, counts: NDArray[np.int64], least: int, extras: int) -> NDArray[np.int64]:
    """The new owners of the remaining partitions, in order; `extras` is the number of larger shares still available."""
    ranked = np.argsort(roster.ranks)
    below = ranked[counts[ranked] < least]
    needs = least - counts[below]
    turns = needs > np.arange(needs.max(initial=0))[:, np.newaxis]
    in_turns = np.broadcast_to(below, turns.shape)[turns]
    reaching_it = below[np.argsort(needs, kind="stable")]
    waiting = np.concatenate([ranked[counts[ranked] == least], reaching_it])
    return np.concatenate([in_turns, waiting[:extras]])
