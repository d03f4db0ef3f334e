"""How many partitions go from which members to which when loads are evened out: arithmetic on loads alone.

All of it is what comes out when partitions go one by one, from whoever has most to whoever has least; the arrays say
at once where that ends. Of members that are alike the first in the array are served first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def filling(loads: NDArray[np.int64], amount: int) -> NDArray[np.int64]:
    """How `amount` new partitions go to members of these loads, always to the least loaded: their shares."""
    order = np.argsort(loads, kind="stable")
    low = loads[order]
    to_level = low * np.arange(1, len(low) + 1) - np.cumsum(low)  # what lifts all before to the load of this one
    reached = int(np.searchsorted(to_level, amount, side="right"))
    each, rest = divmod(amount - int(to_level[reached - 1]), reached)
    shares = np.zeros_like(loads)
    shares[order[:reached]] = low[reached - 1] + each - low[:reached]
    shares[order[:rest]] += 1
    return shares


@dataclass(frozen=True, slots=True)
class Givers:
    """Who could give: loads, how much of that is on offer, and who is to be asked first among equals."""

    loads: NDArray[np.int64]
    stock: NDArray[np.int64]
    first: NDArray[np.bool_]

    def above(self, level: int) -> NDArray[np.int64]:
        """What each can give without having less than `level`."""
        return np.clip(self.loads - level, 0, self.stock)


@dataclass(frozen=True, slots=True)
class Takers:
    """Who could take: loads, and who is to be served first among equals."""

    loads: NDArray[np.int64]
    first: NDArray[np.bool_]

    def below(self, level: int) -> NDArray[np.int64]:
        """What each lacks to have `level`."""
        return np.maximum(level - self.loads, 0)


def exchange(givers: Givers, takers: Takers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each gives and each takes, one by one from the fullest to the emptiest while they differ by two or more.

    The same member may be on both sides. No step would undo another: with `level` as the largest for which the takers
    lack no more below it than is on offer above it, whoever gives has more than `level` before each step, and
    whoever takes has `level` at most, and one of the two is not at that limit.
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
    """What each gets of what it asks for, the first in the array first, until nothing is available."""
    before: NDArray[np.int64] = np.cumsum(asked) - asked
    return np.minimum(np.maximum(available - before, 0), asked)
