"""Leaving a group: the order of its steps, what ZooKeeper receives, and from where close() can be called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext
from typing import Any

import pytest

from kernel.consumer import SilentListener
from kernel.errors import RebalanceFailed, UserError
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import SessionClosed
from tests.support.consumers.weak_members import VISITOR
from tests.support.consumers.wildcards import add_broker, add_topic, operations, rebalanced, wildcard
from tests.support.consumers.zookeeper import Member, member, new_member, owners, produce, running_broker
from tests.support.zookeeper.proxy import Op
from tests.support.zookeeper.sessions import opened
from zkconsumer.znodes.filters import TopicFilter


def commits(op: Op) -> bool:
    return op.op == "setData" and paths.parse_offset(op.path) is not None


async def prepare(connect_string: str, partitions: int = 2) -> None:
    """A topic and a broker, for groups that own but do not read."""
    async with opened(connect_string) as session:
        await add_broker(session)
        await add_topic(session, "t", partitions)


async def test_leave_commits_and_ends_the_session_with_all_its_nodes_in_one_request(chroot, tmp_path, link):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker, opened(chroot) as session:
        await produce(broker, "t", 2, range(3))
        async with member(link.connect_string, "c1", {"t": 1}) as c1:
            await c1.read_until(6)
            assert len(await owners(session)) == 2
            mark, since = link.mark(), len(c1.tracer.events)
            await asyncio.gather(c1.consumer.close(), c1.consumer.close())
            await c1.consumer.close()
            assert await owners(session) == {}
            assert await session.exists(paths.member_id("g", "g_c1")) is None
            passed = [op for op in link.operations(mark) if not op.op.startswith("get")]
            assert passed[-1].op == "closeSession"
            assert {op.op for op in passed[:-1]} == {"setData", "create"}
            assert {paths.name(paths.parent(paths.parent(op.path))) for op in passed[:-1] if commits(op)} == {"offsets"}
            # Delivery ends, then positions are written, then the session ends.
            kinds = [e["kind"] for e in c1.tracer.events[since:] if e["kind"] != "zk_op"]
            closing = [k for k in kinds if k in ("partitions_revoked", "commit_answered", "member_closed")]
            assert closing == ["partitions_revoked", "commit_answered", "commit_answered", "member_closed"]
            assert kinds.index("session_changed") < kinds.index("member_closed")
            assert kinds.count("member_closed") == 1
            assert (await session.get(paths.offset("g", "t", 0)))[0] == b"3"


@pytest.mark.parametrize("by_pattern", [True, False])
async def test_closing_wildcard_member_stops_watching_first_and_a_static_one_last(chroot, tmp_path, by_pattern, link):
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as session:
        await produce(broker, "t", 1, range(3))
        joining = (
            wildcard(link.connect_string, "c1", TopicFilter.white("t"))
            if by_pattern
            else member(link.connect_string, "c1", {"t": 1})
        )
        async with joining as c1:
            await c1.read_until(3)
            pause = link.pause_at(commits)
            closing = asyncio.create_task(c1.consumer.close())
            await pause.reached()
            since = len(c1.tracer.events)
            # Nothing on this connection passes the paused request, so its answers wait with it.
            await session.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
            await until(lambda: "zk_notified" in [e["kind"] for e in c1.tracer.events[since:]], 60, "the event")
            pause.release()
            await closing
            answered = [op for op in link.operations() if op.path == paths.member_ids("g") and op.op == "exists"]
            assert len(answered) == (1 if by_pattern else 2)


async def test_a_close_ends_a_registration_that_waits_for_another_session(chroot):
    await prepare(chroot)
    async with opened(chroot) as other:
        path = paths.member_id("g", "g_c1")
        await other.create(path, VISITOR, ephemeral=True, makepath=True)
        c1 = new_member(chroot, "c1", zookeeper_session_timeout_ms="30000")
        await c1.consumer.start()
        joining = asyncio.create_task(c1.consumer.subscribe({"t": 1}))
        await until(lambda: len(operations(c1)) >= 3, 60, "the conflict of ids")
        await asyncio.wait_for(c1.consumer.close(), 15)  # otherwise it would wait for a session timeout
        with pytest.raises(SessionClosed, match="before it was registered"):
            await joining
        assert await other.exists(path) is not None
        assert len(c1.tracer.of("member_closed")) == 1


async def test_a_listener_may_close_the_consumer_from_within_a_rebalance(chroot):
    class Leaving(SilentListener):
        async def on_assigned(self, stream, partitions):
            await c1.consumer.close()

    c1 = new_member(chroot, "c1")
    await prepare(chroot)
    await c1.consumer.start()
    await asyncio.wait_for(c1.consumer.subscribe({"t": 1}, Leaving()), 60)
    await asyncio.wait_for(c1.consumer.close(), 60)
    async with opened(chroot) as session:
        assert await owners(session) == {}
        assert await session.children(paths.member_ids("g")) == []
    assert len(c1.tracer.of("member_closed")) == 1


def closed_at(who: Member, moment: dict[str, object]) -> asyncio.Future[None]:
    """Close the member at a trace event, before anything that follows; the future is done when it is closed."""
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    emit = who.tracer.emit

    async def close() -> None:
        await who.consumer.close()
        closed.set_result(None)

    closing: list[asyncio.Task[None]] = []

    def emit_and_close(kind: str, **fields: Any) -> None:
        emit(kind, **fields)
        if not closing and moment.items() <= {"kind": kind, **fields}.items():
            closing.append(asyncio.create_task(close()))

    who.tracer.emit = emit_and_close
    return closed


@pytest.mark.parametrize(("retries_while_closing", "attempts"), [("true", 4), ("false", 1)])
async def test_a_close_during_a_backoff_waits_for_all_attempts_or_for_this_one(chroot, retries_while_closing, attempts):
    """0.8.2.2 checks its flag only in R9 and then reports the failure, 1.1 before every attempt, without an error."""
    await prepare(chroot)
    async with opened(chroot) as ghost:
        await ghost.create(paths.owner("g", "t", 0), b"g_ghost-0", ephemeral=True, makepath=True)
        c1 = new_member(
            chroot,
            "c1",
            rebalance_max_retries="4",
            rebalance_backoff_ms="200",
            rebalance_retries_while_closing=retries_while_closing,
        )
        closing = closed_at(c1, {"kind": "phase_entered", "phase": "backoff", "attempt": 1})
        await c1.consumer.start()
        joining = asyncio.create_task(c1.consumer.subscribe({"t": 1}))
        await asyncio.wait_for(closing, 15)
        with pytest.raises(RebalanceFailed) if attempts > 1 else nullcontext():
            await joining
        ended = [e["outcome"] for e in c1.tracer.of("attempt_ended")]
        assert len(ended) == attempts
        assert await owners(ghost) != {}
        assert await ghost.children(paths.member_ids("g")) == []


async def test_many_simultaneous_leaves_leave_nothing_behind(chroot):
    await prepare(chroot, partitions=12)
    members = [new_member(chroot, f"c{number}") for number in range(6)]
    await asyncio.gather(*(who.consumer.start() for who in members))
    await asyncio.gather(*(who.consumer.subscribe({"t": 1}) for who in members))
    await asyncio.wait_for(asyncio.gather(*(who.consumer.close() for who in members)), 15)
    async with opened(chroot) as session:
        assert await owners(session) == {}
        assert await session.children(paths.member_ids("g")) == []
    assert [len(who.tracer.of("member_closed")) for who in members] == [1] * 6


async def test_a_close_while_a_new_topics_rebalance_runs_ends_it(chroot):
    await prepare(chroot)
    async with opened(chroot) as session:
        async with wildcard(chroot, "w", TopicFilter.white(".*"), rebalance_backoff_ms="100") as w:
            await rebalanced(w, 1)
            await session.create(paths.owner("g", "u", 0), b"g_ghost-0", ephemeral=True, makepath=True)
            await add_topic(session, "u", 1)
            await until(lambda: "topics" in [e["trigger"] for e in w.tracer.of("rebalance_started")], 60, "the event")
            await asyncio.wait_for(w.consumer.close(), 60)
        assert set(await owners(session)) == {("u", 0)}


@pytest.mark.parametrize("when", ["before the start", "during the start", "before the subscription"])
async def test_closed_consumer_starts_nothing_and_leaves_nothing(chroot, when):
    consumer = new_member(chroot, "c1").consumer
    if when == "before the start":
        await consumer.close()
        begun: Awaitable[None] = consumer.start()
    elif when == "during the start":
        begun = asyncio.ensure_future(consumer.start())
        await asyncio.sleep(0)  # it has begun to connect
        await consumer.close()
    else:
        await consumer.start()
        await consumer.close()
        begun = consumer.subscribe({"t": 1})
    with pytest.raises(UserError, match=r"closed. Create another one"):
        await begun
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert consumer.member_ids == ()
