"""The coordinator on a broker: which handler answers which request.

Compose with `Broker(..., mount=[coordinator.service.mount.mount])`; the broker's own InitProducerId, which knows no
transactional ids, is replaced. `coordinator.groups` decides; `record_codec` and `translation` have the bytes,
`led_partitions` says which groups this broker answers for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.service.consumer_heartbeats import ConsumerHeartbeatHandler
from coordinator.service.coordinator import Coordinator
from coordinator.service.group_requests import JOIN_READERS, SYNC_READERS
from coordinator.service.handlers import GroupHandlers, OffsetHandlers
from coordinator.service.handlers_consumer import ConsumerHandlers
from coordinator.service.handlers_server import ServerHandlers
from coordinator.service.handlers_transactions import TransactionHandlers
from coordinator.service.heartbeats import HeartbeatHandler
from coordinator.service.limits import consumer_settings_of
from coordinator.service.lookup import Lookup
from kernel.broker.server.handlers import ReadByHand
from kernel.topic_names import OFFSETS_TOPIC
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from coordinator.groups.consumer.requests import ConsumerSettings
    from kernel.broker.server.handlers import HandlerTable
    from kernel.broker.services import BrokerServices


def mount(services: BrokerServices, consumer: ConsumerSettings | None = None) -> HandlerTable:
    """The handlers of the group protocol; subscribes to the leadership of `__consumer_offsets`.

    `consumer` takes the place of the broker's settings for consumer groups.
    """
    coordinator = Coordinator(services, consumer or consumer_settings_of(services.config))
    services.cluster.subscribe(coordinator.partitions, topics=lambda name: name == OFFSETS_TOPIC)
    services.on_stop(coordinator.stop)
    services.verification.verifier = coordinator.verifier
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
        Api.ConsumerGroupHeartbeat: ConsumerHeartbeatHandler(coordinator),
        Api.ConsumerGroupDescribe: ConsumerHandlers(coordinator).describe,
    }
