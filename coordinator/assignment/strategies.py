"""The sticky strategies from bytes to bytes: a group's subscriptions in, its assignments out.

Between the two there are arrays (`kernel.assignors.group_arrays`). Decoding and encoding one partition at a time took
longer than deciding about all of them.

Members that subscribe to different topics get Kafka's own order, which is found one partition at a time and takes
long, only in groups up to a size; larger ones are `balanced` (`kernel.assignors.sticky`).
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

#: Strategy -> how its subscriptions are read.
READERS: Mapping[str, Callable[[Mapping[str, bytes]], Subscriptions]] = MappingProxyType(
    {"sticky": read_sticky, "cooperative-sticky": read_cooperative}
)

#: Strategy -> the same on decoded subscriptions, one by one.
IN_TUPLES = MappingProxyType({"sticky": assign_sticky, "cooperative-sticky": assign_cooperative_sticky})

EQUAL = "equal subscriptions"
KAFKAS_ORDER = "Kafka's own order"
BALANCED = "balanced arrays"


class Decision(NamedTuple):
    """The bytes of SyncGroup for every member, and how they came about."""

    assignments: dict[str, bytes]
    algorithm: str  #: EQUAL, KAFKAS_ORDER or BALANCED
    partitions: int  #: of all topics


def assign(
    strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes], *, exact_up_to: int = EXACT_PARTITIONS_MAX
) -> dict[str, bytes]:
    """{member: assignment} for {topic: number of partitions} and {member: subscription as in JoinGroup}."""
    return decide(strategy, sizes, members, READERS[strategy](members), exact_up_to=exact_up_to).assignments


def decide(
    strategy: str,
    sizes: Mapping[str, int],
    members: Mapping[str, bytes],
    subscriptions: Subscriptions,
    *,
    exact_up_to: int,
) -> Decision:
    """`subscriptions` are the members' by one of `READERS`; `exact_up_to` is that of `assign_sticky`."""
    if not members:
        return Decision({}, EQUAL, 0)
    grid = subscriptions.grid(sizes)
    if not subscriptions.alike and grid.partitions <= exact_up_to:
        decoded = {member: subscription_of(data) for member, data in members.items()}
        answer = IN_TUPLES[strategy](sizes, decoded, exact_up_to=exact_up_to)
        encoded = {member: encode_assignment(partitions) for member, partitions in answer.items()}
        return Decision(encoded, KAFKAS_ORDER, grid.partitions)
    roster, told = subscriptions.roster, subscriptions.told(grid)
    settled = settle(grid, told)
    if subscriptions.alike:
        shares = assign_equal(grid, roster, settled)
        owner, withheld = shares.owner, changing_hands(settled, shares)
    else:
        owner = assign_balanced(grid, subscriptions.mask(grid), settled).owner
        withheld = _claimed_by_others(grid, told, owner)
    if strategy in COOPERATIVE:
        owner[withheld] = NOBODY
    encoded = dict(zip(roster.members, encode_assignments(len(roster.members), grid, owner), strict=True))
    return Decision(encoded, EQUAL if subscriptions.alike else BALANCED, grid.partitions)


def _claimed_by_others(grid: Grid, told: ClaimArrays, owner: NDArray[np.int32]) -> NDArray[np.bool_]:
    """N: what goes to a member that does not claim it while another does (`cooperative_sticky`)."""
    by_others = np.zeros(grid.partitions, np.bool_)
    by_others[told.ids] = True
    by_others[told.ids[owner[told.ids] == told.claimants]] = False
    return by_others
