"""ElectLeaders on live brokers: leadership returns to the first replica of the assignment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.broker.broker import Broker
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, running_broker

TP = TopicPartition("t", 0)


async def elect(broker: Broker, topics: Any, *, timeout_ms: int = 10_000) -> dict[TopicPartition, ErrorCode]:
    async with client_of(broker) as client:
        connection = await client.any_connection()
        body = {"election_type": 0, "topic_partitions": topics, "timeout": timeout_ms}
        answer = await connection.call(Api.ElectLeaders, body)
    return {
        TopicPartition(topic.topic, one.partition_id): one.error_code
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


async def leader_is(broker: Broker, node_id: int) -> bool:
    def led(snapshot: Any) -> bool:
        partition = snapshot.partition(TP)
        return partition is not None and partition.leader == node_id

    return await broker.cluster.until(led, 20_000)


async def test_leadership_returns_to_the_first_replica_on_request(chroot: str, tmp_path: Path) -> None:
    wish = [{"topic": "t", "partitions": [0]}]
    async with running_broker(chroot, tmp_path, node_id=2) as second:
        async with running_broker(chroot, tmp_path, node_id=1), client_of(second) as client:
            assert await second.cluster.until(lambda snapshot: len(snapshot.brokers) == 2, 10_000)
            connection = await client.any_connection()
            topic = {"name": "t", "num_partitions": -1, "replication_factor": -1}
            assignment = [{"partition_index": 0, "broker_ids": [1, 2]}]
            body = {"topics": [{**topic, "assignments": assignment}], "timeout": 10_000}
            created = await connection.call(Api.CreateTopics, body)
            assert created.topics[0].error_code is ErrorCode.none
            assert await elect(second, wish) == {TP: ErrorCode.election_not_needed}
        assert await leader_is(second, 2)
        assert await second.cluster.until(lambda snapshot: 1 not in snapshot.brokers, 20_000)
        assert await elect(second, wish) == {TP: ErrorCode.preferred_leader_not_available}
        assert await leader_is(second, 2), "nothing changed"
        async with running_broker(chroot, tmp_path, node_id=1):
            assert await second.cluster.until(lambda snapshot: 1 in snapshot.brokers, 20_000)
            assert await leader_is(second, 2), "it does not return by itself"
            assert await elect(second, None) == {TP: ErrorCode.none}, "only those that were elected are named"
            assert await leader_is(second, 1)
            assert await elect(second, None) == {}
