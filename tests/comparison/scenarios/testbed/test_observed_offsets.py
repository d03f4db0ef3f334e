"""Offsets in an observed ZooKeeper: who wrote them, when, and whether any is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comparison.scenarios.testbed.live_observer import LiveObserver
from comparison.scenarios.testbed.observed_offsets import AnsweredWrite, SeenWrite, answered_in, merged, missing
from kernel.clock import NS_PER_MS
from kernel.trace.events import Role
from kernel.trace.writer import SilentTracer, TraceIdentity, TraceWriter
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession

T0 = TopicPartition("t", 0)
PATH = paths.offset("g", "t", 0)


def seen(zxid: int, version: int, at_ms: int, *, received_ms: int = 0) -> SeenWrite:
    return SeenWrite(
        partition=T0,
        offset=zxid * 10,
        zxid=zxid,
        version=version,
        mtime_ms=at_ms,
        received_ns=(received_ms or at_ms + 5) * NS_PER_MS,
    )


def answered(zxid: int, member: str, at_ms: int) -> AnsweredWrite:
    return AnsweredWrite(partition=T0, offset=zxid * 10, zxid=zxid, member=member, answered_ns=at_ms * NS_PER_MS)


def test_writes_are_in_zxid_order_with_their_writers() -> None:
    writes = merged([seen(2, 1, 200), seen(1, 0, 100)], [answered(2, "m2", 206), answered(1, "m1", 106)])
    assert [(write.zxid, write.by, write.offset) for write in writes] == [(1, "m1", 10), (2, "m2", 20)]
    assert [write.ns // NS_PER_MS for write in writes] == [105, 205]  # ZooKeeper's times on our clock


def test_write_of_a_member_frozen_before_its_response_keeps_its_place() -> None:
    writes = merged([seen(1, 0, 100), seen(3, 2, 300)], [answered(2, "frozen", 9_000), answered(3, "m2", 306)])
    assert [(write.zxid, write.by) for write in writes] == [(1, ""), (2, "frozen"), (3, "m2")]
    assert [write.ns // NS_PER_MS for write in writes] == [105, 305, 305]


def test_write_that_no_member_traced_is_missing() -> None:
    observed = [seen(1, 0, 100), seen(9, 3, 300)]
    traced = [answered(1, "m1", 106), answered(4, "m1", 200)]
    assert missing(observed, merged(observed, traced)) == 1
    assert missing(observed, merged(observed, [*traced, answered(7, "m1", 250)])) == 0


def member_trace(folder: Path, *events: tuple[str, dict[str, Any]]) -> Path:
    path = folder / "m1.jsonl"
    identity = TraceIdentity(run="r", scenario="s", design="zookeeper", role=Role.MEMBER, process="m1", seed=1)
    writer = TraceWriter(path, identity)
    for kind, fields in events:
        writer.emit(kind, member="m1", **fields)
    writer.close()
    return path


def request(op: str, zxid: int, *, path: str = PATH, ok: bool = True) -> tuple[str, dict[str, Any]]:
    error = None if ok else "NoNode"
    return "zk_op", {"op": op, "path": path, "ok": ok, "error": error, "step": "auto-commit", "zxid": zxid}


def commit_answered(outcome: str, offset: int) -> tuple[str, dict[str, Any]]:
    fields = {"group": "g", "topic": "t", "partition": 0, "offset": offset, "outcome": outcome, "store": "zookeeper"}
    return "commit_answered", fields


def test_commits_in_a_members_trace_have_the_zxid_of_their_request(tmp_path: Path) -> None:
    path = member_trace(
        tmp_path,
        request("setData", 4, ok=False),
        request("create", 5),
        commit_answered("accepted", 17),
        request("setData", 8),
        commit_answered("unknown", 18),  # the member does not know, so only the observer sees the write
        request("multi", 12, path="/consumers/g/epochs/t/0"),
        request("create", 13, path="/consumers/g/owners/t/0"),
        commit_answered("refused", 19),
    )
    with path.open("ab") as torn:
        torn.write(b'{"kind":"zk_op","op"')
    assert [(write.zxid, write.offset, write.member) for write in answered_in([path])] == [(5, 17, "m1")]


def test_a_fenced_commit_has_the_zxid_of_its_transaction(tmp_path: Path) -> None:
    path = member_trace(
        tmp_path,
        request("create", 5),
        commit_answered("unknown", 18),
        request("multi", 12, path="/consumers/g/epochs/t/0"),
        commit_answered("accepted", 19),
    )
    assert [(write.zxid, write.offset) for write in answered_in([path])] == [(12, 19)]


async def test_an_observer_sees_lasting_offsets_and_counts_the_others(chroot: str) -> None:
    observer = LiveObserver(chroot, "g", [T0], SilentTracer())
    await observer.start()
    async with await ZooKeeperSession.open(
        chroot, session_timeout_ms=15_000, connection_timeout_ms=30_000, tracer=SilentTracer(), name="test"
    ) as member:
        await member.create(PATH, b"10", makepath=True)
        await until(lambda: [each.offset for each in observer.seen] == [10], 60, "the first offset")
        for offset in range(11, 31):
            await member.set(PATH, str(offset).encode())
    await observer.see_offsets()
    assert (observer.seen[-1].offset, observer.seen[-1].version) == (30, 20)
    traced = [answered(each.zxid, "m1", 0) for each in observer.seen]
    assert missing(observer.seen, merged(observer.seen, traced)) == 21 - len({each.zxid for each in observer.seen})
    await observer.stop()
