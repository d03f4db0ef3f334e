"""Brokers with a folder each, with copies and with moved folders: whatever is killed, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from kernel.broker.cluster.data_folder import OtherFolder
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.brokers.child import broker_child
from tests.support.brokers.live import broker_of, create_topics, read_values, running_broker, send_values
from tests.support.zookeeper.sessions import expire, opened

TP = TopicPartition("t", 0)
SESSION_MS = 3_000


def child(
    chroot: str, folder: Path, node_id: int, *, inside: Sequence[str] = ()
) -> AbstractAsyncContextManager[Process]:
    """A broker in a process of its own; standard error is kept. `inside`: a command that runs it."""
    return broker_child(chroot, folder, node_id, SESSION_MS, inside=inside, stderr=PIPE)


async def port_of(process: Process) -> int:
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "the broker did not start"
    return int(line)


def names(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


async def refused(chroot: str, folder: Path, why: str, *, node_id: int = 2) -> None:
    """A broker in that folder does not start, and nothing is written."""
    before = names(folder)
    with pytest.raises(OtherFolder, match=why):
        await broker_of(chroot, folder, node_id=node_id).start()
    assert names(folder) == before


async def test_second_broker_with_a_folder_of_its_own_does_not_start(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path / "a", node_id=1) as one:
        await refused(chroot, tmp_path / "b", f"share one data folder, {tmp_path / 'a'} on .*--folder {tmp_path}")
        await create_topics(one, {"t": 1})
        await send_values(one, TP, [b"1"])
        assert sorted(one.cluster.snapshot.brokers) == [1]
    await refused(chroot, tmp_path / "b", "share one data folder")
    async with running_broker(chroot, tmp_path / "a", node_id=1) as one:
        await until(lambda: one.cluster.leads(TP) is not None, 60, f"broker 1 to lead {TP}")
        assert await read_values(one, TP) == [b"1"]


async def test_copy_is_refused_while_brokers_run_and_after_they_have_written_more(chroot: str, tmp_path: Path) -> None:
    data, copy, later = tmp_path / "data", tmp_path / "copy", tmp_path / "later"
    async with running_broker(chroot, data, node_id=1) as one:
        shutil.copytree(data, copy)
        # As broker 1, too: the copy has its session, and must not end it.
        for node_id in (1, 2):
            await refused(chroot, copy, "was copied, moved .* while brokers were running", node_id=node_id)
        assert one.cluster.session.session_id == one.cluster.session.credentials[0]
        assert sorted(one.cluster.snapshot.brokers) == [1]
    await refused(chroot, copy, "is an old copy")
    shutil.copytree(data, later)
    async with running_broker(chroot, later, node_id=1):
        await refused(chroot, data, f"is an old copy .*{later} on")
    await refused(chroot, data, "is an old copy")


async def test_folder_is_adopted_on_request_but_not_beside_running_brokers(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path / "a", node_id=1):
        with pytest.raises(OtherFolder, match=r"cannot be adopted while other brokers .*\(1\)"):
            await broker_of(chroot, tmp_path / "b", node_id=2, adopt_folder=True).start()
    async with broker_of(chroot, tmp_path / "b", node_id=2, adopt_folder=True) as two:
        assert sorted(two.cluster.snapshot.brokers) == [2]
        await refused(chroot, tmp_path / "a", "share one data folder|old copy", node_id=1)


async def test_broker_whose_folder_was_replaced_while_it_had_no_session_stops(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path / "a", node_id=1) as one, opened(chroot) as session:
        data, _ = await session.get(paths.DATA_FOLDER)
        await session.set(paths.DATA_FOLDER, data.replace(b'"token":"', b'"token":"x'))
        await expire(one.cluster.session)
        failure = await asyncio.wait_for(one.failed(), 60)
        assert isinstance(failure, OtherFolder)
        assert await session.children(paths.BROKER_IDS) == []


def _mount_namespaces() -> bool:
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


async def test_other_disk_at_the_same_path_is_another_folder(chroot: str, tmp_path: Path) -> None:
    """As in two containers that have a volume each."""
    if not shutil.which("unshare") or not _mount_namespaces():
        pytest.skip("this user may not make mount namespaces")
    data = tmp_path / "data"
    data.mkdir()
    disk = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs none {data} && exec "$@"', "sh")
    async with child(chroot, data, 1, inside=disk) as one:
        await port_of(one)
        async with child(chroot, data, 2, inside=disk) as two:
            _, errors = await two.communicate()
            assert b"which is another one" in errors, errors
        one.kill()
        await one.wait()
        await refused(chroot, data, "which is another one")
        assert list(data.iterdir()) == []


async def topic_on_both(chroot: str, folder: Path) -> None:
    async with running_broker(chroot, folder, node_id=1) as one, running_broker(chroot, folder, node_id=2):
        await create_topics(one, {"t": 1}, replication_factor=2)


async def kills(chroot: str, folders: Mapping[int, Path], rounds: int) -> None:
    """Two brokers are replicas of one partition; its leader is killed again and again, and started again."""
    sent: list[bytes] = []
    async with AsyncExitStack() as stack:

        async def start(node_id: int) -> None:
            running[node_id] = await stack.enter_async_context(child(chroot, folders[node_id], node_id))
            ports[node_id] = await port_of(running[node_id])

        async def stop(node_id: int) -> None:
            running[node_id].kill()
            await running[node_id].wait()

        running: dict[int, Process] = {}
        ports: dict[int, int] = {}
        for node_id in folders:
            await start(node_id)
        for number in range(rounds):
            client = ClusterClient([("127.0.0.1", port) for port in ports.values()], "test")
            producer = Producer(client)
            values = [b"%d-%d" % (number, record) for record in range(20)]
            await asyncio.gather(*(producer.enqueue(TP, value) for value in values))
            await producer.close()
            sent += values
            leader = (await client.refresh()).leaders[TP].node_id
            await client.close()
            await stop(leader)
            await start(leader)
        for node_id in folders:
            await stop(node_id)
    async with running_broker(chroot, folders[1], node_id=1) as one:
        await until(lambda: one.cluster.leads(TP) is not None, 60, f"broker 1 to lead {TP}")
        assert await read_values(one, TP) == sent


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("how", ["by a link", "moved", "copied"])
async def test_nothing_acknowledged_is_lost_by_kills(chroot: str, tmp_path: Path, how: str, rounds: int) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    await topic_on_both(chroot, data)
    match how:
        case "by a link":
            other.symlink_to(data)
            await kills(chroot, {1: data, 2: other}, rounds)
        case "moved":
            data.rename(other)
            await kills(chroot, {1: other, 2: other}, rounds)
        case "copied":
            shutil.copytree(data, other)
            await kills(chroot, {1: other, 2: other}, rounds)
            await refused(chroot, data, "is an old copy")
