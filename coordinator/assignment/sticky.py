"""The sticky strategies from bytes to bytes: a group's subscriptions in, its assignments out.

In between they use arrays (`kernel.assignors.group_arrays`): decoding and encoding one partition at a time took longer
than assigning all of them.

If members subscribe to different topics, Kafka's own order has to be found one partition at a time, which is slow; so
only groups up to a certain size get it. Larger ones are balanced by a faster algorithm (`kernel.assignors.sticky`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coordinator.assignment.assignment_arrays import encode_assignments
from coordinator.assignment.subscription_arrays import read_cooperative, read_sticky
from coordinator.protocol.consumer_protocol import encode_assignment, subscription_of
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.group_arrays import NOBODY, settle
from kernel.assignors.registry import COOPERATIVE
from kernel.assignors.sticky import (
    EXACT_PARTITIONS_MAX,
    assign_balanced,
    assign_equal,
    assign_sticky,
    changing_hands,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from coordinator.assignment.subscription_arrays import Subscriptions
    from kernel.assignors.group_arrays import ClaimArrays, Grid

#: Strategy -> the reader of its subscriptions.
READERS: Mapping[str, Callable[[Mapping[str, bytes]], Subscriptions]] = MappingProxyType(
    {"sticky": read_sticky, "cooperative-sticky": read_cooperative}
)

#: Strategy -> the same strategy on decoded subscriptions.
IN_TUPLES = MappingProxyType({"sticky": assign_sticky, "cooperative-sticky": assign_cooperative_sticky})

EQUAL = "equal subscriptions"
KAFKAS_ORDER = "Kafka's own order"
BALANCED = "balanced arrays"


class StickyDecision(NamedTuple):
    """SyncGroup's bytes for every member, and the algorithm behind them."""

    assignments: dict[str, bytes]
    algorithm: str  #: EQUAL, KAFKAS_ORDER or BALANCED
    partitions: int  #: of all topics


def assign(
    strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes], *, exact_up_to: int = EXACT_PARTITIONS_MAX
) -> dict[str, bytes]:
    """Assign: {topic: number of partitions} and {member: subscription as in JoinGroup} to {member: assignment}."""
    return decide(strategy, sizes, members, READERS[strategy](members), exact_up_to=exact_up_to).assignments


def decide(
    strategy: str,
    sizes: Mapping[str, int],
    members: Mapping[str, bytes],
    subscriptions: Subscriptions,
    *,
    exact_up_to: int,
) -> StickyDecision:
    """Assign; `subscriptions` are read by one of `READERS`, `exact_up_to` is that of `assign_sticky`."""
    if not members:
        return StickyDecision({}, EQUAL, 0)
    grid = subscriptions.grid(sizes)
    if not subscriptions.alike and grid.partitions <= exact_up_to:
        decoded = {member: subscription_of(data) for member, data in members.items()}
        answer = IN_TUPLES[strategy](sizes, decoded, exact_up_to=exact_up_to)
        encoded = {member: encode_assignment(partitions) for member, partitions in answer.items()}
        return StickyDecision(encoded, KAFKAS_ORDER, grid.partitions)
    roster, claims = subscriptions.roster, subscriptions.claims_on(grid)
    settled = settle(grid, claims)
    if subscriptions.alike:
        shares = assign_equal(grid, roster, settled)
        owner, withheld = shares.owner, changing_hands(settled, shares)
    else:
        owner = assign_balanced(grid, subscriptions.mask(grid), settled).owner
        withheld = _claimed_by_others(grid, claims, owner)
    if strategy in COOPERATIVE:
        owner[withheld] = NOBODY
    encoded = dict(zip(roster.members, encode_assignments(len(roster.members), grid, owner), strict=True))
    return StickyDecision(encoded, EQUAL if subscriptions.alike else BALANCED, grid.partitions)


def _claimed_by_others(grid: Grid, claims: ClaimArrays, owner: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return, for each of N partitions, whether its new owner does not claim it but another member does.

    A cooperative strategy withholds these for one round (`cooperative_sticky`).
    """
    by_others = np.zeros(grid.partitions, np.bool_)
    by_others[claims.ids] = True
    by_others[claims.ids[owner[claims.ids] == claims.claimants]] = False
    return by_others
