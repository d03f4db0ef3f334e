"""An idempotent producer. Records sent while a batch of their partition is in flight form the next batch.

Each partition has one batch in flight, so the sequence number is enough to keep the order. A retry sends the same
bytes: the broker recognises them by producer id, epoch and sequence (KIP-98) and returns the original offsets, so a
repeated batch is stored once, even by the next leader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.errors import RebalanceLabError, Retriable, Unavailable
from kernel.records.records import NewRecord, build_batch
from kernel.runtime import REAL
from kernel.tasks import cancel_and_wait
from kernel.wire.errors import ErrorCode, ProtocolError, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from kernel.client.client import ClusterClient
    from kernel.clock import Clock
    from kernel.values import TopicPartition


class ProduceFailed(RebalanceLabError):
    """The records were refused, or not acknowledged in time; `error` is Kafka's name of the reason.

    After `TIMED_OUT` it is unknown whether they are stored; the partition then continues with a new producer id.
    """

    def __init__(self, tp: TopicPartition, error: str, message: str) -> None:
        super().__init__(f"{tp}: {error}{': ' if message else ''}{message}")
        self.error = error


class _Refused(RebalanceLabError):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """Kafka's names in Python's spelling; defaults are Kafka's, except for a shorter delivery timeout."""

    acks: int = -1
    batch_records_max: int = 10_000
    batch_bytes_max: int = 512 * 1024
    compression: str = "none"
    delivery_timeout_ms: int = 30_000
    request_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    linger_ms: int = 0


class _Pending(NamedTuple):
    record: NewRecord
    offset: asyncio.Future[int]


@dataclass(slots=True)
class _Partition:
    """The records waiting for one partition, and the numbers of its next batch."""

    queue: list[_Pending] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    producer: tuple[int, int] | None = None  #: (producer id, epoch); None: request one
    next_sequence: int = 0


class Producer:
    """Does not number values itself: they are the caller's. Closing it flushes waiting records."""

    def __init__(
        self, client: ClusterClient, config: ProducerConfig | None = None, *, clock: Clock = REAL.clock
    ) -> None:
        self._client = client
        self._config = config or ProducerConfig()
        self._clock = clock
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._refreshing: asyncio.Lock = asyncio.Lock()
        self._refreshes: Counter[str] = Counter()  #: begun so far, by topic
        self._closing = False

    async def send(
        self,
        tp: TopicPartition,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp_ms: int | None = None,
    ) -> int:
        """The record's offset, once it is acknowledged (-1 with acks=0). Raises `ProduceFailed`."""
        return await self.enqueue(tp, value, key=key, headers=headers, timestamp_ms=timestamp_ms)

    def enqueue(
        self,
        tp: TopicPartition,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[int]:
        """As `send`, without waiting. Records are stored in the order of the calls."""
        assert not self._closing, "this producer is closed"
        partition = self._partitions.setdefault(tp, _Partition())
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        now_ms = self._clock.wall_ms() if timestamp_ms is None else timestamp_ms
        partition.queue.append(_Pending(NewRecord(value, key, now_ms, headers), future))
        partition.arrived.set()
        if partition.task is None:
            partition.task = asyncio.create_task(self._run(tp, partition), name=f"produce-{tp}")
        return future

    async def flush(self) -> None:
        """Wait until all records so far are acknowledged or have failed. Failures stay with their futures."""
        waiting = [pending.offset for partition in self._partitions.values() for pending in partition.queue]
        if waiting:
            await asyncio.wait(waiting)

    async def close(self, *, timeout_ms: int = 5_000) -> None:
        """Flush for at most `timeout_ms`, then drop the rest. Idempotent; the client stays open."""
        self._closing = True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.flush()
        except TimeoutError:
            pass
        tasks = [partition.task for partition in self._partitions.values() if partition.task is not None]
        await cancel_and_wait(*tasks)
        for tp, partition in self._partitions.items():
            _fail(partition.queue, ProduceFailed(tp, "CLOSED", "the producer was closed"))
            partition.queue.clear()

    # -- one partition -----------------------------------------------------------------------------------------------

    async def _run(self, tp: TopicPartition, partition: _Partition) -> None:
        while True:
            await partition.arrived.wait()
            if self._config.linger_ms:
                await asyncio.sleep(self._config.linger_ms / 1000)
            batch = self._next_batch(partition.queue)
            try:
                base = await self._deliver(tp, partition, [pending.record for pending in batch])
            except ProduceFailed as error:
                _fail(batch, error)
            else:
                for index, pending in enumerate(batch):
                    if not pending.offset.done():
                        pending.offset.set_result(base + index if base >= 0 else -1)
            # Only now: records in flight count as waiting for `flush` and `close`.
            del partition.queue[: len(batch)]
            if not partition.queue:
                partition.arrived.clear()

    def _next_batch(self, queue: list[_Pending]) -> list[_Pending]:
        size = 0
        for count, pending in enumerate(queue[: self._config.batch_records_max]):
            size += len(pending.record.value or b"") + len(pending.record.key or b"") + 32
            if size > self._config.batch_bytes_max and count:
                return queue[:count]
        return queue[: self._config.batch_records_max]

    async def _deliver(self, tp: TopicPartition, partition: _Partition, records: list[NewRecord]) -> int:
        """Send a batch and return its base offset. Retries with the same bytes until the delivery timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.delivery_timeout_ms / 1000
        payload: bytes | None = None
        reason = "no leader is known"
        while loop.time() < deadline:
            try:
                if payload is None:
                    payload = await self._numbered(partition, records)
                base = await self._produce(tp, payload)
            except _Refused as error:
                if error.code is ErrorCode.duplicate_sequence_number:
                    base = -1
                elif not error.code.retriable:
                    partition.producer = None
                    raise ProduceFailed(tp, error_name(error.code), str(error)) from error
                else:
                    reason = f"{error_name(error.code)} {error}".strip()
                    await self._back_off(tp)
                    continue
            except (Unavailable, Retriable, ProtocolError) as error:
                reason = str(error)
                await self._back_off(tp)
                continue
            partition.next_sequence = (partition.next_sequence + len(records)) & 0x7FFFFFFF
            return base
        partition.producer = None
        raise ProduceFailed(tp, "TIMED_OUT", f"not acknowledged within {self._config.delivery_timeout_ms} ms: {reason}")

    async def _numbered(self, partition: _Partition, records: list[NewRecord]) -> bytes:
        if partition.producer is None:
            partition.producer = await self._producer_id()
            partition.next_sequence = 0
        producer_id, epoch = partition.producer
        return build_batch(
            records,
            codec=self._config.compression,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=partition.next_sequence,
        )

    async def _producer_id(self) -> tuple[int, int]:
        connection = await self._client.any_connection()
        answer = await connection.call(
            Api.InitProducerId,
            {"transactional_id": None, "transaction_timeout": 0, "producer_id": -1, "producer_epoch": -1},
            timeout_ms=self._config.request_timeout_ms,
        )
        if answer.error_code is not ErrorCode.none:
            raise _Refused(answer.error_code, "no producer id was handed out")
        return answer.producer_id, answer.producer_epoch

    async def _produce(self, tp: TopicPartition, payload: bytes) -> int:
        leader = self._client.leader_of(tp)
        if leader is None:
            await self._refresh(tp)
            leader = self._client.leader_of(tp)
            if leader is None:
                raise _Refused(ErrorCode.leader_not_available, "")
        connection = await self._client.connection(leader)
        body = {
            "transactional_id": None,
            "acks": self._config.acks,
            "timeout": self._config.request_timeout_ms,
            "topic_data": [{"name": tp.topic, "partition_data": [{"index": tp.partition, "records": payload}]}],
        }
        if self._config.acks == 0:
            connection.send_only(Api.Produce, body)
            return -1
        answer = await connection.call(Api.Produce, body, timeout_ms=self._config.request_timeout_ms)
        partition: Any = answer.responses[0].partition_responses[0]
        if partition.error_code is not ErrorCode.none:
            raise _Refused(partition.error_code, getattr(partition, "error_message", None) or "")
        base_offset: int = partition.base_offset
        return base_offset

    async def _back_off(self, tp: TopicPartition) -> None:
        await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        try:
            await self._refresh(tp)
        except (Unavailable, ProtocolError):
            return  # no broker answers: left to the next attempt, or the delivery timeout

    async def _refresh(self, tp: TopicPartition) -> None:
        """After a leader's death all its partitions ask: what began after a partition asked answers it as well.

        If each had a request of its own, the last of hundreds of partitions would wait beyond its delivery timeout.
        """
        asked_at = self._refreshes[tp.topic]
        async with self._refreshing:
            if self._refreshes[tp.topic] > asked_at:
                return
            self._refreshes[tp.topic] += 1
            await self._client.refresh([tp.topic], create=True, timeout_ms=self._config.request_timeout_ms)


def _fail(batch: list[_Pending], error: ProduceFailed) -> None:
    for pending in batch:
        if not pending.offset.done():
            pending.offset.set_exception(error)
