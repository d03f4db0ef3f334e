"""Brokers that stop, or are killed, and start again with their data folder: the same broker, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kernel.broker import broker as broker_module
from kernel.broker.broker import Broker
from kernel.broker.cluster.identity import BrokerAlreadyRunning, WrongCluster
from kernel.broker.cluster.registration import find_cluster as find_cluster_now
from kernel.errors import EnvironmentFault
from kernel.platform.ports import free_ports
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.chroot import ensure_chroot
from kernel.zookeeper.end_session import SessionCredentials, end_session
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.brokers.child import broker_child
from tests.support.brokers.live import broker_of, read_values, running_broker, send_values
from tests.support.zookeeper.sessions import gone, opened

TP = TopicPartition("t", 0)
NO_ID = {"broker.id": "-1"}
#: So long that a test that waits for the session to time out fails.
SESSION_MS = 60_000
WAIT_MS = 30_000


@asynccontextmanager
async def broker_on(port: int, chroot: str, folder: Path) -> AsyncIterator[Broker]:
    async with running_broker(chroot, folder, settings={**NO_ID, "port": str(port)}) as broker:
        yield broker


async def led(broker: Broker) -> None:
    await until(lambda: broker.cluster.leads(TP) is not None, WAIT_MS / 1000, f"the broker to lead {TP}")


def names(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


async def test_restarted_brokers_without_an_id_keep_their_ids_and_lead_their_topics(
    chroot: str, tmp_path: Path
) -> None:
    ports = free_ports(2)
    async with broker_on(ports[0], chroot, tmp_path) as one, broker_on(ports[1], chroot, tmp_path) as two:
        ids = [one.address.node_id, two.address.node_id]
        await two.cluster.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[ids[1]]])
        await led(two)
        await send_values(two, TP, [b"first"])
    # In the other order, and one of them alone.
    async with broker_on(ports[1], chroot, tmp_path) as two:
        assert two.address.node_id == ids[1]
        await led(two)
        assert await read_values(two, TP) == [b"first"]
        async with broker_on(ports[0], chroot, tmp_path) as one:
            assert one.address.node_id == ids[0]


async def test_broker_on_a_new_port_leads_the_same_partitions(chroot: str, tmp_path: Path) -> None:
    async with broker_on(0, chroot, tmp_path) as broker:
        await broker.cluster.create_topic("t", partitions=1, replication_factor=1)
        await led(broker)
        await send_values(broker, TP, [b"first"])
        before = broker.address
    async with broker_on(0, chroot, tmp_path) as broker:
        assert broker.address.node_id == before.node_id
        await led(broker)
        assert await read_values(broker, TP) == [b"first"]


@pytest.mark.parametrize("node_id", [-1, 1])
async def test_start_after_kill_9_ends_the_old_session_instead_of_waiting_for_it(
    chroot: str, tmp_path: Path, node_id: int
) -> None:
    async with broker_child(chroot, tmp_path, node_id, SESSION_MS) as child, opened(chroot) as session:
        assert child.stdout is not None
        assert await child.stdout.readline(), "the broker did not start"
        (old_id,) = await session.children(paths.BROKER_IDS)
        child.kill()
        await child.wait()
        assert await session.children(paths.BROKER_IDS) == [old_id], "ZooKeeper still believes in it"
        began = time.monotonic()
        async with running_broker(chroot, tmp_path, settings={"broker.id": str(node_id)}) as broker:
            assert str(broker.address.node_id) == old_id
            assert await broker.cluster.until(lambda s: s.controller_id == int(old_id), WAIT_MS)
        assert (time.monotonic() - began) * 1000 < SESSION_MS / 2


async def test_living_broker_keeps_its_session_and_its_id(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, node_id=1) as broker:
        session_id = broker.cluster.session.session_id
        before = names(tmp_path / "incarnations")
        with pytest.raises(BrokerAlreadyRunning, match=r"broker 1 .* is already running"):
            await broker_of(chroot, tmp_path, node_id=1).start()
        assert names(tmp_path / "incarnations") == before
        async with opened(chroot) as session:
            stat = await session.exists(paths.broker(1))
            assert stat is not None
            assert stat.ephemeral_owner == session_id


async def test_folder_of_another_cluster_is_refused_and_nothing_is_written(chroot: str, tmp_path: Path) -> None:
    other, folder, another = f"{chroot}/other", tmp_path / "one", tmp_path / "another"
    async with running_broker(chroot, folder) as broker:
        cluster_id = broker.cluster.snapshot.cluster_id
    before = names(folder)
    await ensure_chroot(other, tracer=SilentTracer(), name="other", connection_timeout_ms=10_000)
    async with opened(other) as session:
        with pytest.raises(WrongCluster, match=f"belongs to cluster {cluster_id}.*holds no cluster yet"):
            await broker_of(other, folder).start()
        assert await session.children("/") == []
        async with running_broker(other, another) as broker:
            theirs = broker.cluster.snapshot.cluster_id
        with pytest.raises(WrongCluster, match=f"belongs to cluster {cluster_id}.*holds cluster {theirs}"):
            await broker_of(other, folder, settings=NO_ID).start()
    assert names(folder) == before


@pytest.mark.parametrize("data", [b"garbage", b"[" * 100_000, b'{"id":7}', b'{"id":"a b"}'])
async def test_malformed_cluster_id_is_refused_with_the_remedy(chroot: str, tmp_path: Path, data: bytes) -> None:
    async with opened(chroot) as session:
        await session.create(paths.CLUSTER_ID, data, makepath=True)
        with pytest.raises(EnvironmentFault, match=r"/cluster/id in ZooKeeper is malformed.*meta\.properties"):
            await broker_of(chroot, tmp_path).start()
        assert (await session.get(paths.CLUSTER_ID))[0] == data
        assert names(tmp_path) == []


async def test_broker_names_stopped_brokers_whose_partitions_it_finds(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(chroot, tmp_path, node_id=7) as broker:
        await broker.cluster.create_topic("t", partitions=3, replication_factor=1)
        await led(broker)
    async with opened(chroot) as session:
        await gone(session, paths.broker(7))
    with caplog.at_level(logging.WARNING, "kernel.broker.broker"):
        async with running_broker(chroot, tmp_path, node_id=8):
            assert "3 partitions have no running broker: they are on broker 7." in caplog.text
        caplog.clear()
        async with running_broker(chroot, tmp_path, node_id=7):
            assert "no running broker" not in caplog.text


async def test_session_ends_once_and_for_all_and_only_with_its_password(chroot: str) -> None:
    async with opened(chroot, timeout_ms=SESSION_MS) as owner, opened(chroot) as session:
        await owner.create("/mine", b"", ephemeral=True)
        session_id, password = owner.credentials
        assert await end_session(chroot, SessionCredentials(session_id, b"\0" * 16), timeout_s=30)
        assert await session.exists("/mine") is not None, "a wrong password ends nothing"
        assert await end_session(chroot, SessionCredentials(session_id, password), timeout_s=30)
        assert await session.exists("/mine") is None
        assert await end_session(chroot, SessionCredentials(session_id, password), timeout_s=30), "the session is over"


def test_ending_a_session_is_given_up_if_no_server_answers(unused_port: int) -> None:
    address = f"127.0.0.1:{unused_port}"
    assert not asyncio.run(end_session(address, SessionCredentials(1, b"\0" * 16), timeout_s=0.3))


async def test_cluster_just_created_by_another_broker_of_the_folder_is_accepted(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two brokers start on an empty ZooKeeper; the second one reads it before the first has created the cluster."""
    answers: list[str | None] = [None]

    async def find_cluster(session: ZooKeeperSession) -> str | None:
        return answers.pop() if answers else await find_cluster_now(session)

    first, second = free_ports(2)
    async with broker_on(first, chroot, tmp_path):
        monkeypatch.setattr(broker_module, "find_cluster", find_cluster)
        async with broker_on(second, chroot, tmp_path):
            pass
    assert not answers
