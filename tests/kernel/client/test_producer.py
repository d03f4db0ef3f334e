"""The producer's own decisions, on a client that answers from memory."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kernel.client.producer import Producer, ProducerConfig
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

PARTITIONS = 450


class MovedLeaders:
    """A client whose metadata has the old leader of every partition until it is refreshed; it is its own connection."""

    def __init__(self) -> None:
        self.refreshes = 0

    def leader_of(self, _: TopicPartition) -> int:
        return 2 if self.refreshes else 1

    async def refresh(self, *_: object, **__: object) -> None:
        await asyncio.sleep(0)
        self.refreshes += 1

    async def any_connection(self) -> MovedLeaders:
        return self

    async def connection(self, leader: int) -> Any:
        return SimpleNamespace(call=self.call if leader == 2 else self.refuse)

    async def call(self, api: Api, *_: object, **__: object) -> Any:
        if api is Api.InitProducerId:
            return SimpleNamespace(error_code=ErrorCode.none, producer_id=1, producer_epoch=0)
        return _answer(ErrorCode.none)

    async def refuse(self, *_: object, **__: object) -> Any:
        return _answer(ErrorCode.not_leader_or_follower)


def _answer(code: ErrorCode) -> Any:
    row = SimpleNamespace(error_code=code, error_message=None, base_offset=0)
    return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[row])])


async def test_partitions_that_lose_their_leader_together_ask_for_metadata_together() -> None:
    client = MovedLeaders()
    producer = Producer(client, ProducerConfig(retry_backoff_ms=1))
    sent = [producer.send(TopicPartition("t", number), b"") for number in range(PARTITIONS)]
    assert await asyncio.gather(*sent) == [0] * PARTITIONS
    await producer.close()
    assert client.refreshes < PARTITIONS / 10
