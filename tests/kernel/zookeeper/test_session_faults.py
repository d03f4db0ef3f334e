"""Watches, states and retries on a real server that is stopped, killed, and expires sessions."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import re
import threading

import pytest

from kernel.waiting import until, wait_until
from kernel.zookeeper import errors
from kernel.zookeeper.counters import four_letter, read_counters
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.operations import SessionState, WatchEvent, WatchFired
from kernel.zookeeper.servers import Limits
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import Watched, become, expire, opened


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server that these tests may stop and kill; it is restarted after each test."""
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("own"), limits=Limits(tick_ms=100)) as zookeeper:
        yield zookeeper


def states(session):
    taken = []
    while not session.states.empty():
        taken.append(session.states.get_nowait().state.value)
    return taken


async def test_a_watch_fires_once_with_the_zxid_of_the_change_and_is_traced_once(chroot):
    tracer = ListTracer()
    async with opened(chroot) as other, opened(chroot, tracer) as session:
        await session.create("/ids")
        watched = Watched()
        # As 0.8 does: both reads set a watch, so the children are watched twice; one notification is one call.
        await session.exists("/ids", watch=watched)
        await session.children("/ids", watch=watched)
        await session.children("/ids", watch=watched)
        await other.create("/ids/a")
        await other.create("/ids/b")
        (fired,) = await watched.wait()
        assert fired == WatchFired("/ids", WatchEvent.CHILDREN, (await session.exists("/ids/a")).czxid)
        await other.set("/ids", b"data")
        await watched.wait(2)
        await other.delete("/ids/a")
        await other.delete("/ids/b")
        await other.delete("/ids")
        await session.sync("/")
        assert watched.events == [WatchEvent.CHILDREN, WatchEvent.CHANGED]
    assert [(event["path"], event["event"]) for event in tracer.of("zk_notified")] == [
        ("/ids", "children"),
        ("/ids", "changed"),
    ]


async def test_deletion_calls_a_callback_of_both_kinds_once_and_exists_notices_a_creation(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        created, deleted = Watched(), Watched()
        assert await session.exists("/n", watch=created) is None
        await session.create("/n")
        await created.wait()
        await session.get("/n", watch=deleted)
        await session.children("/n", watch=deleted)
        await session.delete("/n")
        await session.sync("/")
        assert (created.events, deleted.events) == ([WatchEvent.CREATED], [WatchEvent.DELETED])
        with pytest.raises(errors.NoNode):
            await session.get("/n", watch=deleted)  # a failed read sets no watch
        await session.create("/n")
        await session.sync("/")
        assert deleted.events == [WatchEvent.DELETED]
    assert len(tracer.of("zk_notified")) == 2


async def test_what_a_session_watches_is_what_the_server_keeps(own):
    async with opened(own.connect_string) as session:
        await session.children("/", watch=Watched())
        assert await session.exists("/none", watch=Watched()) is None
        assert read_counters("127.0.0.1", own.servers[0].client_port, timeout_s=30).watch_count == 2


async def test_traced_notifications_equal_the_watches_that_the_server_fired(own):
    def fired():
        counted = four_letter("127.0.0.1", own.servers[0].client_port, "mntr", timeout_s=30)
        found = re.findall(r"^zk_sum_node_(created|changed|children|deleted)_watch_count\t(\d+)", counted, re.MULTILINE)
        return {event: int(number) for event, number in found}

    before = fired()
    async with contextlib.AsyncExitStack() as stack:
        tracers = [ListTracer() for _ in range(7)]
        sessions = [await stack.enter_async_context(opened(own.connect_string, tracer)) for tracer in tracers]
        await sessions[0].create("/group")
        for session in sessions:
            await session.children("/group", watch=Watched())
            await session.exists("/group", watch=Watched())
            await session.exists("/later", watch=Watched())
        await sessions[0].create("/group/a")
        await sessions[0].set("/group", b"")
        await sessions[0].create("/later")
        for session in sessions[:3]:
            await session.get("/later", watch=Watched())
        await sessions[0].delete("/later")
        for session in sessions:
            await session.sync("/")
    traced = collections.Counter(event["event"] for tracer in tracers for event in tracer.of("zk_notified"))
    counted = {event: number - before[event] for event, number in fired().items()}
    assert traced == counted == {"children": 7, "changed": 7, "created": 7, "deleted": 3}


async def test_disconnection_removes_watches_with_none_events_and_keeps_the_session(own):
    tracer = ListTracer()
    async with opened(own.connect_string, tracer, timeout_ms=15_000) as session:
        await session.create("/e", ephemeral=True)
        watched = Watched()
        await session.children("/", watch=watched)
        await session.get("/e", watch=watched)
        old = session.session_id
        await asyncio.to_thread(own.servers[0].kill)
        await become(session, SessionState.SUSPENDED)
        await watched.wait(2)
        assert sorted(fired[:2] for fired in watched.fired) == [("/", WatchEvent.NONE), ("/e", WatchEvent.NONE)]
        pending = asyncio.ensure_future(session.exists("/e"))  # waits for the connection
        await asyncio.to_thread(own.servers[0].restart)
        assert (await pending).ephemeral_owner == old
        assert (session.session_id, session.connected) == (old, True)
        assert states(session) == ["connected", "suspended", "connected"]
        await session.create("/x")
        await session.delete("/x")
        assert len(watched.fired) == 2  # kazoo has forgotten them, and so has the server
    assert tracer.of("zk_notified") == []
    assert [event["state"] for event in tracer.of("session_changed")] == [
        "connected",
        "suspended",
        "connected",
        "closed",
    ]


async def test_an_expired_session_is_lost_and_the_next_is_a_new_one_without_its_ephemerals(chroot):
    async with opened(chroot) as session:
        await session.create("/e", ephemeral=True)
        watched = Watched()
        await session.exists("/e", watch=watched)
        old = session.session_id
        await expire(session)
        await become(session, SessionState.CONNECTED)
        assert session.session_id != old
        changes = [session.states.get_nowait() for _ in range(session.states.qsize())]
        assert [change.state.value for change in changes if change.new_session] == ["connected", "connected"]
        assert [change.state for change in changes][-2:] == [SessionState.LOST, SessionState.CONNECTED]
        assert await session.exists("/e") is None
        # The deletion of the session's znode may be notified before the connection breaks.
        assert len(watched.fired) == 1


async def test_without_retries_a_broken_connection_fails_sent_and_waiting_operations(own):
    tracer = ListTracer()
    session = await ZooKeeperSession.open(
        own.connect_string, session_timeout_ms=600, tracer=tracer, name="s", connection_timeout_ms=10_000
    )
    session._connection_timeout_s = 0.5  # for operations only: opening a session may take longer
    async with session:
        own.servers[0].pause()
        try:
            # kazoo gives up after two thirds of the session; if it is slow to, the operation's own time ends first.
            with pytest.raises((errors.ConnectionLost, errors.Unanswered)):
                await session.create("/never-0")
            await become(session, SessionState.SUSPENDED)
            with pytest.raises(errors.ConnectionLost, match=r"no ZooKeeper at .* for 0\.5 s"):
                await session.create("/never-1")
        finally:
            own.servers[0].resume()
    sent, waiting = tracer.of("zk_op")
    assert (sent["path"], sent["ok"]) == ("/never-0", False)
    assert sent["error"] in {"ConnectionLost", "Unanswered"}
    assert (waiting["path"], waiting["ok"], waiting["error"]) == ("/never-1", False, "ConnectionLost")


async def test_with_retries_an_operation_outlives_the_server_and_each_try_is_traced(own):
    tracer = ListTracer()
    async with opened(own.connect_string, tracer, timeout_ms=3000, retry_forever=True) as session:
        own.servers[0].pause()
        pending = asyncio.ensure_future(session.create("/late", ephemeral=True))
        await become(session, SessionState.SUSPENDED)
        await asyncio.sleep(0)
        assert not pending.done()
        await asyncio.to_thread(own.servers[0].kill)
        await asyncio.to_thread(own.servers[0].restart)
        assert await pending == "/late"
    tries = [(op["ok"], op["error"]) for op in tracer.of("zk_op")]
    assert tries[-1] == (True, None)
    assert tries[:-1]
    assert set(tries[:-1]) <= {(False, "ConnectionLost"), (False, "SessionExpired")}


async def test_with_retries_an_operation_begins_in_one_session_and_ends_in_the_next(chroot):
    async with opened(chroot, retry_forever=True) as session:
        old = session.session_id
        await session.create("/n")
        expiring = asyncio.ensure_future(expire(session))
        writes = 0
        while not expiring.done() or session.session_id == old or not session.connected:
            await session.set("/n", b"x")
            writes += 1
        await expiring
        stat = await session.exists("/n")
        # All of them were done, some perhaps twice, because an operation without a reply is repeated.
        assert writes <= stat.version <= writes + 2


async def test_closing_while_the_server_is_stopped_does_not_hang_and_leaves_no_thread(own):
    before = threading.active_count()
    async with opened(own.connect_string, timeout_ms=3000) as session:
        own.servers[0].pause()
        await become(session, SessionState.SUSPENDED)
        async with asyncio.timeout(20):
            await session.close()
        assert session.state is SessionState.CLOSED
        own.servers[0].resume()
    # asyncio.to_thread keeps one for a while, and kazoo's ends when the server answers again.
    wait_until(lambda: threading.active_count() <= before + 1, 60, "all but one thread to end")


async def test_callback_that_raises_does_not_affect_other_results(chroot):
    def broken(_fired):
        raise ZeroDivisionError

    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    async with opened(chroot) as session:
        watched = Watched()
        await session.children("/", watch=broken)
        await session.children("/", watch=watched)
        await session.create("/n")
        await watched.wait()
        await until(lambda: complaints, 60, "the warning")
