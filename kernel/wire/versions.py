"""The version table: every API that we serve or call, with its lowest and highest version.

The lowest is the lowest that kio has a schema for, because stock clients differ widely in what they send, or an even
lower one that clients of the ZooKeeper era need (`kernel.wire.first_versions`). The highest is the highest that our
handlers implement in full. A broker advertises the APIs that have a handler; clients of that era never ask.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Api(IntEnum):
    """API keys, named as Kafka's message definitions name them."""

    Produce = 0
    Fetch = 1
    ListOffsets = 2
    Metadata = 3
    OffsetCommit = 8
    OffsetFetch = 9
    FindCoordinator = 10
    JoinGroup = 11
    Heartbeat = 12
    LeaveGroup = 13
    SyncGroup = 14
    DescribeGroups = 15
    ListGroups = 16
    ApiVersions = 18
    CreateTopics = 19
    DeleteTopics = 20
    DeleteRecords = 21
    InitProducerId = 22
    OffsetForLeaderEpoch = 23
    AddPartitionsToTxn = 24
    AddOffsetsToTxn = 25
    EndTxn = 26
    WriteTxnMarkers = 27
    TxnOffsetCommit = 28
    DescribeConfigs = 32
    AlterConfigs = 33
    DescribeLogDirs = 35
    CreatePartitions = 37
    DeleteGroups = 42
    ElectLeaders = 43
    IncrementalAlterConfigs = 44
    OffsetDelete = 47
    DescribeCluster = 60
    ConsumerGroupHeartbeat = 68
    ConsumerGroupDescribe = 69
    ListConfigResources = 74
    DescribeTopicPartitions = 75
    #: Messages of the `server` design (docs/server-protocol.md). Kafka's keys are below 100.
    AwaitCommand = 20_001
    CommitOwned = 20_002
    #: The request of `rebalance-lab doctor --broker` (kernel/broker/apis/loop.py).
    DescribeLoop = 20_003


#: api: (lowest, highest) version.
SERVED: Mapping[Api, tuple[int, int]] = MappingProxyType(
    {
        Api.Produce: (3, 12),  # 13 names topics by id only
        Api.Fetch: (0, 17),
        Api.ListOffsets: (0, 10),
        Api.Metadata: (0, 13),
        Api.OffsetCommit: (0, 9),  # 10 names topics by id only
        Api.OffsetFetch: (0, 9),
        Api.FindCoordinator: (0, 6),
        Api.JoinGroup: (0, 9),
        Api.Heartbeat: (0, 4),
        Api.LeaveGroup: (0, 5),
        Api.SyncGroup: (0, 5),
        Api.DescribeGroups: (0, 6),
        Api.ListGroups: (0, 5),
        Api.ApiVersions: (0, 4),
        Api.CreateTopics: (2, 7),
        Api.DeleteTopics: (1, 6),
        Api.DeleteRecords: (0, 2),
        Api.InitProducerId: (0, 5),  # 6 is for two-phase commit
        Api.OffsetForLeaderEpoch: (2, 4),
        Api.AddPartitionsToTxn: (0, 4),  # 0 to 3 are for clients, 4 between brokers
        Api.AddOffsetsToTxn: (0, 4),
        Api.EndTxn: (0, 4),  # 5 raises the epoch with each transaction (KIP-890)
        Api.WriteTxnMarkers: (1, 1),
        Api.TxnOffsetCommit: (0, 4),  # 5 needs no AddOffsetsToTxn (KIP-890)
        Api.DescribeConfigs: (1, 4),
        Api.AlterConfigs: (0, 2),
        Api.DescribeLogDirs: (1, 4),
        Api.CreatePartitions: (0, 3),
        Api.DeleteGroups: (0, 2),
        Api.ElectLeaders: (0, 2),
        Api.IncrementalAlterConfigs: (0, 1),
        Api.OffsetDelete: (0, 0),
        Api.DescribeCluster: (0, 2),
        Api.ConsumerGroupHeartbeat: (0, 1),
        Api.ConsumerGroupDescribe: (0, 1),
        Api.ListConfigResources: (0, 1),
        Api.DescribeTopicPartitions: (0, 0),
        Api.AwaitCommand: (0, 0),
        Api.CommitOwned: (0, 0),
        Api.DescribeLoop: (0, 0),
    }
)


def served_versions(api: Api) -> range:
    lowest, highest = SERVED[api]
    return range(lowest, highest + 1)


def negotiated(api: Api, offered: Mapping[int, tuple[int, int]]) -> int | None:
    """The highest version of `api` that both sides support, or None. `offered` comes from ApiVersions."""
    theirs = offered.get(api)
    if theirs is None:
        return None
    lowest, highest = SERVED[api]
    version = min(highest, theirs[1])
    return version if version >= max(lowest, theirs[0]) else None
