"""The words of fields that have only a few: a line with any other word is unusable (`kernel.trace.check`).

Whatever reads a trace may rely on them. Fields whose words others choose are not among them: faults and changes, which
scenarios of one's own may add; names, and errors of brokers and of ZooKeeper. Nor are those that only people read, as
why a member rebalances or what moved a group on.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kernel.designs import DESIGN_NAMES
from kernel.trace.events import PHASES, Implementation, Role

if TYPE_CHECKING:
    from collections.abc import Mapping


class TimeSource(StrEnum):
    """By which clock a process ran: its machine's monotonic one, or that of a simulated world."""

    MONOTONIC = "monotonic"
    SIMULATED = "simulated"


#: Why a member is no longer in its group.
Removal: TypeAlias = Literal[
    "leave",
    "session",  # it expired
    "fenced",  # replaced by another of its name
    "gone",  # found missing by an observer, which does not know more
    "id gone",  # server: its id znode
    "not stopped in time",
    "not started in time",
    "not rejoined",
    "not synced",
    "not revoked in time",
    "group is full",
    "metadata too large",
]
#: Why the authority no longer names the owner of a partition, beside the removal of its member.
Clearing: TypeAlias = Literal["generation ended", "delete", "revoked", "became a consumer group"]
#: The requests that we send (kernel.wire.versions.Api).
_APIS = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup"),
    *("Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups", "ListGroups", "ApiVersions", "CreateTopics"),
    *("DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn"),
    *("AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit", "DescribeConfigs", "AlterConfigs"),
    *("DescribeLogDirs", "CreatePartitions", "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs"),
    *("OffsetDelete", "DescribeCluster", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ListConfigResources"),
    *("DescribeTopicPartitions", "AwaitCommand", "CommitOwned", "DescribeLoop"),
)
#: The states of groups in all designs that have a coordinator.
_GROUP_STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)

#: By kind and field.
WORDS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("run_ended", "outcome"): ("complete", "interrupted", "failed"),
        ("stage_entered", "stage"): ("warm", "steady", "fault", "heal", "drain", "final", "stop"),
        ("process_ended", "how"): ("leave", "kill", "stop", "itself"),
        ("phase_entered", "phase"): PHASES,
        ("attempt_ended", "outcome"): ("ok", "conflict", "unavailable", "error", "superseded"),
        ("rebalance_ended", "outcome"): ("ok", "failed", "superseded", "conflict", "error"),
        ("partitions_resumed", "cause"): ("asked", "rebalance"),
        ("position_reset", "reset"): ("earliest", "latest", "smallest", "largest"),
        ("commit_answered", "outcome"): ("accepted", "refused", "dropped", "unknown"),
        ("commit_answered", "store"): ("kafka", "zookeeper"),
        ("session_changed", "state"): ("connected", "suspended", "lost", "closed"),
        ("zk_op", "op"): ("create", "delete", "exists", "getData", "getChildren", "setData", "sync", "multi"),
        ("zk_notified", "event"): ("created", "deleted", "changed", "children", "none"),
        ("request_answered", "api"): _APIS,
        ("authority_cleared", "reason"): (*get_args(Clearing), *get_args(Removal)),
        ("group_changed", "state"): _GROUP_STATES,
        ("group_member_left", "reason"): get_args(Removal),
        ("bystander_op", "op"): ("getData", "setData"),
    }
)
#: The same of fields that end in one of a few words.
ENDINGS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({("counters_read", "at"): (":before", ":after")})
#: The same of the header.
HEADER_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "design": (*DESIGN_NAMES, ""),  # a broker that was started by hand knows none
        "role": tuple(Role),
        "implementation": tuple(Implementation),
        "clock": tuple(TimeSource),
    }
)
