"""Whether a group, or a partition, was added to the open transaction that claims to write to it (KIP-890, part 1).

Without it a late TxnOffsetCommit would leave offsets pending that no EndTxn ends, and a late Produce would begin a
transaction that hides everything behind it from read_committed. The broker that looks after the transactional id is
asked as Kafka's brokers ask each other: by AddPartitionsToTxn that only verifies. Later writes of the same transaction
are not asked about: a marker has not come, so the partition is still part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import Producer
from coordinator.service.transaction_markers import UNTOLD, call_leader, error_of
from kernel.broker.cluster.cluster_view import GROUP_METADATA_TOPIC
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.groups.records import TransactionRecord
    from coordinator.service.coordinator import Coordinator

Body = Any


def verified(coordinator: Coordinator, body: Body) -> Error | Awaitable[Error]:
    """Of a TxnOffsetCommit to a group that is looked after here: NONE, or why it is refused."""
    producer = Producer(body.producer_id, body.producer_epoch)
    number = coordinator.number_of(body.group_id)
    group = coordinator.at_number(number)
    if not isinstance(group, Error) and group.shard.holdings.pending.is_open(producer):
        return Error.NONE  # whatever it says its transactional id is
    if not body.transactional_id:
        return Error.INVALID_REQUEST
    tp = TopicPartition(GROUP_METADATA_TOPIC, number)
    here = seen_here(coordinator, body.transactional_id, producer, tp)
    if here is not Error.NOT_COORDINATOR:
        return here
    return _asked(coordinator, body.transactional_id, producer, tp)


class PartitionVerifier:
    """What Produce asks (`kernel.broker.transactions.Verifier`)."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def __call__(
        self, transactional_id: str, producer_id: int, producer_epoch: int, tp: TopicPartition
    ) -> ErrorCode:
        producer = Producer(producer_id, producer_epoch)
        error = seen_here(self._coordinator, transactional_id, producer, tp)
        if error is Error.NOT_COORDINATOR:
            error = await _asked(self._coordinator, transactional_id, producer, tp)
        return ErrorCode(int(error))


def seen_here(coordinator: Coordinator, transactional_id: str, producer: Producer, tp: TopicPartition) -> Error:
    """Whether `tp` is part of the transaction; NOT_COORDINATOR where another broker looks after the id."""
    at = coordinator.at(transactional_id)
    if isinstance(at, Error):
        return at

    def includes(record: TransactionRecord) -> bool:
        if tp in record.partitions:
            return True
        groups = record.groups if tp.topic == GROUP_METADATA_TOPIC else ()
        return any(coordinator.number_of(group_id) == tp.partition for group_id in groups)

    return at.shard.transactions.takes_part(transactional_id, producer, includes)


async def _asked(coordinator: Coordinator, transactional_id: str, producer: Producer, tp: TopicPartition) -> Error:
    transaction = {
        "transactional_id": transactional_id,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "verify_only": True,
        "topics": [{"name": tp.topic, "partitions": [tp.partition]}],
    }
    leads = coordinator.number_of(transactional_id)
    answer = await call_leader(coordinator, leads, Api.AddPartitionsToTxn, {"transactions": [transaction]})
    if answer is None:
        return UNTOLD
    error = error_of(answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code)
    return UNTOLD if error is Error.NOT_COORDINATOR else error
