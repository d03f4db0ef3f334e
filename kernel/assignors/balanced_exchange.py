"""Compute how many partitions each member gives or takes when loads are balanced, from the loads alone.

The results equal those of moving partitions one at a time from the most to the least loaded member. Ties go to the
member that comes first in the array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def filling(loads: NDArray[np.int64], amount: int) -> NDArray[np.int64]:
    """The shares of `amount` new partitions, each assigned to the then least loaded member."""
    order = np.argsort(loads, kind="stable")
    low = loads[order]
    to_level = low * np.arange(1, len(low) + 1) - np.cumsum(low)  # what raises all members before to this load
    reached = int(np.searchsorted(to_level, amount, side="right"))
    each, rest = divmod(amount - int(to_level[reached - 1]), reached)
    shares = np.zeros_like(loads)
    shares[order[:reached]] = low[reached - 1] + each - low[:reached]
    shares[order[:rest]] += 1
    return shares


@dataclass(frozen=True, slots=True)
class Givers:
    """Members that could give: their loads, how many partitions they offer, and which come first among equals."""

    loads: NDArray[np.int64]
    stock: NDArray[np.int64]
    first: NDArray[np.bool_]

    def above(self, level: int) -> NDArray[np.int64]:
        """How much each can give without falling below `level`."""
        return np.clip(self.loads - level, 0, self.stock)


@dataclass(frozen=True, slots=True)
class Takers:
    """Members that could take: their loads, and which come first among equals."""

    loads: NDArray[np.int64]
    first: NDArray[np.bool_]

    def below(self, level: int) -> NDArray[np.int64]:
        """How much each lacks to reach `level`."""
        return np.maximum(level - self.loads, 0)


def exchange(givers: Givers, takers: Takers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How much each gives and takes, moving one at a time from the fullest to the emptiest while they differ by two.

    A member may be on both sides. No step undoes another: let `level` be the largest load for which the takers lack
    no more below it than the givers offer above it. Before each step a giver has more than `level` and a taker at
    most `level`, and one of them is not at that limit.
    """
    level, over = int(takers.loads.min()), int(givers.loads.max())
    while over - level > 1:
        middle = (level + over) // 2
        if givers.above(middle).sum() >= takers.below(middle).sum():
            level = middle
        else:
            over = middle
    give, take = givers.above(level + 1), takers.below(level)
    missing = int(take.sum() - give.sum())
    if missing > 0:
        give[_pick(givers.above(level) > give, givers.first, missing)] += 1
    elif missing < 0:
        take[_pick(takers.loads <= level, takers.first, -missing)] += 1
    return give, take


def _pick(eligible: NDArray[np.bool_], first: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    at = np.flatnonzero(eligible)
    return at[np.argsort(~first[at], kind="stable")[:count]]


def in_turn(asked: NDArray[np.int64], available: int) -> NDArray[np.int64]:
    """How much each gets of what it asks for, in the order of the array, until nothing is left."""
    before: NDArray[np.int64] = np.cumsum(asked) - asked
    return np.minimum(np.maximum(available - before, 0), asked)
