"""Checks that a group or a partition belongs to the open transaction that writes to it (KIP-890, part 1).

Without the check a late TxnOffsetCommit would leave pending offsets that no EndTxn ends, and a late Produce would begin
a transaction that hides everything after it from read_committed. The check asks the transaction coordinator as Kafka's
brokers do: by an AddPartitionsToTxn that only verifies. Later writes of the same transaction need no check: no marker
has come, so the partition is still part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import Producer
from coordinator.service.peers import UNREACHABLE, error_of
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.groups.records import TransactionRecord
    from coordinator.service.led_partitions import LedPartitions
    from coordinator.service.peers import Peers
    from kernel.broker.services import BrokerServices

Body = Any


class TransactionVerifier:
    """Serves Produce, TxnOffsetCommit and other brokers (`kernel.broker.apis.transaction_verification.Verifier`)."""

    def __init__(self, services: BrokerServices, partitions: LedPartitions, peers: Peers) -> None:
        self._cluster = services.cluster
        self._node_id = services.node_id
        self._partitions = partitions
        self._peers = peers

    async def __call__(
        self, transactional_id: str, producer_id: int, producer_epoch: int, tp: TopicPartition
    ) -> ErrorCode:
        producer = Producer(producer_id, producer_epoch)
        error = self.check_here(transactional_id, producer, tp)
        if error is Error.NOT_COORDINATOR:
            error = await self._check_remotely(transactional_id, producer, tp)
        return ErrorCode(int(error))

    def check_commit(self, body: Body) -> Error | Awaitable[Error]:
        """NONE if a TxnOffsetCommit to a group led here is part of its transaction, otherwise its error."""
        producer = Producer(body.producer_id, body.producer_epoch)
        number = self._partitions.number_of(body.group_id)
        group = self._partitions.at_number(number)
        if not isinstance(group, Error) and group.machine.offsets.pending.is_open(producer):
            return Error.NONE  # whatever transactional id it claims
        if not body.transactional_id:
            return Error.INVALID_REQUEST
        tp = TopicPartition(OFFSETS_TOPIC, number)
        here = self.check_here(body.transactional_id, producer, tp)
        if here is not Error.NOT_COORDINATOR:
            return here
        return self._check_remotely(body.transactional_id, producer, tp)

    def check_here(self, transactional_id: str, producer: Producer, tp: TopicPartition) -> Error:
        """NONE if `tp` is part of the transaction; NOT_COORDINATOR if another broker coordinates it."""
        at = self._partitions.at(transactional_id)
        if isinstance(at, Error):
            return at

        def includes(record: TransactionRecord) -> bool:
            if tp in record.partitions:
                return True
            groups = record.groups if tp.topic == OFFSETS_TOPIC else ()
            return any(self._partitions.number_of(group_id) == tp.partition for group_id in groups)

        return at.machine.transactions.takes_part(transactional_id, producer, includes)

    async def _check_remotely(self, transactional_id: str, producer: Producer, tp: TopicPartition) -> Error:
        coordinator = TopicPartition(OFFSETS_TOPIC, self._partitions.number_of(transactional_id))
        leader = self._cluster.snapshot.leader_of(coordinator)
        if leader is None or leader.node_id == self._node_id:
            return UNREACHABLE  # the cluster's view is outdated
        transaction = {
            "transactional_id": transactional_id,
            "producer_id": producer.id,
            "producer_epoch": producer.epoch,
            "verify_only": True,
            "topics": [{"name": tp.topic, "partitions": [tp.partition]}],
        }
        answer = await self._peers.call(leader, Api.AddPartitionsToTxn, {"transactions": [transaction]})
        if answer is None:
            return UNREACHABLE
        error = error_of(answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code)
        return UNREACHABLE if error is Error.NOT_COORDINATOR else error
