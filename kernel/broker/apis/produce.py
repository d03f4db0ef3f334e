"""Produce and InitProducerId.

Source: KafkaApis.handleProduceRequest and ReplicaManager.appendToLocalLog of Kafka 3.9. Every batch is checked
on arrival (`kernel.records.records.accepted`) and against its topic's settings (`kernel.broker.apis.batch_rules`). The
storage numbers it and makes it durable, and keeps the last five batches of each producer in each partition for
idempotence. A transactional batch is stored if its partition was added to the transaction, as a mounted coordinator
verifies (`kernel.broker.apis.transaction_verification`); without one, InitProducerId refuses transactional ids.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.batch_rules import RefusedRecords, conformed, needs_records
from kernel.broker.apis.refusals import current_leader, endpoints, not_led
from kernel.broker.cluster.znodes import MalformedNode
from kernel.broker.storage.errors import (
    Fenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    LogStopped,
    OutOfOrderSequence,
    StorageError,
    StorageFailed,
)
from kernel.records.record_check import checked_off_the_loop, takes_long
from kernel.records.records import RefusedBatch, accepted
from kernel.topic_names import INTERNAL_TOPICS
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode, ProtocolError
from kernel.wire.versions import Api
from kernel.zookeeper.errors import ZooKeeperError
from kernel.zookeeper.paths import PRODUCER_ID_BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.broker.apis.transaction_verification import Verification
    from kernel.broker.cluster.config_store import ConfigStore
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.cluster.led_logs import LedLogs
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.broker.settings.topic_configs import TopicConfig
    from kernel.broker.storage.logs import PartitionLog
    from kernel.clock import Clock
    from kernel.records.batches import AppendBatch
    from kernel.records.compression import UnpackingTurn

log = logging.getLogger(__name__)

#: The client id that may write to Kafka's internal topics.
ADMIN_CLIENT_ID = "__admin_client"

_STORAGE_CODES: dict[type[StorageError], ErrorCode] = {
    Fenced: ErrorCode.not_leader_or_follower,
    StorageFailed: ErrorCode.kafka_storage_error,
    LogStopped: ErrorCode.unknown_server_error,
    OutOfOrderSequence: ErrorCode.out_of_order_sequence_number,
    InvalidProducerEpoch: ErrorCode.invalid_producer_epoch,
    InvalidTransactionState: ErrorCode.invalid_txn_state,
}


class ProduceHandlers:
    """Appends to the logs that this broker leads."""

    def __init__(
        self,
        cluster: Cluster,
        logs: LedLogs,
        configs: ConfigStore,
        verification: Verification,
        turn: UnpackingTurn,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._logs = logs
        self._configs = configs
        self._verification = verification
        self._turn = turn
        self._clock = clock

    def table(self) -> HandlerTable:
        return {Api.Produce: self.produce, Api.InitProducerId: self.init_producer_id}

    async def produce(self, context: RequestContext, body: Any) -> Mapping[str, Any] | None:
        """Append to all partitions concurrently. With acks=0 an error closes the connection: there is no response."""
        wanted = [
            (TopicPartition(topic.name, data.index), data.records)
            for topic in body.topic_data
            for data in topic.partition_data
        ]
        if body.acks not in (-1, 0, 1):
            answers = [_refusal(tp, ErrorCode.invalid_required_acks) for tp, _ in wanted]
        elif len(wanted) == 1:
            answers = [await self._append(context, *wanted[0], body.transactional_id)]
        else:
            answers = await asyncio.gather(
                *(self._append(context, tp, records, body.transactional_id) for tp, records in wanted)
            )
        if body.acks == 0:
            if wrong := [answer for answer in answers if answer["error_code"] is not ErrorCode.none]:
                raise ProtocolError(f"Produce with acks=0 failed: {wrong[0]['error_code'].name}")
            return None
        by_topic: dict[str, list[dict[str, Any]]] = {topic.name: [] for topic in body.topic_data}
        for (tp, _), answer in zip(wanted, answers, strict=True):
            by_topic[tp.topic].append(answer)
        return {
            "responses": [{"name": name, "partition_responses": answers} for name, answers in by_topic.items()],
            "node_endpoints": endpoints(self._cluster.snapshot, answers),
        }

    async def _append(
        self, context: RequestContext, tp: TopicPartition, records: bytes | None, transactional_id: str | None
    ) -> dict[str, Any]:
        if tp.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
            return _refusal(tp, ErrorCode.invalid_topic_exception, f"only brokers may write to {tp.topic}")
        led = self._logs.get(tp)
        if led is None:
            return self._not_led(tp)
        config, now_ms = self._configs.of(tp.topic), self._clock.wall_ms()
        try:
            batch = accepted(records, max_bytes=config.max_message_bytes, zstd=context.version >= 7)
            batch = await checked_off_the_loop(batch, self._turn)
            if batch.producer is not None and batch.producer.transactional:
                batch = await self._verified(led, batch, transactional_id, context.version)
            batch = await self._conformed(tp, batch, config, now_ms)
            result = await led.append([batch])
        except RefusedRecords as error:
            refusal = _refusal(tp, error.code, str(error))
            return {**refusal, "record_errors": error.record_errors, "log_start_offset": led.start_offset}
        except RefusedBatch as error:
            return _refusal(tp, error.code, str(error) or None)
        except Fenced:
            return self._not_led(tp)
        except StorageError as error:
            if isinstance(error, StorageFailed):
                log.warning("%s: cannot store a batch: %s", tp, error)
            refusal = _refusal(tp, _STORAGE_CODES.get(type(error), ErrorCode.kafka_storage_error), str(error))
            return refusal if isinstance(error, StorageFailed) else {**refusal, "log_start_offset": led.start_offset}
        return {
            "index": tp.partition,
            "error_code": ErrorCode.none,
            "base_offset": result.base_offset,
            "log_append_time": now_ms if config.log_append_time else None,
            "log_start_offset": led.start_offset,
        }

    async def _verified(
        self, led: PartitionLog, batch: AppendBatch, transactional_id: str | None, version: int
    ) -> AppendBatch:
        """Check a transactional batch; the first one needs the coordinator's approval. Raises `RefusedBatch`."""
        stamp = batch.producer
        assert stamp is not None, "a transaction has a producer"
        if transactional_id is None:  # in Kafka, no principal is authorized to write for it
            raise RefusedBatch(ErrorCode.transactional_id_authorization_failed, "there is no transactional id")
        producer = stamp.producer_id, stamp.producer_epoch
        if led.has_transaction(*producer):
            return batch
        verified_at = led.end_offset
        code, message = await self._verification.ask(transactional_id, producer, led.topic_partition, version)
        if code is not ErrorCode.none:
            raise RefusedBatch(code, message or "")
        return dataclasses.replace(batch, verified_at=verified_at)

    async def _conformed(self, tp: TopicPartition, batch: AppendBatch, config: TopicConfig, now_ms: int) -> AppendBatch:
        if takes_long(batch) and needs_records(batch, config, now_ms):
            return await self._turn.run(conformed, tp, batch, config, now_ms)
        return conformed(tp, batch, config, now_ms)

    def _not_led(self, tp: TopicPartition) -> dict[str, Any]:
        """Refuse an unknown partition, or one led elsewhere, and name the leader (KIP-951, version 10 and later)."""
        return {**_refusal(tp, not_led(self._cluster.snapshot, tp)), **current_leader(self._cluster, tp)}

    async def init_producer_id(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        if body.transactional_id is not None:
            # Fatal for every client; they would retry "not supported" forever.
            code = ErrorCode.invalid_request if body.transactional_id == "" else ErrorCode.invalid_txn_state
            return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
        return await new_producer(self._cluster)


async def new_producer(cluster: Cluster) -> dict[str, Any]:
    """An InitProducerId response with a new id."""
    try:
        producer_id = await cluster.allocate_producer_id()
    except ZooKeeperError as error:
        log.warning("cannot allocate a producer id: %s", error)
        return {"error_code": ErrorCode.coordinator_load_in_progress, "producer_id": -1, "producer_epoch": -1}
    except MalformedNode as error:
        log.error("cannot allocate a producer id: %s: %s", PRODUCER_ID_BLOCK, error)  # noqa: TRY400 - no fault here
        return {"error_code": ErrorCode.unknown_server_error, "producer_id": -1, "producer_epoch": -1}
    return {"error_code": ErrorCode.none, "producer_id": producer_id, "producer_epoch": 0}


def _refusal(tp: TopicPartition, code: ErrorCode, message: str | None = None) -> dict[str, Any]:
    return {"index": tp.partition, "error_code": code, "base_offset": -1, "error_message": message}
