"""A copier: a member of a group that writes what it reads to another topic, in transactions or without.

Raw requests, so that it can say how each of them was answered.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from coordinator.membership.effects import Identity
from coordinator.protocol.consumer_protocol import encode_assignment, encode_subscription
from kernel.assignors.subscription import MemberSubscription
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.errors import Unavailable
from kernel.records.records import NewRecord, build_batch
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from coordinator.client.calls import GroupCalls
    from kernel.client.client import ClusterClient
    from kernel.client.connection import BrokerConnection
    from kernel.values import TopicPartition

_PATIENCE_S = 30.0
_TIMEOUT_MS = 60_000
_STRATEGY = "range"
#: Errors that pass: a coordinator or leader is not there yet, or a transaction or a rebalance is being completed.
_PASSING = frozenset(
    {
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "MEMBER_ID_REQUIRED",
        "REBALANCE_IN_PROGRESS",
    }
)


class Copier:
    """One incarnation; `transactional_id` is '' for one that writes without transactions."""

    def __init__(self, client: ClusterClient, transactional_id: str = "") -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._producer_id = self._epoch = -1
        self._written = 0
        self._group: GroupCalls
        self._identity: Identity

    async def begin(self) -> None:
        """Take the transactional id over: what an earlier incarnation left open is aborted."""
        if not self._transactional_id:
            return
        body = {
            "transactional_id": self._transactional_id,
            "transaction_timeout": _TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        answer, error = await self._asked(lambda: self._coordinated(Api.InitProducerId, 4, body), _own_error)
        if error:
            raise Unavailable(f"transactional id {self._transactional_id!r} could not be taken over: {error}")
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    async def add(self, tp: TopicPartition) -> str:
        """Add the partition to the transaction; the error name, '' if it is part of it."""
        if not self._transactional_id:
            return ""
        body = {
            "v3_and_below_transactional_id": self._transactional_id,
            "v3_and_below_producer_id": self._producer_id,
            "v3_and_below_producer_epoch": self._epoch,
            "v3_and_below_topics": [{"name": tp.topic, "partitions": [tp.partition]}],
        }
        _, error = await self._asked(lambda: self._coordinated(Api.AddPartitionsToTxn, 3, body), _added_error)
        return error

    async def write(self, tp: TopicPartition, values: Sequence[bytes]) -> str:
        """Write records; the error name, '' if they are stored."""
        payload = build_batch(
            [NewRecord(value, None, 0) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._written if self._transactional_id else -1,
            transactional=bool(self._transactional_id),
        )
        body = {
            "transactional_id": self._transactional_id or None,
            "acks": -1,
            "timeout": 5_000,
            "topic_data": [{"name": tp.topic, "partition_data": [{"index": tp.partition, "records": payload}]}],
        }

        async def once() -> Any:
            return await (await leader_of(self._client, tp)).call(Api.Produce, body, version=8)

        _, error = await self._asked(once, _written_error)
        if not error:
            self._written += len(values)
        return error

    async def join(self, group: GroupCalls, tp: TopicPartition) -> None:
        """Join the group, once its earlier members have been removed, and take the partition. Raises Unavailable."""
        protocols = {_STRATEGY: encode_subscription(MemberSubscription(topics=(tp.topic,)))}
        member_id = ""

        async def joined() -> Any:
            nonlocal member_id
            connection = await self._coordinator_of(group.group, key_type=0)
            answer = await group.join(connection, member_id, protocols)
            member_id = answer.member_id or member_id
            if answer.error:
                return SimpleNamespace(error=answer.error)
            identity = Identity(answer.member_id, answer.generation)
            assignment = {answer.member_id: encode_assignment([tp])}
            error, _ = await group.sync(connection, identity, _STRATEGY, assignment)
            return SimpleNamespace(error=error, identity=identity)

        answer, error = await self._asked(joined, lambda answer: str(answer.error))
        if error:
            raise Unavailable(f"group {group.group!r} could not be joined: {error}")
        self._group, self._identity = group, answer.identity

    async def keep_alive(self) -> None:
        """Send heartbeats until it is cancelled, or the group no longer knows this member."""
        error = ""
        while not error or error in _PASSING:
            await asyncio.sleep(self._group.session_timeout_ms / 4000)
            try:
                error = await self._group.heartbeat(
                    await self._coordinator_of(self._group.group, key_type=0), self._identity
                )
            except Unavailable:
                error = ""

    async def commit_offset(self, tp: TopicPartition, offset: int) -> str:
        """Commit what has been copied, in the transaction if there is one (KIP-447); the error name, '' if accepted."""
        if not self._transactional_id:
            return await self._commit_to_the_group(tp, offset)
        group = self._group.group
        added = self._identified() | {"group_id": group}
        _, error = await self._asked(lambda: self._coordinated(Api.AddOffsetsToTxn, 3, added), _own_error)
        if error:
            return error
        partition = {"partition_index": tp.partition, "committed_offset": offset, "committed_leader_epoch": -1}
        body = added | {
            "generation_id": self._identity.generation,
            "member_id": self._identity.member_id,
            "topics": [{"name": tp.topic, "partitions": [partition | {"committed_metadata": ""}]}],
        }

        async def once() -> Any:
            connection = await self._coordinator_of(group, key_type=0)
            return await connection.call(Api.TxnOffsetCommit, body, version=3)

        _, error = await self._asked(once, _offset_error)
        return error

    async def _commit_to_the_group(self, tp: TopicPartition, offset: int) -> str:
        async def once() -> Any:
            connection = await self._coordinator_of(self._group.group, key_type=0)
            return await self._group.commit(connection, self._identity, {tp: offset})

        _, error = await self._asked(once, lambda errors: str(errors[tp]))
        return error

    async def commit(self) -> str:
        """End the transaction; the error name, '' if it is committed."""
        if not self._transactional_id:
            return ""
        body = self._identified() | {"committed": True}
        _, error = await self._asked(lambda: self._coordinated(Api.EndTxn, 3, body), _own_error)
        return error

    def _identified(self) -> dict[str, Any]:
        return {
            "transactional_id": self._transactional_id,
            "producer_id": self._producer_id,
            "producer_epoch": self._epoch,
        }

    async def _coordinated(self, api: Api, version: int, body: dict[str, Any]) -> Any:
        connection = await self._coordinator_of(self._transactional_id, key_type=1)
        return await connection.call(api, body, version=version)

    async def _coordinator_of(self, key: str, *, key_type: int) -> BrokerConnection:
        connection = await self._client.any_connection()
        found = await connection.call(Api.FindCoordinator, {"key": key, "key_type": key_type}, version=2)
        if error := error_name(found.error_code):
            raise Unavailable(error)
        await self._client.refresh([])
        return await self._client.connection(found.node_id)

    async def _asked(self, once: Callable[[], Awaitable[Any]], error_of: Callable[[Any], str]) -> tuple[Any, str]:
        answer: Any = None
        error = "UNANSWERED"

        async def answered() -> bool:
            nonlocal answer, error
            try:
                answer = await once()
            except Unavailable:
                return False
            error = error_of(answer)
            return error not in _PASSING

        await until(answered, _PATIENCE_S, lambda: f"a copier's request to be answered ({error})", every_s=0.1)
        return answer, error


async def read_all(client: ClusterClient, tp: TopicPartition) -> list[bytes]:
    """The values that a read_committed reader gets, once nothing before the end is open."""

    async def stable() -> bool:
        connection = await leader_of(client, tp)
        ends = [(await list_offset(connection, {tp: LATEST}, committed=each))[tp] for each in (True, False)]
        return ends[0] == ends[1]

    await until(stable, _PATIENCE_S, f"the transactions in {tp} to be complete", every_s=0.1)
    connection, values = await leader_of(client, tp), list[bytes]()
    _, position = (await list_offset(connection, {tp: EARLIEST}))[tp]
    _, end = (await list_offset(connection, {tp: LATEST}, committed=True))[tp]
    while position < end:
        got = (await fetch(connection, {tp: position}, max_wait_ms=0, committed=True))[tp]
        if got.error:
            raise Unavailable(f"{tp} could not be read: {got.error}")
        values += [record.value or b"" for record in got.records]
        if got.next_offset == position:
            await asyncio.sleep(0.1)
        position = got.next_offset
    return values


async def read_first(client: ClusterClient, tp: TopicPartition, count: int) -> list[bytes]:
    """The values of the first records of a partition, as soon as there are so many."""
    values = list[bytes]()

    async def read() -> bool:
        connection = await leader_of(client, tp)
        _, position = (await list_offset(connection, {tp: EARLIEST}))[tp]
        values.clear()
        while len(values) < count:
            got = (await fetch(connection, {tp: position}, max_wait_ms=0))[tp]
            if got.error or not got.records:
                return False
            values.extend(record.value or b"" for record in got.records)
            position = got.next_offset
        return True

    await until(read, _PATIENCE_S, f"{count} records in {tp}", every_s=0.1)
    return values[:count]


async def leader_of(client: ClusterClient, tp: TopicPartition) -> BrokerConnection:
    """A connection to the partition's leader. Raises `Unavailable`."""
    await client.refresh([tp.topic])
    leader = client.leader_of(tp)
    if leader is None:
        raise Unavailable(f"{tp} has no leader")
    return await client.connection(leader)


def _own_error(answer: Any) -> str:
    return error_name(answer.error_code)


def _added_error(answer: Any) -> str:
    (topic,) = answer.results_by_topic_v3_and_below
    (partition,) = topic.results_by_partition
    return error_name(partition.partition_error_code)


def _offset_error(answer: Any) -> str:
    return error_name(answer.topics[0].partitions[0].error_code)


def _written_error(answer: Any) -> str:
    return error_name(answer.responses[0].partition_responses[0].error_code)
