"""The handlers of transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers.

TxnOffsetCommit goes to the group's partition: see `coordinator.service.handlers`.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from coordinator.groups.answers import TransactionAnswer
from coordinator.groups.errors import Error
from coordinator.groups.requests import AddPartitions, Mark, Producer
from coordinator.service import translation
from coordinator.service.led_partition import LedPartition
from coordinator.service.record_codec import TEXT_BYTES_MAX
from kernel.broker.apis.produce import new_producer
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from coordinator.service.coordinator import Coordinator
    from kernel.broker.server.handlers import RequestContext

Plain = dict[str, Any]
Response = Plain | None
Body = Any


class TransactionHandlers:
    """Transactional ids belong to the partition of their hash, as groups do."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._cluster = coordinator.services.cluster
        self._partitions = coordinator.partitions
        self._topics = coordinator.topics
        self._markers = coordinator.markers
        self._verifier = coordinator.verifier

    def _at(self, transactional_id: str) -> LedPartition | Error:
        if not transactional_id or len(transactional_id.encode()) > TEXT_BYTES_MAX:
            return Error.INVALID_REQUEST
        return self._partitions.at(transactional_id)

    async def init_producer_id(self, context: RequestContext, body: Body) -> Response:
        """With a transactional id its producer and epoch; without one just a new producer id."""
        if body.transactional_id is None:
            return await new_producer(self._cluster)
        at = self._at(body.transactional_id)
        if (getattr(body, "producer_id", -1) == -1) != (getattr(body, "producer_epoch", -1) == -1):
            at = Error.INVALID_REQUEST
        fresh_id = -1
        if isinstance(at, LedPartition) and at.machine.transactions.needs_producer_id(body.transactional_id):
            fresh = await new_producer(self._cluster)
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

    def add_partitions(self, context: RequestContext, body: Body) -> Plain | Awaitable[Response]:
        """From a client for one transaction, or, since version 4, from a broker for several, usually to verify them."""
        if context.version >= translation.ADD_PARTITIONS_IS_BATCH:
            return self._add_several(body)
        topics = body.v3_and_below_topics
        names_fence = context.version >= translation.TRANSACTION_NAMES_FENCE

        def answer(given: TransactionAnswer) -> Plain:
            error = Error(translation.transaction_error(given, names_fence=names_fence))
            return {"results_by_topic_v3_and_below": translation.partition_results(topics, lambda _: error)}

        at = self._at(body.v3_and_below_transactional_id)
        if isinstance(at, Error):
            return answer(TransactionAnswer(error=at))
        if (unknown := self._unknown(topics)) is not None:
            return {"results_by_topic_v3_and_below": unknown}
        return at.ask(functools.partial(translation.add_partitions, body), answer)

    def _unknown(self, topics: Iterable[Body]) -> list[Plain] | None:
        """The answer if a partition does not exist: then none is added."""
        wanted = translation.topic_partitions(topics)
        absent = {tp for tp in wanted if not self._topics.has_partition(*tp)}
        if not absent:
            return None
        return translation.partition_results(
            topics,
            lambda tp: Error.UNKNOWN_TOPIC_OR_PARTITION if tp in absent else Error.OPERATION_NOT_ATTEMPTED,
        )

    async def _add_several(self, body: Body) -> Plain:
        return {
            "results_by_transaction": [
                {"transactional_id": one.transactional_id, "topic_results": await self._add_one(one)}
                for one in body.transactions
            ]
        }

    async def _add_one(self, transaction: Body) -> list[Plain]:
        id_, topics = transaction.transactional_id, transaction.topics
        producer = Producer(transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            return translation.partition_results(topics, lambda tp: self._verifier.check_here(id_, producer, tp))
        at = self._at(id_)
        if isinstance(at, Error):
            return translation.partition_results(topics, lambda _: at)
        if (unknown := self._unknown(topics)) is not None:
            return unknown
        partitions = translation.topic_partitions(topics)

        def request(token: int) -> AddPartitions:
            return AddPartitions(token=token, transactional_id=id_, producer=producer, partitions=partitions)

        def answer(given: TransactionAnswer) -> list[Plain]:
            return translation.partition_results(topics, lambda _: given.error)

        answered = at.ask(request, answer)
        return answered if isinstance(answered, list) else await answered

    async def write_markers(self, _context: RequestContext, body: Body) -> Plain:
        """From the brokers that coordinate the transactions."""
        return {"markers": [await self._write_marker(marker) for marker in body.markers]}

    async def _write_marker(self, marker: Body) -> Plain:
        mark = Mark(
            token=0,
            producer=Producer(marker.producer_id, marker.producer_epoch),
            coordinator_epoch=marker.coordinator_epoch,
            commits=marker.transaction_result,
        )
        partitions = [
            TopicPartition(topic.name, number) for topic in marker.topics for number in topic.partition_indexes
        ]
        errors = await asyncio.gather(*(self._markers.write(tp, mark) for tp in partitions))
        error_at = dict(zip(partitions, errors, strict=True))
        return {
            "producer_id": marker.producer_id,
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": number, "error_code": int(error_at[TopicPartition(topic.name, number)])}
                        for number in topic.partition_indexes
                    ],
                }
                for topic in marker.topics
            ],
        }
