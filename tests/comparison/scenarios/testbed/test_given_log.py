"""The transaction log of a ZooKeeper that is not ours: the run's part of it, and none of another server's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comparison.scenarios.testbed.chroot import make_chroot
from comparison.scenarios.testbed.given_log import GivenLog, within
from kernel.errors import ConfigurationError
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession
from kernel.zookeeper.txnlog import Transaction, read_transactions


def transaction(**fields: object) -> Transaction:
    return Transaction(**{"zxid": 1, "session": 7, "cxid": 1, "time_ms": 0, "op": "create", **fields})  # type: ignore[arg-type]


def test_only_changes_below_the_chroot_are_the_runs_and_by_the_paths_of_its_clients() -> None:
    found = within(
        "/lab/run-1",
        [
            transaction(path="/lab/run-1"),
            transaction(path="/lab/run-1/consumers/g/ids/a"),
            transaction(path="/lab/run-10/consumers/g/ids/b"),
            transaction(path="/consumers/g/ids/c"),
            transaction(op="closeSession", removed_paths=("/consumers/g/ids/c", "/lab/run-1/consumers/g/ids/a")),
            transaction(op="closeSession", removed_paths=("/consumers/g/ids/c",)),
            transaction(op="error"),
        ],
    )
    assert [(each.op, each.path, each.removed_paths) for each in found] == [
        ("create", "/consumers/g/ids/a", ()),
        ("closeSession", "", ("/consumers/g/ids/a",)),
    ]


def test_a_runs_log_has_what_was_done_in_its_chroot(tmp_path: Path) -> None:
    async def scenario(server: EmbeddedZooKeeper) -> list[str]:
        inside = await make_chroot(server.connect_string, "run-1")
        log = GivenLog([server.servers[0].data_dir / "version-2"])
        await log.begin(inside)
        async with await ZooKeeperSession.open(
            inside, session_timeout_ms=15_000, connection_timeout_ms=30_000, tracer=SilentTracer(), name="test"
        ) as session:
            await session.create("/a/b", makepath=True)
        return [each.path for each in log.transactions()]

    with EmbeddedZooKeeper(tmp_path) as server:
        assert asyncio.run(scenario(server)) == ["/a", "/a/b"]
        assert list(read_transactions(server.servers[0].data_dir, since=1 << 40))


def test_the_log_of_another_server_is_refused_before_the_run(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comparison.scenarios.testbed.given_log._WRITTEN_S", 0.1)

    async def scenario(other: Path) -> None:
        await GivenLog([other]).begin(await make_chroot(chroot, "run-1"))

    (tmp_path / "version-2").mkdir()
    with pytest.raises(ConfigurationError, match=rf"--zookeeper-log {tmp_path} does not have what was just written"):
        asyncio.run(scenario(tmp_path))
