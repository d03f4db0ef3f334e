"""The coordinator on a broker: which handler answers which request.

Compose with `Broker(..., mount=[coordinator.service.mount])`, whose own InitProducerId knows no transactional ids
and is replaced. Deciding is `coordinator.group`'s, bytes are
`coordinator.store`'s and `coordinator.translation`'s, who is responsible is `coordinator.gate`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.gate import Coordinator
from coordinator.group_requests import JOIN_READERS, SYNC_READERS
from coordinator.handlers import GroupHandlers, OffsetHandlers
from coordinator.handlers_transactions import TransactionHandlers
from coordinator.hot_heartbeat import HeartbeatHandler
from coordinator.lookup import Lookup
from coordinator.server.handlers import ServerHandlers
from coordinator.verification import PartitionVerifier
from kernel.broker.cluster_view import GROUP_METADATA_TOPIC
from kernel.broker.handlers import ReadByHand
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from kernel.broker.handlers import HandlerTable
    from kernel.broker.services import BrokerServices


def mount(services: BrokerServices) -> HandlerTable:
    """The handlers of the group protocol; subscribes to the leadership of `__consumer_offsets`."""
    coordinator = Coordinator(services)
    services.cluster.subscribe(coordinator, topics=lambda name: name == GROUP_METADATA_TOPIC)
    services.on_stop(coordinator.stop)
    services.verification.verifier = PartitionVerifier(coordinator)
    group, offsets = GroupHandlers(coordinator), OffsetHandlers(coordinator)
    transactions, server = TransactionHandlers(coordinator), ServerHandlers(coordinator)
    return {
        Api.FindCoordinator: Lookup(services).find,
        Api.JoinGroup: ReadByHand(group.join, JOIN_READERS),
        Api.SyncGroup: ReadByHand(group.sync, SYNC_READERS),
        Api.Heartbeat: HeartbeatHandler(coordinator),
        Api.LeaveGroup: group.leave,
        Api.DescribeGroups: group.describe,
        Api.ListGroups: group.list,
        Api.DeleteGroups: group.delete,
        Api.OffsetCommit: offsets.commit,
        Api.OffsetFetch: offsets.fetch,
        Api.OffsetDelete: offsets.delete,
        Api.InitProducerId: transactions.init_producer_id,
        Api.AddPartitionsToTxn: transactions.add_partitions,
        Api.AddOffsetsToTxn: transactions.add_offsets,
        Api.TxnOffsetCommit: offsets.commit_in_transaction,
        Api.EndTxn: transactions.end,
        Api.WriteTxnMarkers: transactions.write_markers,
        Api.AwaitCommand: server.await_command,
        Api.CommitOwned: server.commit_owned,
    }
