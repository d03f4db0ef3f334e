"""A transactional producer that follows coordinator and leaders, and retries like stock clients.

async with transactional(bootstrap, "x") as producer:
    await producer.init()
    await producer.send(tp, "a", "b")       # adds the partition first
    await producer.end()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kernel.client.client import ClusterClient
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.errors import RebalanceLabError
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

#: Retriable errors of Kafka; the last two occur while a transaction is being completed, or moves.
PASSING = frozenset(
    {
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.leader_not_available,
        ErrorCode.not_enough_replicas,
        ErrorCode.kafka_storage_error,
        ErrorCode.concurrent_transactions,
    }
)
PATIENCE_S = 60
BACKOFF_S = 0.05


class TransactionalClient:
    """One incarnation at a time; `producer_id` and `epoch` may be set to play a zombie."""

    def __init__(self, client: ClusterClient, transactional_id: str, timeout_ms: int) -> None:
        self._client = client
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()

    async def init(self) -> None:
        answer = await self._ask(self._init_once)
        assert answer.error_code is ErrorCode.none, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._added.clear()

    async def send(self, tp: TopicPartition, *values: str) -> ErrorCode:
        """Send records in the transaction, after adding the partition to it."""
        if tp not in self._added:
            if (code := await self.add(tp)) is not ErrorCode.none:
                return code
            self._added.add(tp)
        return await self.produce(tp, *values)

    async def add(self, *partitions: TopicPartition) -> ErrorCode:
        topics: dict[str, list[int]] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        body = {
            "v3_and_below_transactional_id": self.transactional_id,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": [{"name": name, "partitions": numbers} for name, numbers in topics.items()],
        }
        answer = await self._ask(lambda: self._coordinated(Api.AddPartitionsToTxn, 3, body), _added)
        return _added(answer)

    async def produce(self, tp: TopicPartition, *values: str, version: int = 11) -> ErrorCode:
        """Send records without checking that the partition is part of the transaction."""
        sequence = self._sequences.get(tp, 0)
        payload = build_batch(
            [NewRecord(value.encode(), None, 0) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        body = {
            "transactional_id": self.transactional_id,
            "acks": -1,
            "timeout": 5_000,
            "topic_data": [{"name": tp.topic, "partition_data": [{"index": tp.partition, "records": payload}]}],
        }

        async def once() -> Any:
            await self._client.refresh([tp.topic])
            connection = await self._client.connection(_led(self._client, tp))
            return await connection.call(Api.Produce, body, version=version)

        def code_of(answer: Any) -> ErrorCode:
            code: ErrorCode = answer.responses[0].partition_responses[0].error_code
            return code

        code = code_of(await self._ask(once, code_of))
        if code is ErrorCode.none:
            self._sequences[tp] = sequence + len(values)
        return code

    async def end(self, *, commits: bool = True) -> ErrorCode:
        """End the transaction; retries at the current coordinator until it answers."""
        answer = await self._ask(lambda: self.end_once(commits=commits))
        self._added.clear()
        code: ErrorCode = answer.error_code
        return code

    async def end_once(self, *, commits: bool = True) -> Any:
        body = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "committed": commits,
        }
        return await self._coordinated(Api.EndTxn, 3, body)

    async def _init_once(self) -> Any:
        body = {
            "transactional_id": self.transactional_id,
            "transaction_timeout": self._timeout_ms,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        return await self._coordinated(Api.InitProducerId, 4, body)

    async def coordinator(self) -> int:
        """The transactional id's coordinator, according to any broker."""
        connection = await self._client.any_connection()
        body = {"key": self.transactional_id, "key_type": 1}
        found = await connection.call(Api.FindCoordinator, body, version=2)
        if found.error_code is not ErrorCode.none:
            raise _NotYet(found.error_code.name)
        node_id: int = found.node_id
        return node_id

    async def _coordinated(self, api: Api, version: int, body: dict[str, Any]) -> Any:
        node_id = await self.coordinator()
        if node_id not in self._client.metadata.brokers:
            await self._client.refresh([])
        connection = await self._client.connection(node_id)
        return await connection.call(api, body, version=version)

    async def _ask(self, once: Callable[[], Awaitable[Any]], code_of: Callable[[Any], ErrorCode] | None = None) -> Any:
        answer: Any = None

        async def answered() -> bool:
            nonlocal answer
            try:
                answer = await once()
            except RebalanceLabError:
                await asyncio.sleep(BACKOFF_S)
                return False
            code = answer.error_code if code_of is None else code_of(answer)
            return code not in PASSING

        await until(answered, PATIENCE_S, lambda: f"an answer; the last one: {answer}")
        return answer


class _NotYet(RebalanceLabError):
    """There is no coordinator or leader at the moment."""


def _added(answer: Any) -> ErrorCode:
    codes = {
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    (code,) = codes
    assert isinstance(code, ErrorCode)
    return code


def _led(client: ClusterClient, tp: TopicPartition) -> int:
    leader = client.leader_of(tp)
    if leader is None:
        raise _NotYet(f"{tp} has no leader")
    return leader


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    return [(host, int(port)) for host, _, port in (part.rpartition(":") for part in bootstrap.split(","))]


@asynccontextmanager
async def transactional(
    bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000
) -> AsyncIterator[TransactionalClient]:
    """A client, not initialised."""
    client = ClusterClient(addresses(bootstrap), transactional_id)
    try:
        yield TransactionalClient(client, transactional_id, timeout_ms)
    finally:
        await client.close()


async def read(bootstrap: str, tp: TopicPartition, *, committed: bool = True) -> list[str]:
    """All values of a partition, up to the last stable offset if `committed`."""
    client = ClusterClient(addresses(bootstrap), "reader")
    values: list[str] = []

    async def at_end() -> bool:
        values.clear()
        try:
            await client.refresh([tp.topic])
            connection = await client.connection(_led(client, tp))
            _, position = (await list_offset(connection, {tp: EARLIEST}))[tp]
            error, end = (await list_offset(connection, {tp: LATEST}, committed=committed))[tp]
            while not error and position < end:
                got = (await fetch(connection, {tp: position}, max_wait_ms=0, committed=committed))[tp]
                error, position = got.error, got.next_offset
                values.extend((record.value or b"").decode() for record in got.records)
        except RebalanceLabError:
            error = "again"
        return not error

    try:
        await until(at_end, PATIENCE_S, f"{tp} to be read")
        return values
    finally:
        await client.close()


async def stable_and_end(bootstrap: str, tp: TopicPartition) -> tuple[int, int]:
    """The last stable offset and the end, by ListOffsets at both isolation levels."""
    client = ClusterClient(addresses(bootstrap), "reader")
    try:
        await client.refresh([tp.topic])
        connection = await client.connection(_led(client, tp))
        refused, stable = (await list_offset(connection, {tp: LATEST}, committed=True))[tp]
        also_refused, end = (await list_offset(connection, {tp: LATEST}))[tp]
        if refused or also_refused:
            raise _NotYet(f"{tp}: {refused or also_refused}")
        return stable, end
    finally:
        await client.close()
