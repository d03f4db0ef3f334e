"""The handlers of transactions on group offsets: InitProducerId, AddOffsetsToTxn, EndTxn, WriteTxnMarkers.

TxnOffsetCommit goes to the group's partition and is `coordinator.handlers`'.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from coordinator import translation
from coordinator.group.answers import TransactionAnswer
from coordinator.group.errors import Error
from coordinator.group.requests import Mark, Producer
from coordinator.markers import mark
from coordinator.partition import LedPartition
from coordinator.store import TEXT_BYTES_MAX
from coordinator.verification import seen_here
from kernel.broker.cluster_view import GROUP_METADATA_TOPIC
from kernel.broker.handlers_produce import new_producer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.gate import Coordinator
    from kernel.broker.handlers import RequestContext

Plain = dict[str, Any]
Response = Plain | None
Body = Any


class TransactionHandlers:
    """Transactional ids, which are looked after by the partition of their hash, as groups are."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def _at(self, transactional_id: str) -> LedPartition | Error:
        if not transactional_id or len(transactional_id.encode()) > TEXT_BYTES_MAX:
            return Error.INVALID_REQUEST
        return self._coordinator.at(transactional_id)

    async def init_producer_id(self, context: RequestContext, body: Body) -> Response:
        """With a transactional id also its place and epoch; without one just an id that nobody had."""
        if body.transactional_id is None:
            return await new_producer(self._coordinator.services.cluster)
        at = self._at(body.transactional_id)
        if (getattr(body, "producer_id", -1) == -1) != (getattr(body, "producer_epoch", -1) == -1):
            at = Error.INVALID_REQUEST
        fresh_id = -1
        if isinstance(at, LedPartition) and at.shard.transactions.needs_producer_id(body.transactional_id):
            fresh = await new_producer(self._coordinator.services.cluster)
            if fresh["producer_id"] < 0:
                return fresh
            fresh_id = fresh["producer_id"]
            at = self._at(body.transactional_id)  # it may have moved meanwhile
        names_fence = context.version >= translation.INIT_NAMES_FENCE

        def answer(given: TransactionAnswer) -> Plain:
            return {
                "error_code": translation.transaction_error(given, names_fence=names_fence),
                "producer_id": given.producer.id,
                "producer_epoch": given.producer.epoch,
            }

        if isinstance(at, Error):
            return answer(TransactionAnswer(error=at))
        answered = at.ask(functools.partial(translation.init_producer, body, fresh_id=fresh_id), answer)
        return answered if isinstance(answered, dict) else await answered

    def add_offsets(self, context: RequestContext, body: Body) -> Plain | Awaitable[Response]:
        if len(body.group_id.encode()) > TEXT_BYTES_MAX:
            return {"error_code": int(Error.INVALID_GROUP_ID)}
        return self._ask(context, body, functools.partial(translation.add_group, body))

    def end(self, context: RequestContext, body: Body) -> Plain | Awaitable[Response]:
        return self._ask(context, body, functools.partial(translation.end_transaction, body))

    def _ask(self, context: RequestContext, body: Body, request: Any) -> Plain | Awaitable[Response]:
        names_fence = context.version >= translation.TRANSACTION_NAMES_FENCE

        def answer(given: TransactionAnswer) -> Plain:
            return {"error_code": translation.transaction_error(given, names_fence=names_fence)}

        at = self._at(body.transactional_id)
        return answer(TransactionAnswer(error=at)) if isinstance(at, Error) else at.ask(request, answer)

    def verify(self, _context: RequestContext, body: Body) -> Plain:
        """AddPartitionsToTxn of a broker that asks about a group's partition; there is nothing to be added to."""

        def result(transaction: Body, topic: str, number: int) -> Error:
            if not transaction.verify_only:
                return Error.INVALID_REQUEST
            if topic != GROUP_METADATA_TOPIC:
                return Error.UNKNOWN_TOPIC_OR_PARTITION
            producer = Producer(transaction.producer_id, transaction.producer_epoch)
            return seen_here(self._coordinator, transaction.transactional_id, producer, number)

        return {
            "results_by_transaction": [
                {
                    "transactional_id": transaction.transactional_id,
                    "topic_results": [
                        {
                            "name": topic.name,
                            "results_by_partition": [
                                {
                                    "partition_index": number,
                                    "partition_error_code": int(result(transaction, topic.name, number)),
                                }
                                for number in topic.partitions
                            ],
                        }
                        for topic in transaction.topics
                    ],
                }
                for transaction in body.transactions
            ]
        }

    async def write_markers(self, _context: RequestContext, body: Body) -> Plain:
        """From the brokers that look after transactional ids; partitions of other topics have no transactions."""
        return {
            "markers": [
                {
                    "producer_id": marker.producer_id,
                    "topics": [
                        {
                            "name": topic.name,
                            "partitions": [
                                {
                                    "partition_index": number,
                                    "error_code": int(await self._write_marker(topic.name, number, marker)),
                                }
                                for number in topic.partition_indexes
                            ],
                        }
                        for topic in marker.topics
                    ],
                }
                for marker in body.markers
            ]
        }

    async def _write_marker(self, topic: str, number: int, marker: Body) -> Error:
        if topic != GROUP_METADATA_TOPIC:
            return Error.UNKNOWN_TOPIC_OR_PARTITION

        def request(token: int) -> Mark:
            return Mark(
                token=token,
                producer=Producer(marker.producer_id, marker.producer_epoch),
                coordinator_epoch=marker.coordinator_epoch,
                commits=marker.transaction_result,
            )

        return await mark(self._coordinator, number, request)
