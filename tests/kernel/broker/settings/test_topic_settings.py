"""Settings of a topic on a live broker: validated when they are set, and applied."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.broker import Broker
from kernel.broker.cluster.znodes import topic_config_node
from kernel.broker.settings.topic_configs import TOPIC_SETTINGS
from kernel.client.client import ClusterClient
from kernel.client.reads import fetch
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, running_broker, running_cluster
from tests.support.zookeeper.sessions import opened

#: The values that CreateTopics requires with a manual assignment.
NUMBERS_BY_ASSIGNMENT = {"num_partitions": -1, "replication_factor": -1}


def now_ms() -> int:
    return round(time.time() * 1000)


def topic(name: str, **configs: str | None) -> dict[str, Any]:
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": rows}


async def test_topic_with_a_wrong_setting_is_refused_with_kafkas_message_and_not_created(
    chroot: str, tmp_path: Path
) -> None:
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        connection = await client.any_connection()
        wanted = [
            topic("wrong", retention_ms="abc"),
            topic("unknown", nonesuch="1"),
            topic("null", retention_ms=None),
            topic("good", retention_ms="5000"),
        ]
        answer = await connection.call(Api.CreateTopics, {"topics": wanted, "timeout": 10_000})
        assert {one.name: (one.error_code, one.error_message) for one in answer.topics} == {
            "wrong": (
                ErrorCode.invalid_config,
                "Invalid value abc for configuration retention.ms: Not a number of type LONG",
            ),
            "unknown": (ErrorCode.invalid_config, "Unknown topic config name: nonesuch"),
            "null": (ErrorCode.invalid_config, "Null value not supported for topic configs: retention.ms"),
            "good": (ErrorCode.none, None),
        }
        assert set(broker.cluster.snapshot.topics) == {"good"}


async def created(broker: Broker, *wanted: dict[str, Any]) -> None:
    async with client_of(broker) as client:
        connection = await client.any_connection()
        answer = await connection.call(Api.CreateTopics, {"topics": list(wanted), "timeout": 10_000})
        assert all(one.error_code is ErrorCode.none for one in answer.topics), answer
    # ZooKeeper names a leader before it has taken over.
    partitions = [TopicPartition(one["name"], 0) for one in wanted]
    await until(lambda: all(broker.cluster.leads(tp) for tp in partitions), 60, "the topics to be led")


async def alter(client: ClusterClient, name: str, **configs: str | None) -> Any:
    connection = await client.any_connection()
    rows = [
        {"name": key.replace("_", "."), "config_operation": 1 if value is None else 0, "value": value}
        for key, value in configs.items()
    ]
    resource = {"resource_type": 2, "resource_name": name, "configs": rows}
    answer = await connection.call(Api.IncrementalAlterConfigs, {"resources": [resource], "validate_only": False})
    return answer.responses[0].error_code


async def produce(client: ClusterClient, name: str, *records: NewRecord) -> Any:
    """Produce to partition 0; returns the answer for it."""
    tp = TopicPartition(name, 0)
    await client.refresh([name])
    connection = await client.connection(client.leader_of(tp) or 0)
    data = [{"name": name, "partition_data": [{"index": 0, "records": build_batch(list(records))}]}]
    answer = await connection.call(Api.Produce, {"acks": -1, "timeout": 1000, "topic_data": data}, version=9)
    return answer.responses[0].partition_responses[0]


async def stored(client: ClusterClient, name: str) -> list[bytes | None]:
    tp = TopicPartition(name, 0)
    got = (await fetch(await client.connection(client.leader_of(tp) or 0), {tp: 0}, max_wait_ms=0))[tp]
    return [record.value for record in got.records]


async def test_topics_keep_to_their_settings_and_refusals_store_nothing(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        await created(
            broker,
            topic("small", max_message_bytes="100"),
            topic("compacted", cleanup_policy="compact,delete"),
            topic("late", message_timestamp_type="LogAppendTime"),
            topic("recent", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000"),
        )
        begun_ms = now_ms()
        for name, wrong, code in (
            ("small", NewRecord(b"x" * 100, b"k", begun_ms), ErrorCode.message_too_large),
            ("compacted", NewRecord(b"x", None, begun_ms), ErrorCode.invalid_record),
            ("recent", NewRecord(b"x", b"k", begun_ms - 60_000), ErrorCode.invalid_timestamp),
            ("recent", NewRecord(b"x", b"k", begun_ms + 60_000), ErrorCode.invalid_timestamp),
        ):
            answer = await produce(client, name, wrong)
            assert (answer.error_code, answer.base_offset) == (code, -1)
            assert await stored(client, name) == []
        answer = await produce(client, "late", NewRecord(b"x", None, 5))
        assert answer.log_append_time.timestamp() * 1000 >= begun_ms
        assert await stored(client, "late") == [b"x"]


async def test_alteration_through_one_broker_holds_on_the_leader_without_a_restart(chroot: str, tmp_path: Path) -> None:
    async with running_cluster(2, chroot, tmp_path) as brokers:
        assignment = [{"partition_index": 0, "broker_ids": [2]}]
        await created(brokers[1], {"name": "t", "assignments": assignment} | NUMBERS_BY_ASSIGNMENT)
        async with client_of(brokers[0]) as client:
            assert await alter(client, "t", max_message_bytes="100") is ErrorCode.none
            large = NewRecord(b"x" * 100, b"k", now_ms())

            async def refused() -> bool:
                return (await produce(client, "t", large)).error_code is ErrorCode.message_too_large

            await until(refused, 60, "the leader to apply the altered setting")
            before = await stored(client, "t")
            assert await alter(client, "t", max_message_bytes="abc") is ErrorCode.invalid_config
            assert await refused(), "a refused alteration changes nothing"
            assert await alter(client, "t", max_message_bytes=None) is ErrorCode.none

            async def accepted() -> bool:
                return (await produce(client, "t", large)).error_code is ErrorCode.none

            await until(accepted, 60, "the leader to apply the removal of the setting")
            assert len(await stored(client, "t")) == len(before) + 1


@pytest.mark.parametrize(
    "notification",
    [b'{"version":2,"entity_path":"topics/t"}', b'{"version":1,"entity_type":"topics","entity_name":"t"}', b'"t"'],
    ids=["since 0.10.1", "0.9", "0.8"],
)
async def test_settings_that_a_tool_wrote_to_zookeeper_are_applied(
    chroot: str, tmp_path: Path, notification: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client, opened(chroot) as session:
        await created(broker, topic("t"))
        written = {"max.message.bytes": "100", "retention.ms": "abc", "segment.bytes": "2000000"}
        await session.create_numbered("/config/changes/config_change_", b"nonsense")
        await session.set("/config/topics/t", topic_config_node(written))
        await session.create_numbered("/config/changes/config_change_", notification)

        async def refused() -> bool:
            answer = await produce(client, "t", NewRecord(b"x" * 100, b"k", now_ms()))
            return answer.error_code is ErrorCode.message_too_large

        await until(refused, 60, "the setting to be applied")
    assert "Invalid value abc for configuration retention.ms" in caplog.text, "a wrong one is ignored and named"
    assert "segment.bytes=2000000 has no effect" in caplog.text
    assert "ignoring /config/changes/config_change_0000000000: " in caplog.text


async def test_requests_with_too_large_responses_are_refused(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.broker.apis.configs.ROWS_MAX", 2 * len(TOPIC_SETTINGS))
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        connection = await client.any_connection()
        wanted = [{"name": f"many-{n}", "num_partitions": 5_001, "replication_factor": 1} for n in range(2)]
        answer = await connection.call(Api.CreateTopics, {"topics": wanted, "timeout": 1000})
        assert [one.error_code for one in answer.topics] == [ErrorCode.policy_violation] * 2, "as 4.1.1 does"
        assert not broker.cluster.snapshot.topics
        await created(broker, topic("t"))
        resource = {"resource_type": 2, "resource_name": "t", "configuration_keys": None}
        asked = await connection.call(Api.DescribeConfigs, {"resources": [resource] * 3})
        assert [(one.error_code, len(one.configs)) for one in asked.results] == [
            (ErrorCode.none, len(TOPIC_SETTINGS)),
            (ErrorCode.none, len(TOPIC_SETTINGS)),
            (ErrorCode.invalid_request, 0),
        ]
