"""The states of a group of the server design and every legal move between them.

As for classic groups (`coordinator.groups.classic.states`), the state changes only through `ServerGroup.move`, which
looks the move up in `TRANSITIONS`, and a test compares the docstring of `ServerGroupState` with the table. The values
are the names of Kafka's equivalent states, so that DescribeGroups, ListGroups and the trace use the same names in all
designs.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ServerGroupTrigger(Enum):
    """What moves a group; the value is the `reason` of the trace event."""

    MEMBERS_CHANGED = "members changed"
    SUBSCRIPTIONS_CHANGED = "subscriptions changed"
    PARTITIONS_CHANGED = "partitions of a topic changed"
    STRATEGY_CHANGED = "the coordinator assigns by another strategy"
    ASSIGNMENT_STORED = "assignment stored"
    ALL_GONE = "stored without members"
    ALL_STARTED = "all members have started"
    DELETED = "deleted"
    UNLOADED = "coordinator moved"


class ServerGroupState(Enum):
    """The value is the name that DescribeGroups and ListGroups show.

    Empty
        action: a group without members; may hold offsets. An AwaitCommand waits until its member's id is seen.
        transition: MEMBERS_CHANGED -> PreparingRebalance
        transition: DELETED -> Dead
        transition: UNLOADED -> Dead

    PreparingRebalance
        action: the round has begun: members that run the ending generation are commanded to stop. Once each has
            acknowledged, lost its id, or exceeded the rebalance timeout, the next generation is assigned and stored.
            Commits of the ending generation are accepted until then.
        transition: ASSIGNMENT_STORED -> CompletingRebalance
        transition: ALL_GONE -> Empty
        transition: UNLOADED -> Dead

    CompletingRebalance
        action: the assignment is stored; members that ask are commanded to start. Those that do not confirm the new
            generation within the rebalance timeout are dropped.
        transition: ALL_STARTED -> Stable
        transition: MEMBERS_CHANGED -> PreparingRebalance
        transition: SUBSCRIPTIONS_CHANGED -> PreparingRebalance
        transition: PARTITIONS_CHANGED -> PreparingRebalance
        transition: STRATEGY_CHANGED -> PreparingRebalance
        transition: UNLOADED -> Dead

    Stable
        action: all members have started; AwaitCommands wait. A group is loaded into this state.
        transition: MEMBERS_CHANGED -> PreparingRebalance
        transition: SUBSCRIPTIONS_CHANGED -> PreparingRebalance
        transition: PARTITIONS_CHANGED -> PreparingRebalance
        transition: STRATEGY_CHANGED -> PreparingRebalance
        transition: UNLOADED -> Dead

    Dead
        action: deleted, or its partition moved away; terminal.
    """

    EMPTY = "Empty"  #: no members; maybe offsets
    STOPPING = "PreparingRebalance"  #: members of the old generation are being stopped
    STARTING = "CompletingRebalance"  #: members of the new one are being started
    STABLE = "Stable"  #: the assignment is in force
    DEAD = "Dead"  #: deleted, or coordinated elsewhere


_BEGIN_ROUND: Mapping[ServerGroupTrigger, ServerGroupState] = MappingProxyType(
    {
        ServerGroupTrigger.MEMBERS_CHANGED: ServerGroupState.STOPPING,
        ServerGroupTrigger.SUBSCRIPTIONS_CHANGED: ServerGroupState.STOPPING,
        ServerGroupTrigger.PARTITIONS_CHANGED: ServerGroupState.STOPPING,
        ServerGroupTrigger.STRATEGY_CHANGED: ServerGroupState.STOPPING,
    }
)

TRANSITIONS: Mapping[ServerGroupState, Mapping[ServerGroupTrigger, ServerGroupState]] = MappingProxyType(
    {
        ServerGroupState.EMPTY: {
            ServerGroupTrigger.MEMBERS_CHANGED: ServerGroupState.STOPPING,
            ServerGroupTrigger.DELETED: ServerGroupState.DEAD,
            ServerGroupTrigger.UNLOADED: ServerGroupState.DEAD,
        },
        ServerGroupState.STOPPING: {
            ServerGroupTrigger.ASSIGNMENT_STORED: ServerGroupState.STARTING,
            ServerGroupTrigger.ALL_GONE: ServerGroupState.EMPTY,
            ServerGroupTrigger.UNLOADED: ServerGroupState.DEAD,
        },
        ServerGroupState.STARTING: {
            **_BEGIN_ROUND,
            ServerGroupTrigger.ALL_STARTED: ServerGroupState.STABLE,
            ServerGroupTrigger.UNLOADED: ServerGroupState.DEAD,
        },
        ServerGroupState.STABLE: {**_BEGIN_ROUND, ServerGroupTrigger.UNLOADED: ServerGroupState.DEAD},
        ServerGroupState.DEAD: {},
    }
)
