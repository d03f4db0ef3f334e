"""A member as a process that is stopped by SIGSTOP past its session, or killed by kill -9.

On the originals (SIGSTOP of 4.5 s, session 2 s, auto-commit 100 ms): the offset of the new owner moved back in 10 of 10
rounds, always by a write in the *new* session; after the SIGCONT, 53 to 99 messages, all already delivered, within 1.1
to 2.0 s. `python -m bench.wake` measures both. How long the window is depends on chance (the client's pauses), so
the test keeps it open until the effect has happened.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from comparison.scenarios.processes.children import ChildProcess
from comparison.scenarios.processes.fork_server import ForkServer
from kernel.errors import RebalanceFailed
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.consumers.weak_members import committed, failure, has, joined, joining, polling
from tests.support.consumers.zookeeper import SETTINGS, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import end_session, opened

pytestmark = pytest.mark.faults

MINE = TopicPartition("t", 0)
OFFSET = "/consumers/g/offsets/t/0"
COMMIT_EVERY_MS = 1500
#: A session that no pause of a busy machine ends: only the test ends it.
OUTLIVES = {"zookeeper_session_timeout_ms": "30000"}


class MemberChild:
    """A member in its own process, and its events."""

    def __init__(self):
        self.events = []
        self.process = None

    def of(self, kind, since=0):
        return [event for event in self.events[since:] if event["kind"] == kind]

    def delivered(self, since=0):
        """Offsets of the tested partition that it delivered."""
        runs = [event for event in self.of("records_delivered", since) if event["partition"] == MINE.partition]
        return [offset for run in runs for offset in range(run["first"], run["last"] + 1)]


@asynccontextmanager
async def member_child(chroot, folder, name, **settings):
    """A process that joins and polls from then on; it is killed at the end."""
    fork_server = await ForkServer.open()
    child = MemberChild()
    try:
        module = "comparison.scenarios.processes.member_process"
        child.process = await ChildProcess.spawn(fork_server, module, name, folder / f"{name}.log", child.events.append)
        given = {key.replace("_", "."): value for key, value in settings.items()}
        child.process.send(
            {"process": name, "design": "zookeeper", "run": "r", "scenario": "frozen", "seed": 0, "bootstrap": "",
             "trace": str(folder / f"{name}.jsonl"), "group": "g", "topics": {"t": 1}, "zookeeper": chroot,
             "settings": SETTINGS | {"consumer.id": name} | given}
        )  # fmt: skip
        yield child
    finally:
        if child.process is not None:
            await child.process.kill()
        await fork_server.stop()


@pytest.mark.parametrize(
    ("settings", "delivers", "moved_back"),
    [
        pytest.param({}, True, True, id="default"),
        pytest.param({"fix_commit_fence": "session"}, True, False, id="fenced by the session"),
        pytest.param({"fix_commit_fence": "epoch"}, True, False, id="fenced by an epoch node"),
        pytest.param({"fix_stop_on_disconnect": "true"}, False, True, id="stops on disconnect"),
    ],
)
async def test_frozen_member_delivers_another_owners_records_and_moves_its_offset_back(
    chroot, tmp_path, settings, delivers, moved_back, link
):
    given = {**OUTLIVES, "auto_commit_interval_ms": str(COMMIT_EVERY_MS), **settings}
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        member_child(link.connect_string, tmp_path, "a", **given) as a,
        joined(chroot, "b", {"t": 1}, **settings) as b,
        polling(b),
    ):
        await settled(session, shared("t", ("g_a-0", [0]), ("g_b-0", [1])))
        stale = await freeze_between_delivery_and_commit(broker, session, a)
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await asyncio.sleep(COMMIT_EVERY_MS / 1000)  # so that a commit is due first when it thaws
        await settled(session, shared("t", ("g_b-0", range(2))))
        newest, frozen = len(a.delivered()) + 20, len(a.events)
        # Its connection stays refused until everything has happened that this window is for. Otherwise the window's
        # length would be luck: at the thaw both the end of its connection and a fetched record may be ready.
        link.refuse()
        a.process.thaw()
        await until(lambda: is_suspended(a, frozen), 60, "a to lose its connection to ZooKeeper")
        if not delivers:
            await until(lambda: a.of("partitions_revoked", frozen), 60, "a to stop")
        await produce(broker, "t", 1, range(1000, 1020))  # for partition 0
        await until(lambda: b.consumer.position(MINE) == newest, 60, "all records at b")
        assert (await b.consumer.commit()).accepted[MINE] == newest
        if delivers:
            await until(lambda: len(a.delivered(frozen)) == 20, 60, "a to deliver the records that b delivered")
        before = link.mark()
        link.refuse(False)
        await until(lambda: [e for e in a.of("rebalance_ended", frozen) if e["outcome"] == "ok"], 60, "a to return")
        returned = next(i for i, e in enumerate(a.events) if i >= frozen and e["kind"] == "rebalance_started")
        zombie = FrozenView(a.events[frozen:returned]).delivered()
        assert zombie == (list(range(newest - 20, newest)) if delivers else [])
        # It writes the position that it had when it woke up.
        writes = [op for op in link.operations(before) if op.op == "setData" and op.path == OFFSET]
        back = [op for op in writes if op.result == "ok" and int(op.data) < newest]
        if moved_back:
            assert stale < newest
            assert back
            registered = next(op for op in link.operations(before) if op.op == "create" and "/ids/" in op.path)
            assert registered.at <= back[0].at
            assert {op.session for op in back} == {back[0].session} != {0}
        else:
            assert not back
            assert (await committed(session, MINE)) >= newest
            assert [e for e in a.of("commit_answered", frozen) if e["outcome"] == "refused"]


class FrozenView(MemberChild):
    """Some of a member's events."""

    def __init__(self, events):
        super().__init__()
        self.events = events


def is_suspended(a, since):
    return any(event["state"] == "suspended" for event in a.of("session_changed", since))


async def freeze_between_delivery_and_commit(broker, session, a):
    """Freeze it when it has delivered uncommitted records; returns the offset in ZooKeeper."""
    for number in range(5):
        had = len(a.delivered())
        await produce(broker, "t", 1, range(10 * number, 10 * number + 10))
        await until(lambda had=had: len(a.delivered()) >= had + 10, 60, "ten more records at a")
        a.process.freeze()
        offset = await committed(session, MINE)
        if offset is not None and offset < len(a.delivered()):
            return offset
        a.process.thaw()  # never committed yet, or committed a moment ago

        async def caught_up() -> bool:
            return await committed(session, MINE) == len(a.delivered())

        await until(caught_up, 60, "a commit of a, with most of an interval left before the next")
    raise AssertionError("a commits faster than it can be frozen")


@pytest.mark.parametrize(
    ("settings", "waits"),
    [pytest.param({}, True, id="0.8.2"), pytest.param({"registration_conflict": "fail"}, False, id="1.1")],
)
async def test_killed_member_restarts_under_its_id_before_its_session_has_expired(
    chroot, tmp_path, settings, waits, link
):
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        member_child(link.connect_string, tmp_path, "c1", **OUTLIVES) as dead,
    ):
        await settled(session, shared("t", ("g_c1-0", range(2))))
        await dead.process.kill()
        async with joining(chroot, "c1", {"t": 1}, waits_ms=500, **settings) as (c1, join):
            if waits:
                tries = ("register", "create")
                await until(lambda: [op[:2] for op in c1.operations()].count(tries) >= 2, 60, "another attempt")
                await asyncio.to_thread(end_session, chroot, link.credentials())
                await asyncio.wait_for(join, 15)
                await settled(session, shared("t", ("g_c1-0", range(2))))
            else:
                error = await failure(join)
                assert not isinstance(error, RebalanceFailed)
                assert "g_c1" in str(error)


async def test_record_taken_by_a_killed_member_is_delivered_again(chroot, tmp_path, link):
    """At least once: everything since the last commit is delivered to the next owner."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "b", {"t": 1}) as b,
        polling(b),
        member_child(link.connect_string, tmp_path, "a", **OUTLIVES) as a,
    ):
        await settled(session, shared("t", ("g_a-0", [0]), ("g_b-0", [1])))
        await produce(broker, "t", 1, range(10))
        await until(lambda: a.delivered() == list(range(10)), 60, "ten records at a")
        await a.process.kill()
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await has(b, MINE, 10)
        assert b.records[MINE] == list(range(10))
