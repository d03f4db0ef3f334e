"""The runner in an external ZooKeeper: its own chroot, a baseline, an observer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comparison.scenarios.testbed.baseline import measure_baseline
from comparison.scenarios.testbed.chroot import chroot_name, make_chroot, remove_chroot
from comparison.scenarios.testbed.given_log import GivenLog, within
from comparison.scenarios.testbed.live_observer import LiveObserver
from kernel.errors import ConfigurationError, Unavailable
from kernel.runtime import REAL
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession
from kernel.zookeeper.txnlog import Transaction, read_transactions
from tests.support.trace.tracers import ListTracer


async def session(connect_string: str) -> ZooKeeperSession:
    return await ZooKeeperSession.open(
        connect_string, session_timeout_ms=15_000, connection_timeout_ms=30_000, tracer=SilentTracer(), name="test"
    )


async def test_a_run_gets_its_own_chroot_and_leaves_nothing_behind(chroot: str) -> None:
    name = chroot_name("20261121T144531Z-compare/crash/zookeeper")
    assert name == "rebalance-lab-20261121T144531Z-compare-crash-zookeeper"
    inside = await make_chroot(chroot, name)
    assert inside == f"{chroot}/{name}"
    async with await session(inside) as zookeeper:
        await zookeeper.create("/a/b/c", makepath=True)
    await remove_chroot(inside)
    async with await session(chroot) as zookeeper:
        assert await zookeeper.children("/") == []


async def test_a_baseline_is_measured_and_leaves_nothing_behind(chroot: str) -> None:
    baseline = await measure_baseline(chroot, REAL)
    assert set(baseline) == {"create_ms", "get_ms", "notify_ms"}
    assert all(value > 0 for value in baseline.values())
    async with await session(chroot) as zookeeper:
        assert await zookeeper.children("/") == []


async def test_an_observer_traces_named_owners_and_departed_members(chroot: str, zookeeper: EmbeddedZooKeeper) -> None:
    tracer = ListTracer()
    observer = LiveObserver(chroot, "g", [TopicPartition("t", 0)], tracer)
    await observer.start()
    owner = paths.owner("g", "t", 0)
    async with await session(chroot) as member:
        await member.ensure_path(paths.member_ids("g"))
        await member.create(paths.member_id("g", "g_c1"), b"{}", ephemeral=True)
        await member.create(owner, b"g_c1-0", ephemeral=True, makepath=True)
        await until(lambda: len(tracer.events) == 2, 60, lambda: str(tracer.events))
        await member.delete(owner)
        await until(lambda: len(tracer.events) == 3, 60, lambda: str(tracer.events))
    await until(lambda: len(tracer.events) == 4, 60, lambda: str(tracer.events))
    await observer.stop()
    named, cleared = tracer.of("authority_named", "authority_cleared")
    assert (named["owner"], named["epoch"]) == (cleared["owner"], cleared["epoch"]) == ("g_c1-0", named["epoch"])
    assert [event["kind"] for event in tracer.of("group_member_joined", "group_member_left")] == [
        "group_member_joined",
        "group_member_left",
    ]


async def test_an_observer_that_lost_its_connection_says_so(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path) as server:
        tracer = ListTracer()
        observer = LiveObserver(server.connect_string, "g", [TopicPartition("t", 0)], tracer)
        await observer.start()
        async with await session(server.connect_string) as member:
            await member.create(paths.owner("g", "t", 0), b"g_c1-0", makepath=True)
        await until(lambda: tracer.events, 60, "the observer to watch")
        observer.check()
        await asyncio.to_thread(server.servers[0].restart)
        await until(lambda: complaint(observer), 60, "the lost connection to be traced")
        assert complaint(observer).endswith("lost its connection for a while")
        await observer.stop()


async def test_an_observer_that_cannot_read_says_so(chroot: str) -> None:
    observer = LiveObserver(chroot, "g", [TopicPartition("t", 0)], SilentTracer())
    await observer.start()
    assert observer._session is not None
    await observer._session.close()
    await until(lambda: complaint(observer), 60, "the end of the session to be traced")
    assert "failed: " in complaint(observer)
    await observer.stop()


def complaint(observer: LiveObserver) -> str:
    try:
        observer.check()
    except Unavailable as error:
        return str(error)
    return ""


# The transaction log of a ZooKeeper that is not ours: the run's part of it, and none of another server's.


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


async def test_a_runs_log_has_what_was_done_in_its_chroot(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path) as server:
        inside = await make_chroot(server.connect_string, "run-1")
        log = GivenLog([server.servers[0].data_dir / "version-2"])
        await log.begin(inside)
        async with await ZooKeeperSession.open(
            inside, session_timeout_ms=15_000, connection_timeout_ms=30_000, tracer=SilentTracer(), name="test"
        ) as session:
            await session.create("/a/b", makepath=True)
        assert [each.path for each in log.transactions()] == ["/a", "/a/b"]
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
