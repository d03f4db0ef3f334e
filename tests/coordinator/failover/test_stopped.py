"""The coordinating broker is stopped (SIGSTOP), replaced and continued: a real process on a real ZooKeeper."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.groups.placement import partition_of
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker
from tests.support.coordinators.child import coordinator_child, settings_of
from tests.support.wire.clients import WireConnection, wait_for_coordinator
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session

#: Outlives every pause of a busy machine; the stopped broker's session is expired by the test.
SESSION_MS = 30_000
PARTITIONS = 4
DOOMED, SUCCESSOR = 1, 2


class Member:
    """One member of a group, which sends its requests to any given broker."""

    def __init__(self, group_id: str) -> None:
        self.group = {"group_id": group_id}
        self.id = ""

    async def join(self, connection: WireConnection) -> None:
        request = self.group | {
            "session_timeout": 30_000,
            "rebalance_timeout": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        self.id = (await connection.send(Api.JoinGroup, 5, request)).member_id
        await connection.send(Api.JoinGroup, 5, request | {"member_id": self.id})

    async def sync(self, connection: WireConnection) -> tuple[str, bytes]:
        given = {"assignments": [{"member_id": self.id, "assignment": b"all"}]}
        answer = await connection.send(Api.SyncGroup, 3, self._me() | given)
        return answer.error_code.name, answer.assignment

    async def heartbeat(self, connection: WireConnection) -> str:
        return (await connection.send(Api.Heartbeat, 3, self._me())).error_code.name

    async def commit(self, connection: WireConnection, offset: int) -> str:
        partition = {"partition_index": 0, "committed_offset": offset}
        answer = await connection.send(
            Api.OffsetCommit,
            8,
            {
                "group_id": self.group["group_id"],
                "member_id": self.id,
                "generation_id_or_member_epoch": 1,
                "topics": [{"name": "t", "partitions": [partition]}],
            },
        )
        return str(answer.topics[0].partitions[0].error_code.name)

    async def committed(self, connection: WireConnection) -> int:
        asked = self.group | {"topics": [{"name": "t", "partition_indexes": [0]}]}
        answer = await connection.send(Api.OffsetFetch, 7, asked)
        return int(answer.topics[0].partitions[0].committed_offset) if answer.topics else -1

    def _me(self) -> dict[str, Any]:
        return self.group | {"member_id": self.id, "generation_id": 1}


@asynccontextmanager
async def doomed_coordinator(
    chroot: str, link: ZooKeeperProxy, data_dir: Path
) -> AsyncIterator[tuple[Process, Member, WireConnection, WireConnection]]:
    """A Stable group whose coordinator is a child process behind `link`; connections to it and to its successor."""
    async with (
        running_broker(
            chroot, data_dir, node_id=SUCCESSOR, settings=settings_of(SESSION_MS), mount=(mount,)
        ) as successor,
        coordinator_child(link.connect_string, data_dir, DOOMED, SESSION_MS) as (process, port),
    ):
        assert await successor.cluster.until(lambda snapshot: set(snapshot.brokers) == {DOOMED, SUCCESSOR}, 10_000)
        await create_topics(successor, {"t": 1})
        old = await WireConnection.open("127.0.0.1", port, "member")
        new = await WireConnection.open("127.0.0.1", successor.address.port, "member")
        await new.send(Api.FindCoordinator, 4, {"key_type": 0, "coordinator_keys": ["g"]})
        group_id = await until(lambda: _group_of(successor, DOOMED), 60, "a partition that the child leads")
        await wait_for_coordinator(old, group_id)
        member = Member(group_id)
        await member.join(old)
        assert await member.sync(old) == ("none", b"all")
        try:
            yield process, member, old, new
        finally:
            old.close()
            new.close()


def _group_of(broker: Broker, node_id: int) -> str | None:
    """A group id that `node_id` coordinates."""
    for group_id in map(str, range(20)):
        tp = TopicPartition("__consumer_offsets", partition_of(group_id, PARTITIONS))
        leader = broker.cluster.snapshot.leader_of(tp)
        if leader is not None and leader.node_id == node_id:
            return group_id
    return None


async def coordinates(member: Member, connection: WireConnection) -> bool:
    """Heartbeats would not show it: they succeed while the group is loaded."""
    answer = await connection.send(Api.DescribeGroups, 1, {"groups": [member.group["group_id"]]})
    return bool(answer.groups[0].error_code is ErrorCode.none)


async def _named(connection: WireConnection, group_id: str) -> int:
    """The broker that this one names as the group's coordinator."""
    answer = await connection.send(Api.FindCoordinator, 4, {"key_type": 0, "coordinator_keys": [group_id]})
    return int(answer.coordinators[0].node_id)


def another_group_in_the_partition_of(group_id: str) -> str:
    number = partition_of(group_id, PARTITIONS)
    return next(other for other in map("other-{}".format, range(100)) if partition_of(other, PARTITIONS) == number)


async def test_stopped_and_replaced_coordinator_acknowledges_nothing(
    chroot: str, tmp_path: Path, link: ZooKeeperProxy
) -> None:
    async with doomed_coordinator(chroot, link, tmp_path) as (process, member, old, new):
        half_way = Member(another_group_in_the_partition_of(member.group["group_id"]))
        await half_way.join(old)
        assert await member.commit(old, 10) == "none"
        os.kill(process.pid, signal.SIGSTOP)
        # Requests that the zombie will read first when it goes on wait in its sockets.
        late_commit = asyncio.create_task(member.commit(old, 5))
        late_sync = asyncio.create_task(half_way.sync(old))
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await until(lambda: coordinates(member, new), 60, "the successor to coordinate")
        assert await member.heartbeat(new) == "none", "the group is as it was: no member has to rejoin"
        assert await half_way.heartbeat(new) == "unknown_member_id", "nothing of its generation was stored"
        assert await member.committed(new) == 10
        assert await member.commit(new, 20) == "none"
        os.kill(process.pid, signal.SIGCONT)
        assert await late_commit == "not_coordinator"
        assert await late_sync == ("not_coordinator", b"")
        assert await member.commit(old, 6) == "not_coordinator"
        assert await member.heartbeat(old) == "not_coordinator"
        assert await member.committed(new) == 20

        async def knows_better() -> bool:
            return await _named(old, member.group["group_id"]) == SUCCESSOR

        await until(knows_better, 60, "the stopped broker to name its successor")
        assert await _named(new, member.group["group_id"]) == SUCCESSOR
