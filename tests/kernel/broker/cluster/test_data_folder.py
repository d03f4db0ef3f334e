"""All brokers of a cluster use one data folder, and no copy that may lack records."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kernel.broker.cluster.data_folder import DataFolder, FolderState, FolderUse, OtherFolder, problem
from kernel.broker.cluster.identity import Identity, claim
from kernel.errors import EnvironmentFault
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.zookeeper.sessions import opened

LAST = FolderUse(token="t2", marker_ns=7, closed=False, path="/data", host="h")
SAME = FolderState("/data", frozenset({"t1", "t2"}), 7)
COPY = replace(SAME, path="/copy", marker_ns=8)
CLOSED = replace(LAST, closed=True)
NODE_IDS = itertools.count()


@pytest.mark.parametrize(
    ("last", "folder", "found"),
    [
        (None, FolderState("/data", frozenset(), None), ""),
        (LAST, SAME, ""),
        (LAST, replace(SAME, path="/moved"), ""),
        (CLOSED, COPY, ""),
        (LAST, COPY, "was copied, moved to another file system or changed in its owner or mode while brokers"),
        (LAST, COPY, "Start a broker in the original folder (/data on h)"),
        (LAST, replace(SAME, marker_ns=8), "Start a broker in the folder that was here"),
        (LAST, replace(COPY, tokens=frozenset({"t1"})), "is an old copy of the data folder"),
        (CLOSED, replace(COPY, tokens=frozenset({"t1"})), "Start the broker with --folder /data"),
        (CLOSED, replace(SAME, tokens=frozenset({"t1"})), "Put that folder (or its disk) back in its place"),
        (CLOSED, FolderState("/other", frozenset(), None), "share one data folder, /data on h, not /other"),
        (LAST, FolderState("/data", frozenset(), None), "/data on h, which is another one"),
    ],
)
def test_folder_is_used_only_if_it_cannot_lack_records(last: FolderUse | None, folder: FolderState, found: str) -> None:
    assert found in problem(last, folder)
    assert bool(problem(last, folder)) == bool(found)
    assert f"--folder {folder.path}" not in problem(last, folder), "what has just been refused"


class Using:
    """A broker's part in the use of a folder, and what it would store there."""

    def __init__(self, folder: Path, session: ZooKeeperSession) -> None:
        self.folder, self._session = folder, session
        self._use = DataFolder(folder)
        self._identity: Identity | None = None

    async def start(self) -> None:
        await self._use.check(self._session)
        self._identity = claim(self.folder, "cluster", "", node_id=next(NODE_IDS))
        assert self._identity is not None
        try:
            await self._use.open(self._session, self._identity)
        except OtherFolder:
            self.kill()
            raise

    def write(self, record: str) -> None:
        with (self.folder / "records").open("a") as file:
            file.write(f"{record}\n")

    async def stop(self) -> None:
        await self._use.leave(self._session)
        self.kill()

    def kill(self) -> None:
        assert self._identity is not None
        self._identity.release()


def stored(folder: Path) -> set[str]:
    return set((folder / "records").read_text().split()) if (folder / "records").exists() else set()


async def random_life(seed: int, tmp_path: Path, session: ZooKeeperSession) -> tuple[int, int]:
    """Brokers start, write, stop and die on a folder and its copies. Returns how many started and were refused."""
    rng = random.Random(seed)
    folders, acknowledged, running = [tmp_path / "0"], set[str](), list[Using]()
    started = refused = 0
    for step in range(40):
        folder = rng.choice(folders)
        match rng.choice(("start", "start", "write", "write", "stop", "kill", "copy", "restore", "move")):
            case "start":
                one = Using(folder, session)
                try:
                    await one.start()
                except OtherFolder:
                    refused += 1
                    continue
                started += 1
                running.append(one)
                assert {other.folder for other in running} == {folder}, f"seed {seed}: two folders are in use"
                assert stored(folder) >= acknowledged, f"seed {seed}: {folder} lacks acknowledged records"
            case "write" if running:
                rng.choice(running).write(f"r{step}")
                acknowledged.add(f"r{step}")
            case "stop" if running:
                await running.pop(rng.randrange(len(running))).stop()
            case "kill" if running:
                running.pop(rng.randrange(len(running))).kill()
            case "copy" if folder.exists() and len(folders) < 5:
                folders.append(tmp_path / str(len(folders)))
                shutil.copytree(folder, folders[-1])
            case "restore" if not running and len(folders) > 1:
                # Over what is there, so that files keep their inodes.
                source = rng.choice([other for other in folders if other != folder and other.exists()] or [folder])
                if source != folder:
                    shutil.copytree(source, folder, dirs_exist_ok=True)
                    (folder / "records").write_text("\n".join(sorted(stored(source))) + "\n")
            case "move" if not running and folder.exists():
                folders[folders.index(folder)] = folder.rename(tmp_path / f"moved-{step}")
    for one in running:
        await one.stop()
    return started, refused


async def test_no_sequence_of_copies_moves_and_kills_starts_a_broker_without_the_records(
    chroot: str, tmp_path: Path
) -> None:
    lives = []
    async with opened(chroot) as session:
        for seed in range(15):
            (tmp_path / str(seed)).mkdir()
            lives.append(await random_life(seed, tmp_path / str(seed), session))
            with suppress(OSError):
                shutil.rmtree(tmp_path / str(seed))
            await session.delete(paths.DATA_FOLDER)
    assert sum(started for started, _ in lives) > 60
    assert sum(refused for _, refused in lives) > 60


async def test_two_copies_used_at_once_have_one_winner(chroot: str, tmp_path: Path) -> None:
    async with opened(chroot) as session:
        original = Using(tmp_path / "0", session)
        await original.start()
        await original.stop()
        copies = [tmp_path / str(number) for number in range(1, 5)]
        for copy in copies:
            shutil.copytree(tmp_path / "0", copy)
        brokers = [Using(folder, session) for folder in (tmp_path / "0", *copies)]
        ends = await asyncio.gather(*(broker.start() for broker in brokers), return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["NoneType", *["OtherFolder"] * 4], ends
        brokers[ends.index(None)].kill()


async def test_brokers_that_stop_together_close_the_folder(chroot: str, tmp_path: Path) -> None:
    async with opened(chroot) as session:
        brokers = [Using(tmp_path / "data", session) for _ in range(5)]
        await asyncio.gather(*(broker.start() for broker in brokers))
        await asyncio.gather(*(broker.stop() for broker in brokers))
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        copy = Using(tmp_path / "copy", session)
        await copy.start()
        copy.kill()


async def test_folder_is_not_closed_while_another_broker_uses_it(chroot: str, tmp_path: Path) -> None:
    async with opened(chroot) as session:
        brokers = [Using(tmp_path / "data", session) for _ in range(2)]
        await asyncio.gather(*(broker.start() for broker in brokers))
        await brokers[0].stop()
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        with pytest.raises(OtherFolder, match="was copied"):
            await Using(tmp_path / "copy", session).start()
        brokers[1].kill()


@pytest.mark.parametrize("data", [b"garbage", b"[" * 100_000, b"{}", b'{"token": 7}', b"\xff"])
async def test_malformed_znode_is_refused_with_the_remedy(chroot: str, tmp_path: Path, data: bytes) -> None:
    async with opened(chroot) as session:
        await session.create(paths.DATA_FOLDER, data, makepath=True)
        with pytest.raises(EnvironmentFault, match=r"/rebalance_lab/data_folder in ZooKeeper is malformed.*delete"):
            await Using(tmp_path / "data", session).start()
        assert (await session.get(paths.DATA_FOLDER))[0] == data
        assert not (tmp_path / "data").exists()
