"""Creates, grows and deletes topics during a test, through any broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kernel.client.client import ClusterClient
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

TIMEOUT_MS = 10_000


@asynccontextmanager
async def topics_of(bootstrap: str) -> AsyncIterator[Topics]:
    """`bootstrap` is host:port,..."""
    client = ClusterClient(
        [(host, int(port)) for host, _, port in (part.rpartition(":") for part in bootstrap.split(","))], "admin"
    )
    try:
        yield Topics(client)
    finally:
        await client.close()


class Topics:
    """Each call returns when the brokers have completed it."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    async def create(self, partitions: Mapping[str, int]) -> None:
        """{name: partitions}."""
        wanted = [
            {"name": name, "num_partitions": number, "replication_factor": 1} for name, number in partitions.items()
        ]
        answer = await self._call(Api.CreateTopics, {"topics": wanted, "timeout": TIMEOUT_MS})
        assert all(topic.error_code is ErrorCode.none for topic in answer.topics), answer

    async def grow(self, topic: str, partitions: int) -> None:
        wanted = [{"name": topic, "count": partitions, "assignments": None}]
        answer = await self._call(Api.CreatePartitions, {"topics": wanted, "timeout": TIMEOUT_MS})
        assert [result.error_code for result in answer.results] == [ErrorCode.none], answer

    async def delete(self, topic: str) -> None:
        body = {"topic_names": [topic], "timeout": TIMEOUT_MS}
        answer = await self._call(Api.DeleteTopics, body, version=5)
        assert [result.error_code for result in answer.responses] == [ErrorCode.none], answer

    async def _call(self, api: Api, body: dict[str, Any], version: int | None = None) -> Any:
        connection = await self._client.any_connection()
        return await connection.call(api, body, version=version, timeout_ms=TIMEOUT_MS)
