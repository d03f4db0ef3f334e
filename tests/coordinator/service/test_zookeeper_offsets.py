"""OffsetCommit 0 and OffsetFetch 0 to live brokers: what they write and read in ZooKeeper.

The recorded conversations (`era`) hold the answers; here are the znodes, as seen at 1.1.1 and 3.9.1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.answers import PartitionError
from coordinator.groups.errors import Error
from coordinator.groups.requests import OffsetToCommit
from coordinator.service.mount import mount
from coordinator.service.zookeeper_offsets import ZooKeeperOffsets
from kernel.client.connection import BrokerConnection
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.errors import ConnectionLost, Unanswered, ZooKeeperError
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.brokers.live import create_topics, running_cluster
from tests.support.consumers.zookeeper import member
from tests.support.zookeeper.sessions import opened


@asynccontextmanager
async def connections_to_brokers(
    chroot: str, tmp_path: Path, *, number: int = 1
) -> AsyncIterator[tuple[list[BrokerConnection], ZooKeeperSession]]:
    """A connection to each broker, and a session; there is the topic `t` of two partitions."""
    async with running_cluster(number, chroot, tmp_path, mount=(mount,)) as brokers, opened(chroot) as session:
        await create_topics(brokers[0], {"t": 2})
        for broker in brokers:
            assert await broker.cluster.until(lambda snapshot: "t" in snapshot.topics, 60_000)
        connections = [await BrokerConnection.open(b.address.host, b.address.port, "old") for b in brokers]
        try:
            yield connections, session
        finally:
            for connection in connections:
                connection.close()


async def commit(connection: BrokerConnection, group: str, offsets: dict[int, int]) -> list[str]:
    """The error of each partition of `t`, '' for none."""
    rows = [{"partition_index": p, "committed_offset": o, "committed_metadata": "kept?"} for p, o in offsets.items()]
    body = {"group_id": group, "topics": [{"name": "t", "partitions": rows}]}
    # The thousands of folders of one test are created one by one, which takes a busy machine more than half a minute.
    answer = await connection.call(Api.OffsetCommit, body, version=0, timeout_ms=100_000)
    return [row.error_code.name for row in answer.topics[0].partitions]


async def fetch(connection: BrokerConnection, group: str) -> list[tuple[int, str]]:
    """(offset, error) of both partitions of `t`."""
    body = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0, 1]}]}
    answer = await connection.call(Api.OffsetFetch, body, version=0)
    return [(row.committed_offset, row.error_code.name) for row in answer.topics[0].partitions]


async def test_commit_writes_the_znodes_of_kafkas_own_consumer_on_every_broker(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path, number=2) as (connections, session):
        first, second = connections
        assert await commit(first, "g", {0: 42}) == ["none"]
        for path, data in ((paths.offset("g", "t", 0), b"42"), (paths.group("g"), b""), (paths.offsets("g"), b"")):
            got, stat = await session.get(path)
            assert (got, stat.ephemeral_owner) == (data, 0)
        assert await fetch(second, "g") == [(42, "none"), (-1, "unknown_topic_or_partition")]
        assert await commit(second, "g", {0: 40, 1: 7}) == ["none", "none"]
        assert await fetch(first, "g") == [(40, "none"), (7, "none")]


async def test_refused_commit_writes_nothing(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path) as (connections, session):
        (broker,) = connections
        assert await commit(broker, "g", {5: 1, -1: 2}) == ["unknown_topic_or_partition"] * 2
        for group in ("..", "", "g/", "g\0"):
            assert await commit(broker, group, {0: 1}) == ["unknown_server_error"]
        assert await session.children(paths.CONSUMERS) == []


async def test_znode_is_read_as_a_java_long(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path) as (connections, session):
        for data in (b"+5", b"5", b"0005"):
            await session.put(paths.offset("g", "t", 0), data)
            assert (await fetch(connections[0], "g"))[0] == (5, "none")
        for data in (b"", b"abc", b" 5", b"5\n", b"1_0", b"5.0", b"-", b"\xff", b"9" * 20, b"9" * 5_000):
            await session.put(paths.offset("g", "t", 0), data)
            assert (await fetch(connections[0], "g"))[0] == (-1, "unknown_server_error")


async def test_our_member_goes_on_at_an_offset_that_a_broker_wrote(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path) as (connections, _session):
        (broker,) = connections
        await commit(broker, "g", {0: 0, 1: 0})
        async with member(chroot, "c1", {"t": 1}) as ours:
            assert {info.consumed for info in ours.consumer._registry.infos()} == {0}


async def test_group_id_of_a_thousand_folders_is_a_path_like_any_other(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path) as (connections, _):
        (broker,) = connections
        deep = "/".join("g" * 3_000)
        assert await commit(broker, deep, {0: 5}) == ["none"]
        assert (await fetch(broker, deep))[0] == (5, "none")


async def test_partition_that_is_named_many_times_is_written_once(chroot: str, tmp_path: Path) -> None:
    async with connections_to_brokers(chroot, tmp_path) as (connections, session):
        (broker,) = connections
        rows = [{"partition_index": 0, "committed_offset": number} for number in range(50_000)]
        body = {"group_id": "g", "topics": [{"name": "t", "partitions": rows}]}
        answer = await broker.call(Api.OffsetCommit, body, version=0)
        assert len(answer.topics[0].partitions) == 50_000
        data, stat = await session.get(paths.offset("g", "t", 0))
        assert (data, stat.version) == (b"49999", 0)


class LostZooKeeper:
    """A session none of whose operations is answered."""

    def __init__(self, error: type[ZooKeeperError]) -> None:
        self.error = error
        self.asked = 0

    async def put(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        raise self.error("no answer")

    async def get(self, *_: Any, **__: Any) -> Any:
        self.asked += 1
        raise self.error("no answer")


@pytest.mark.parametrize("error", [ConnectionLost, Unanswered])
async def test_zookeeper_that_does_not_answer_is_waited_for_once_in_a_request(error: type[ZooKeeperError]) -> None:
    lost: Any = LostZooKeeper(error)
    offsets = ZooKeeperOffsets(lambda: lost, metadata_length_max=4)
    wanted = [OffsetToCommit("t", 0, 1), OffsetToCommit("t", 1, 1, metadata="x" * 5), OffsetToCommit("t", 2, 1)]
    assert (await offsets.commit("g", wanted)).partitions == (
        PartitionError("t", 0, Error.REQUEST_TIMED_OUT),
        PartitionError("t", 1, Error.OFFSET_METADATA_TOO_LARGE),
        PartitionError("t", 2, Error.REQUEST_TIMED_OUT),
    )
    assert lost.asked == 1
    assert await offsets.fetch("g", [("t", 0), ("t", 1)]) == {
        ("t", 0): Error.REQUEST_TIMED_OUT,
        ("t", 1): Error.REQUEST_TIMED_OUT,
    }
    assert lost.asked == 2
