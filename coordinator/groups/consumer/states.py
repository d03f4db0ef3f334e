"""The states of a member and of a group of the `consumer` design.

A member's state changes only through `reconciliation`, which takes what it finds (`Finding`) to `TRANSITIONS`. A
group's state is not stored anywhere: it follows from its members and its epochs (`ConsumerGroup.state`).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ConsumerGroupState(Enum):
    """The value is the name that ConsumerGroupDescribe and ListGroups show."""

    EMPTY = "Empty"  #: no members; maybe offsets
    ASSIGNING = "Assigning"  #: the group has a newer epoch than its target assignment
    RECONCILING = "Reconciling"  #: some member is not at the target epoch yet, or waits for partitions
    STABLE = "Stable"  #: every member has exactly its target
    DEAD = "Dead"  #: of a group that does not exist


class Finding(Enum):
    """What a comparison of a member with its target finds."""

    MUST_REVOKE = "it has partitions that it shall give up, and has not said that it did"
    MUST_WAIT = "it misses partitions that another member still has"
    COMPLETE = "it has its target"


class ConsumerMemberState(IntEnum):
    """The value is what Kafka stores (MemberState).

    STABLE
        action: at the target epoch, nothing changes. At an older one the member is compared with its target.
        transition: MUST_REVOKE -> UNREVOKED_PARTITIONS
        transition: MUST_WAIT -> UNRELEASED_PARTITIONS
        transition: COMPLETE -> STABLE

    UNREVOKED_PARTITIONS
        action: the member was asked to give partitions up. It keeps its epoch until a heartbeat reports owned
            partitions without them; then it is compared with its latest target. If that takes longer than its rebalance
            timeout, it is removed.
        transition: MUST_REVOKE -> UNREVOKED_PARTITIONS
        transition: MUST_WAIT -> UNRELEASED_PARTITIONS
        transition: COMPLETE -> STABLE

    UNRELEASED_PARTITIONS
        action: the member is at the target epoch and waits for partitions of others. Each heartbeat compares it with
            its target.
        transition: MUST_REVOKE -> UNREVOKED_PARTITIONS
        transition: MUST_WAIT -> UNRELEASED_PARTITIONS
        transition: COMPLETE -> STABLE

    UNKNOWN
        action: stored by a later version. The member is fenced unless it owns nothing; then it is compared with its
            target.
        transition: MUST_REVOKE -> UNREVOKED_PARTITIONS
        transition: MUST_WAIT -> UNRELEASED_PARTITIONS
        transition: COMPLETE -> STABLE
    """

    STABLE = 0  #: at its epoch with all its partitions
    UNREVOKED_PARTITIONS = 1  #: has to give partitions up
    UNRELEASED_PARTITIONS = 2  #: waits for partitions of others
    UNKNOWN = 127  #: of a later version


_FOLLOWS: Mapping[Finding, ConsumerMemberState] = MappingProxyType(
    {
        Finding.MUST_REVOKE: ConsumerMemberState.UNREVOKED_PARTITIONS,
        Finding.MUST_WAIT: ConsumerMemberState.UNRELEASED_PARTITIONS,
        Finding.COMPLETE: ConsumerMemberState.STABLE,
    }
)

#: The next state follows from the finding alone; when a member is compared at all depends on its state.
TRANSITIONS: Mapping[ConsumerMemberState, Mapping[Finding, ConsumerMemberState]] = MappingProxyType(
    dict.fromkeys(ConsumerMemberState, _FOLLOWS)
)
