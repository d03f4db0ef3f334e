"""Views rebuilt topic by topic equal views built at once, in every order of changes."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest

from kernel.broker.cluster import znodes
from kernel.broker.cluster.cluster_view import InvalidPartitions
from kernel.broker.cluster.topic_views import States, TopicViews, TopicZnode
from kernel.broker.cluster.znodes import PartitionState, TopicNode
from kernel.broker.settings.topic_configs import SETTINGS_BYTES_MAX
from kernel.client.connection import BrokerConnection
from kernel.topic_names import OFFSETS_TOPIC
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.brokers.live import running_broker
from tests.support.zookeeper.sessions import opened

NAMES = "abcdefgh"


def test_views_built_change_by_change_equal_those_built_at_once() -> None:
    rng = random.Random(3)
    topics: dict[str, TopicZnode] = {}
    states: States = {}
    views = TopicViews()
    before: list[tuple[object, object]] = []
    for czxid in range(1, 500):
        for name in rng.sample(NAMES, rng.randint(0, 2)):
            views.changed(name)
            topics.pop(name, None)
            if rng.random() < 0.8:
                # Few ids: sometimes two topics have the same one.
                topic_id = rng.choice([None, *(uuid.UUID(int=number) for number in range(1, 7))])
                written = topic_id if rng.random() < 0.8 else None
                topics[name] = TopicZnode(TopicNode(((1,), (2,)), written), 0, 10 * czxid + len(name), topic_id)
                state = rng.choice([None, PartitionState(1, rng.randrange(9), (1,), 1)])
                states[paths.partition_state(name, rng.randrange(2))] = (state, rng.randrange(9))
        shown, names = views.refreshed(topics, states)
        at_once = TopicViews()
        for name in topics:
            at_once.changed(name)
        expected, expected_names = at_once.refreshed(topics, states)
        assert list(shown) == sorted(shown)
        assert names == {view.topic_id: name for name, view in shown.items()}
        assert views.without_id == at_once.without_id
        # Of topics with one id the first one seen is shown: the oldest, unless it was rewritten.
        assert len(shown) == len(expected)
        assert names.keys() == expected_names.keys()
        before.append((shown, dict(shown)))
    assert all(shown == then for shown, then in before), "what was shown has not changed since"


def test_nothing_is_built_when_nothing_has_changed() -> None:
    views = TopicViews()
    topics = {
        name: TopicZnode(TopicNode(((1,),), uuid.UUID(int=i)), 0, i, uuid.UUID(int=i))
        for i, name in enumerate(NAMES, 1)
    }
    for name in topics:
        views.changed(name)
    shown, _ = views.refreshed(topics, {})
    assert views.refreshed(topics, {})[0] is shown
    views.changed("c")
    again, _ = views.refreshed(topics, {})
    assert [name for name in shown if again[name] is not shown[name]] == ["c"]


# -- limits on the size of one topic, and of all together, because ZooKeeper keeps them in memory ----------------------

WAIT_MS = 30_000


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
