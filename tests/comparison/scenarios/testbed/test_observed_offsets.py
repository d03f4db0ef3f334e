"""Offsets in a ZooKeeper that was watched from beside: whose they are, when they came, and whether any is missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from comparison.scenarios.testbed.live_observer import LiveObserver
from comparison.scenarios.testbed.observed_offsets import AnsweredWrite, SeenWrite, answered_in, merged, missing
from kernel.clock import NS_PER_MS
from kernel.trace.events import Role
from kernel.trace.writer import SilentTracer, TraceIdentity, TraceWriter
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from pathlib import Path

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


def test_writes_are_in_the_order_of_their_zxids_and_say_whose_they_are() -> None:
    writes = merged([seen(2, 1, 200), seen(1, 0, 100)], [answered(2, "m2", 206), answered(1, "m1", 106)])
    assert [(write.zxid, write.by, write.offset) for write in writes] == [(1, "m1", 10), (2, "m2", 20)]
    assert [write.ns // NS_PER_MS for write in writes] == [105, 205]  # ZooKeeper's times, on our clock


def test_write_of_a_member_that_was_frozen_before_its_answer_keeps_its_place() -> None:
    writes = merged([seen(1, 0, 100), seen(3, 2, 300)], [answered(2, "frozen", 9_000), answered(3, "m2", 306)])
    assert [(write.zxid, write.by) for write in writes] == [(1, ""), (2, "frozen"), (3, "m2")]
    assert [write.ns // NS_PER_MS for write in writes] == [105, 305, 305]


def test_write_that_nobody_told_of_is_missing() -> None:
    observed = [seen(1, 0, 100), seen(9, 3, 300)]
    told = [answered(1, "m1", 106), answered(4, "m1", 200)]
    assert missing(observed, merged(observed, told)) == 1
    assert missing(observed, merged(observed, [*told, answered(7, "m1", 250)])) == 0


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


def told(outcome: str, offset: int) -> tuple[str, dict[str, Any]]:
    fields = {"group": "g", "topic": "t", "partition": 0, "offset": offset, "outcome": outcome, "store": "zookeeper"}
    return "commit_answered", fields


def test_commits_are_read_from_a_members_trace_with_the_zxid_of_the_request_that_made_them(tmp_path: Path) -> None:
    path = member_trace(
        tmp_path,
        request("setData", 4, ok=False),
        request("create", 5),
        told("accepted", 17),
        request("setData", 8),
        told("unknown", 18),  # the member does not know, so what it wrote is for the observer to see
        request("multi", 12, path="/consumers/g/epochs/t/0"),
        request("create", 13, path="/consumers/g/owners/t/0"),
        told("refused", 19),
    )
    with path.open("ab") as torn:
        torn.write(b'{"kind":"zk_op","op"')
    assert [(write.zxid, write.offset, write.member) for write in answered_in([path])] == [(5, 17, "m1")]


def test_a_fenced_commit_has_the_zxid_of_its_transaction(tmp_path: Path) -> None:
    path = member_trace(
        tmp_path,
        request("create", 5),
        told("unknown", 18),
        request("multi", 12, path="/consumers/g/epochs/t/0"),
        told("accepted", 19),
    )
    assert [(write.zxid, write.offset) for write in answered_in([path])] == [(12, 19)]


def test_an_observer_sees_each_offset_that_stands_long_enough_and_counts_those_that_do_not(chroot: str) -> None:
    async def scenario() -> None:
        observer = LiveObserver(chroot, "g", [T0], SilentTracer())
        await observer.start()
        async with await ZooKeeperSession.open(
            chroot, session_timeout_ms=4000, connection_timeout_ms=5000, tracer=SilentTracer(), name="test"
        ) as member:
            await member.create(PATH, b"10", makepath=True)
            await until(lambda: [each.offset for each in observer.seen] == [10], 5, "the first offset")
            for offset in range(11, 31):
                await member.set(PATH, str(offset).encode())
        await observer.see_offsets()
        assert (observer.seen[-1].offset, observer.seen[-1].version) == (30, 20)
        told = [answered(each.zxid, "m1", 0) for each in observer.seen]
        assert missing(observer.seen, merged(observer.seen, told)) == 21 - len({each.zxid for each in observer.seen})
        await observer.stop()

    asyncio.run(scenario())
