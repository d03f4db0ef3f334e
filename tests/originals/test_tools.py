"""Kafka's tools of 0.8.2.2 and 1.1.1, which write to ZooKeeper, on a cluster of our brokers: nothing is lost.

`docs/architecture.md` has what a real 3.9.1 does with what they write; the znodes are tested without Java in
`tests/kernel/broker/cluster/test_foreign_znodes.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from comparison.originals import jars
from comparison.originals.java import OPTIONS, logging_options
from kernel.broker.broker import Broker
from kernel.platform.jre import find_java
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.brokers.live import client_of, create_topics, read_values, running_cluster, send_values
from tests.support.java.originals import require
from tests.support.zookeeper.sessions import gone, opened

TP = TopicPartition("t", 0)
VALUES = [b"%d" % number for number in range(30)]
WAIT_S = 20

Test = Callable[["Sequence[Broker]", "ZooKeeperSession"], Awaitable[None]]


@pytest.fixture(params=["0.8.2.2", "1.1.1"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    require(found)
    return found


async def tool(version: str, name: str, chroot: str, *arguments: str) -> str:
    """Run `kafka.admin.<name>` to its end; returns its output."""

    def run() -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(map(str, jars.class_path(version)))
        return subprocess.run(
            [
                *(str(find_java().path), "-Xmx128m", *OPTIONS, *logging_options("WARN"), "-cp", path),
                *(f"kafka.admin.{name}", "--zookeeper", chroot, *arguments),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = await asyncio.to_thread(run)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@asynccontextmanager
async def two_brokers(chroot: str, tmp_path: Path) -> AsyncIterator[tuple[list[Broker], ZooKeeperSession]]:
    """Topic t has three partitions with a replica on each broker, and 30 records, which are all there in the end."""
    async with running_cluster(2, chroot, tmp_path) as brokers, opened(chroot) as session:
        await create_topics(brokers[0], {"t": 3}, replication_factor=2)
        await until(lambda: leader(brokers, TP) is not None, WAIT_S, f"{TP} to be led")
        await send_values(brokers[0], TP, VALUES)
        yield brokers, session
        assert await read_values(await led(brokers, TP), TP) == VALUES


def leader(brokers: Sequence[Broker], tp: TopicPartition) -> Broker | None:
    return next((broker for broker in brokers if broker.cluster.leads(tp) is not None), None)


async def led(brokers: Sequence[Broker], tp: TopicPartition) -> Broker:
    return await until(lambda: leader(brokers, tp), WAIT_S, f"{tp} to be led")


async def test_topic_command_that_alters_keeps_the_topic_and_its_records(
    chroot: str, tmp_path: Path, version: str
) -> None:
    async with two_brokers(chroot, tmp_path) as (brokers, session):
        topic_id = brokers[0].cluster.snapshot.topics["t"].topic_id
        said = await tool(version, "TopicCommand", chroot, "--alter", "--topic", "t", "--partitions", "5")
        assert "Adding partitions succeeded!" in said
        for number in range(5):
            await led(brokers, TopicPartition("t", number))
        assert brokers[0].cluster.snapshot.topics["t"].topic_id == topic_id

        async def written() -> bool:
            return "topic_id" in json.loads((await session.get(paths.topic("t")))[0])

        await until(written, WAIT_S, "the id to be written back")


async def test_topic_command_that_deletes_deletes_only_that_topic(chroot: str, tmp_path: Path, version: str) -> None:
    async with two_brokers(chroot, tmp_path) as (brokers, session):
        await create_topics(brokers[0], {"other": 2})
        await tool(version, "TopicCommand", chroot, "--delete", "--topic", "other")
        await gone(session, paths.topic("other"))
        await gone(session, paths.topic_deletion("other"))


async def test_setting_written_by_topic_command_is_applied_by_the_leader(
    chroot: str, tmp_path: Path, version: str
) -> None:
    async with two_brokers(chroot, tmp_path) as (brokers, session):
        await tool(version, "TopicCommand", chroot, "--alter", "--topic", "t", "--config", "max.message.bytes=200")
        kept = json.loads((await session.get(paths.topic_configuration("t")))[0])
        assert kept == {"version": 1, "config": {"max.message.bytes": "200"}}
        assert set(brokers[0].cluster.snapshot.topics) == {"t"}
        other = TopicPartition("t", 1)  # what arrives before the leader knows the setting is stored
        batch = build_batch([NewRecord(b"x" * 200, None, round(time.time() * 1000))])
        data = [{"name": "t", "partition_data": [{"index": other.partition, "records": batch}]}]
        body = {"acks": -1, "timeout": 1000, "topic_data": data}

        async def refused() -> bool:
            async with client_of(await led(brokers, other)) as client:
                answer = await (await client.any_connection()).call(Api.Produce, body, version=9)
            return answer.responses[0].partition_responses[0].error_code is ErrorCode.message_too_large

        await until(refused, WAIT_S, "the leader to apply the setting")


async def test_preferred_replica_election_is_carried_out(chroot: str, tmp_path: Path, version: str) -> None:
    async with two_brokers(chroot, tmp_path) as (brokers, session):
        preferred = brokers[0].cluster.snapshot.topics["t"].partitions[0].replicas[0]
        other = next(broker for broker in brokers if broker.address.node_id != preferred)
        # As after a restart of the preferred leader: the other one leads.
        data, stat = await session.get(paths.partition_state("t", 0))
        moved = json.loads(data) | {"leader": other.address.node_id, "leader_epoch": 1}
        await session.set(paths.partition_state("t", 0), json.dumps(moved).encode(), stat.version)
        await until(lambda: leader(brokers, TP) is other, WAIT_S, "the other broker to lead")
        await tool(version, "PreferredReplicaLeaderElectionCommand", chroot)
        await gone(session, paths.PREFERRED_ELECTION)
        first = next(broker for broker in brokers if broker is not other)
        await until(lambda: leader(brokers, TP) is first, WAIT_S, "the preferred replica to lead")


async def test_reassignment_is_carried_out(chroot: str, tmp_path: Path, version: str) -> None:
    plan = {"version": 1, "partitions": [{"topic": "t", "partition": number, "replicas": [2]} for number in (0, 1)]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    async with two_brokers(chroot, tmp_path) as (brokers, session):
        said = await tool(
            version, "ReassignPartitionsCommand", chroot, "--reassignment-json-file", str(file), "--execute"
        )
        assert "Successfully started reassignment of partitions" in said
        await gone(session, paths.REASSIGNMENT)
        both = [TopicPartition("t", number) for number in (0, 1)]
        await until(lambda: {leader(brokers, tp) for tp in both} == {brokers[1]}, WAIT_S, "broker 2 to lead both")
        assert [p.replicas for p in brokers[1].cluster.snapshot.topics["t"].partitions][:2] == [(2,), (2,)]
