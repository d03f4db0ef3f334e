"""The states of a classic group and every legal move between them.

A group's state changes only through `Group.move`, which looks the move up in `TRANSITIONS`. A move that is not in the
table is a bug and fails an assertion. The docstring of `GroupState` says for each state how it handles requests
(*action*) and what leads out of it (*transition*); a test compares it with the table.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class GroupTrigger(Enum):
    """What moves a group; the value is the `reason` of the trace event."""

    MEMBER_ADDED = "member added"
    MEMBER_CHANGED = "member rejoined with changed metadata"
    LEADER_REJOINED = "leader rejoined"
    MEMBER_REPLACED = "static member replaced"
    MEMBER_LEFT = "member left"
    SESSION_EXPIRED = "session expired"
    SYNC_EXPIRED = "members did not sync in time"
    STORE_FAILED = "assignment could not be stored"
    OVERSIZED = "loaded with more members than allowed"
    JOIN_COMPLETED = "join completed"
    ALL_GONE = "join completed without members"
    ASSIGNMENT_STORED = "assignment stored"
    DELETED = "deleted"
    EXPIRED = "nothing left but expired offsets"
    UNLOADED = "coordinator moved"
    CONVERTED = "became a consumer group"
    DOWNGRADED = "was a consumer group"


class GroupState(Enum):
    """The value is the name that DescribeGroups and ListGroups show.

    Empty
        action: a group without members; may hold offsets. Heartbeat, Sync and a rejoin get UNKNOWN_MEMBER_ID;
            commits without a generation are accepted, ids unchecked.
        transition: MEMBER_ADDED -> PreparingRebalance
        transition: DELETED -> Dead
        transition: EXPIRED -> Dead
        transition: UNLOADED -> Dead
        transition: CONVERTED -> Dead

    PreparingRebalance
        action: JoinGroups are parked until every member has joined or the rebalance timeout (from Empty: the initial
            delay) has passed. Heartbeat and Sync get REBALANCE_IN_PROGRESS; commits of the ending generation are
            accepted.
        transition: JOIN_COMPLETED -> CompletingRebalance
        transition: ALL_GONE -> Empty
        transition: UNLOADED -> Dead
        transition: CONVERTED -> Dead

    CompletingRebalance
        action: the generation has begun; followers' SyncGroups are parked until the leader's is stored.
            Heartbeats get NONE, commits REBALANCE_IN_PROGRESS; an unchanged rejoin is answered at once.
        transition: ASSIGNMENT_STORED -> Stable
        transition: MEMBER_ADDED -> PreparingRebalance
        transition: MEMBER_CHANGED -> PreparingRebalance
        transition: MEMBER_REPLACED -> PreparingRebalance
        transition: MEMBER_LEFT -> PreparingRebalance
        transition: SESSION_EXPIRED -> PreparingRebalance
        transition: SYNC_EXPIRED -> PreparingRebalance
        transition: STORE_FAILED -> PreparingRebalance
        transition: UNLOADED -> Dead
        transition: CONVERTED -> Dead

    Stable
        action: the assignment is in force; Sync and a follower's unchanged rejoin are answered at once.
        transition: MEMBER_ADDED -> PreparingRebalance
        transition: MEMBER_CHANGED -> PreparingRebalance
        transition: LEADER_REJOINED -> PreparingRebalance
        transition: MEMBER_REPLACED -> PreparingRebalance
        transition: MEMBER_LEFT -> PreparingRebalance
        transition: SESSION_EXPIRED -> PreparingRebalance
        transition: SYNC_EXPIRED -> PreparingRebalance
        transition: OVERSIZED -> PreparingRebalance
        transition: DOWNGRADED -> PreparingRebalance
        transition: UNLOADED -> Dead
        transition: CONVERTED -> Dead

    Dead
        action: being deleted, turned into a consumer group, or its partition moved away; COORDINATOR_NOT_AVAILABLE for
            everything.
    """

    EMPTY = "Empty"  #: no members; maybe offsets
    PREPARING = "PreparingRebalance"  #: members are joining
    COMPLETING = "CompletingRebalance"  #: waiting for the leader's assignment
    STABLE = "Stable"  #: an assignment is in force
    DEAD = "Dead"  #: being removed; terminal


TRANSITIONS: Mapping[GroupState, Mapping[GroupTrigger, GroupState]] = MappingProxyType(
    {
        GroupState.EMPTY: {
            GroupTrigger.MEMBER_ADDED: GroupState.PREPARING,
            GroupTrigger.DELETED: GroupState.DEAD,
            GroupTrigger.EXPIRED: GroupState.DEAD,
            GroupTrigger.UNLOADED: GroupState.DEAD,
            GroupTrigger.CONVERTED: GroupState.DEAD,
        },
        GroupState.PREPARING: {
            GroupTrigger.JOIN_COMPLETED: GroupState.COMPLETING,
            GroupTrigger.ALL_GONE: GroupState.EMPTY,
            GroupTrigger.UNLOADED: GroupState.DEAD,
            GroupTrigger.CONVERTED: GroupState.DEAD,
        },
        GroupState.COMPLETING: {
            GroupTrigger.ASSIGNMENT_STORED: GroupState.STABLE,
            GroupTrigger.MEMBER_ADDED: GroupState.PREPARING,
            GroupTrigger.MEMBER_CHANGED: GroupState.PREPARING,
            GroupTrigger.MEMBER_REPLACED: GroupState.PREPARING,
            GroupTrigger.MEMBER_LEFT: GroupState.PREPARING,
            GroupTrigger.SESSION_EXPIRED: GroupState.PREPARING,
            GroupTrigger.SYNC_EXPIRED: GroupState.PREPARING,
            GroupTrigger.STORE_FAILED: GroupState.PREPARING,
            GroupTrigger.UNLOADED: GroupState.DEAD,
            GroupTrigger.CONVERTED: GroupState.DEAD,
        },
        GroupState.STABLE: {
            GroupTrigger.MEMBER_ADDED: GroupState.PREPARING,
            GroupTrigger.MEMBER_CHANGED: GroupState.PREPARING,
            GroupTrigger.LEADER_REJOINED: GroupState.PREPARING,
            GroupTrigger.MEMBER_REPLACED: GroupState.PREPARING,
            GroupTrigger.MEMBER_LEFT: GroupState.PREPARING,
            GroupTrigger.SESSION_EXPIRED: GroupState.PREPARING,
            GroupTrigger.SYNC_EXPIRED: GroupState.PREPARING,
            GroupTrigger.OVERSIZED: GroupState.PREPARING,
            GroupTrigger.DOWNGRADED: GroupState.PREPARING,
            GroupTrigger.UNLOADED: GroupState.DEAD,
            GroupTrigger.CONVERTED: GroupState.DEAD,
        },
        GroupState.DEAD: {},
    }
)

#: From which states a rebalance may be started (Kafka's canRebalance).
REBALANCEABLE = frozenset({GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE})
