"""Limits on the size of one topic, and of all together, because ZooKeeper keeps them in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.broker.cluster import znodes
from kernel.broker.cluster.cluster_view import InvalidPartitions
from kernel.broker.settings.topic_configs import SETTINGS_BYTES_MAX
from kernel.client.connection import BrokerConnection
from kernel.topic_names import OFFSETS_TOPIC
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.brokers.live import running_broker
from tests.support.zookeeper.sessions import opened

WAIT_MS = 10_000


async def test_total_number_of_partitions_is_bounded_and_a_refused_topic_leaves_nothing(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.broker.cluster.topics.PARTITIONS_IN_ALL_MAX", 5)
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session:
        cluster = broker.cluster
        await cluster.create_topic("t", partitions=3, replication_factor=1)
        assert await cluster.until(lambda s: "t" in s.topics, WAIT_MS)
        before, _ = await session.get(paths.topic("t"))
        with pytest.raises(
            InvalidPartitions, match=r"there are 3 partitions in all topics, and at most 5 are allowed: 3 more"
        ):
            await cluster.create_topic("u", partitions=3, replication_factor=1)
        with pytest.raises(InvalidPartitions, match="3 more do not fit"):
            await cluster.grow_topic("t", partitions=6)
        assert await session.children(paths.BROKER_TOPICS) == await session.children(paths.CONFIG_TOPICS) == ["t"]
        assert (await session.get(paths.topic("t")))[0] == before  # its children are created meanwhile
        # Groups must not be affected; and exactly the limit is allowed.
        await cluster.create_topic(OFFSETS_TOPIC, partitions=50, replication_factor=1)
        await cluster.grow_topic("t", partitions=5)


async def test_topic_with_a_too_large_znode_is_refused(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session:
        cluster = broker.cluster
        with pytest.raises(InvalidPartitions, match="10000"):
            await cluster.create_topic("t", partitions=10_001, replication_factor=1)
        monkeypatch.setattr(znodes, "NODE_BYTES_MAX", 200)
        with pytest.raises(InvalidPartitions, match=r"replicas of topic 't' are \d+ bytes"):
            await cluster.create_topic("t", partitions=50, replication_factor=1)
        await cluster.create_topic("t", partitions=2, replication_factor=1)
        assert await cluster.until(lambda s: "t" in s.topics, WAIT_MS)
        with pytest.raises(InvalidPartitions, match="fewer partitions or fewer replicas"):
            await cluster.grow_topic("t", partitions=50)
        assert znodes.parse_topic((await session.get(paths.topic("t")))[0]).replicas == ((1,), (1,))


async def test_settings_of_a_topic_are_bounded_and_refused_with_invalid_config(chroot: str, tmp_path: Path) -> None:
    name = "leader.replication.throttled.replicas"

    def wanted(topic: str, length: int) -> dict[str, object]:
        value = ",".join(["0:1"] * (length // 4))
        settings = [{"name": name, "value": value}]
        return {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": settings}

    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session:
        connection = await BrokerConnection.open("127.0.0.1", broker.address.port, "test")
        asked = {"topics": [wanted("large", 900_000), wanted("fits", SETTINGS_BYTES_MAX - 100)], "timeout": 10_000}
        answer = await connection.call(Api.CreateTopics, asked)
        connection.close()
        answers = {topic.name: topic for topic in answer.topics}
        assert error_name(answers["large"].error_code) == "INVALID_CONFIG"
        assert f"at most {SETTINGS_BYTES_MAX} are kept" in answers["large"].error_message
        assert error_name(answers["fits"].error_code) == ""
        assert await session.children(paths.CONFIG_TOPICS) == ["fits"]
