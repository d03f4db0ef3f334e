"""DeleteTopics of `__consumer_offsets` is allowed, as by real 3.9.1 and 4.1.1: groups lose their offsets and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coordinator.service.mount import mount
from kernel.client.connection import BrokerConnection
from kernel.topic_names import OFFSETS_TOPIC
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker

WAIT_S = 10


async def test_groups_can_commit_after_their_topic_was_deleted(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=[mount]) as broker:
        await create_topics(broker, {"t": 1})
        connection = await BrokerConnection.open("127.0.0.1", broker.address.port, "test")

        async def commit(offset: int) -> bool:
            await connection.call(Api.FindCoordinator, {"key": "g", "key_type": 0}, version=2)
            partitions = ({"partition_index": 0, "committed_offset": offset, "committed_metadata": ""},)
            asked: dict[str, Any] = {"group_id": "g", "topics": ({"name": "t", "partitions": partitions},)}
            answer = await connection.call(Api.OffsetCommit, asked, version=6)
            return error_name(answer.topics[0].partitions[0].error_code) == ""

        async def committed() -> int:
            topics = ({"name": "t", "partition_indexes": (0,)},)
            answer = await connection.call(Api.OffsetFetch, {"group_id": "g", "topics": topics}, version=5)
            offset: int = answer.topics[0].partitions[0].committed_offset
            return offset

        await until(lambda: commit(7), WAIT_S, "a first commit")
        assert await committed() == 7
        answer = await connection.call(
            Api.DeleteTopics, {"topic_names": (OFFSETS_TOPIC,), "timeout": 10_000}, version=3
        )
        assert [error_name(one.error_code) for one in answer.responses] == [""]
        await until(lambda: commit(8), WAIT_S, "a commit into the new topic")
        assert await committed() == 8
        connection.close()
