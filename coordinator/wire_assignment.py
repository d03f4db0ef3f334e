"""The sticky strategies from bytes to bytes: a group's subscriptions in, its assignments out.

Between the two there are arrays (`kernel.assignors.group_arrays`). Decoding and encoding one partition at a time took
longer than deciding about all of them.

Members that subscribe to different topics get Kafka's own order, which is found one partition at a time.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from coordinator.assignment_arrays import encode_assignments
from coordinator.protocol import encode_assignment, subscription_of
from coordinator.subscription_arrays import read_cooperative, read_sticky
from kernel.assignors.group_arrays import NOBODY, settle
from kernel.assignors.registry import COOPERATIVE, assignor
from kernel.assignors.sticky import assign_equal, changing_hands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.subscription_arrays import Subscriptions

#: Strategy -> how its subscriptions are read.
READERS: Mapping[str, Callable[[Mapping[str, bytes]], Subscriptions]] = MappingProxyType(
    {"sticky": read_sticky, "cooperative-sticky": read_cooperative}
)

EQUAL = "equal subscriptions"
KAFKAS_ORDER = "Kafka's own order"


class Decision(NamedTuple):
    """The bytes of SyncGroup for every member, and how they came about."""

    assignments: dict[str, bytes]
    algorithm: str  #: EQUAL or KAFKAS_ORDER
    partitions: int  #: of all topics


def assign(strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes]) -> dict[str, bytes]:
    """{member: assignment} for {topic: number of partitions} and {member: subscription as in JoinGroup}."""
    return decide(strategy, sizes, members, READERS[strategy](members)).assignments


def decide(
    strategy: str,
    sizes: Mapping[str, int],
    members: Mapping[str, bytes],
    subscriptions: Subscriptions,
) -> Decision:
    """`subscriptions` are the members' by one of `READERS`."""
    if not members:
        return Decision({}, EQUAL, 0)
    grid = subscriptions.grid(sizes)
    if not subscriptions.alike:
        decoded = {member: subscription_of(data) for member, data in members.items()}
        answer = assignor(strategy)(sizes, decoded)
        encoded = {member: encode_assignment(partitions) for member, partitions in answer.items()}
        return Decision(encoded, KAFKAS_ORDER, grid.partitions)
    roster, told = subscriptions.roster, subscriptions.told(grid)
    settled = settle(grid, told)
    shares = assign_equal(grid, roster, settled)
    if strategy in COOPERATIVE:
        shares.owner[changing_hands(settled, shares)] = NOBODY
    encoded = dict(zip(roster.members, encode_assignments(len(roster.members), grid, shares.owner), strict=True))
    return Decision(encoded, EQUAL, grid.partitions)
