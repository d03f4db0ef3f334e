"""Whether a group was added to the open transaction in which its offsets are committed (KIP-890).

Without it a late TxnOffsetCommit would leave offsets pending that no EndTxn ends. The broker that looks after the
transactional id is asked as Kafka's brokers ask each other: by AddPartitionsToTxn that only verifies. Later commits
of the same transaction are not asked about: a marker has not come, so the partition is still part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.group.errors import Error
from coordinator.group.requests import Producer
from coordinator.markers import UNTOLD, call_leader
from kernel.broker.cluster_view import GROUP_METADATA_TOPIC
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.gate import Coordinator

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
    here = seen_here(coordinator, body.transactional_id, producer, number)
    if here is not Error.NOT_COORDINATOR:
        return here
    return _asked(coordinator, body.transactional_id, producer, number)


def seen_here(coordinator: Coordinator, transactional_id: str, producer: Producer, number: int) -> Error:
    """As `verified`, of partition `number`; NOT_COORDINATOR where another broker looks after the id."""
    at = coordinator.at(transactional_id)
    if isinstance(at, Error):
        return at
    return at.shard.transactions.takes_part(
        transactional_id, producer, lambda group_id: coordinator.number_of(group_id) == number
    )


async def _asked(coordinator: Coordinator, transactional_id: str, producer: Producer, number: int) -> Error:
    transaction = {
        "transactional_id": transactional_id,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "verify_only": True,
        "topics": [{"name": GROUP_METADATA_TOPIC, "partitions": [number]}],
    }
    leads = coordinator.number_of(transactional_id)
    answer = await call_leader(coordinator, leads, Api.AddPartitionsToTxn, {"transactions": [transaction]})
    if answer is None:
        return UNTOLD
    code = int(answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code)
    error = Error(code) if code in set(Error) else Error.UNKNOWN_SERVER_ERROR
    return UNTOLD if error is Error.NOT_COORDINATOR else error
