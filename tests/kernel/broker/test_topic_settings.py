"""Settings of a topic on a live broker: checked when they are given, and applied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers import client_of, running_broker

if TYPE_CHECKING:
    from pathlib import Path


def topic(name: str, **configs: str | None) -> dict[str, Any]:
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": rows}


def test_topic_with_a_wrong_setting_is_refused_with_kafkas_words_and_not_created(chroot: str, tmp_path: Path) -> None:
    async def run() -> None:
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

    asyncio.run(run())
