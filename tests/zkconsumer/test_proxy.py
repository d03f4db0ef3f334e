"""The proxy of tests/support/zookeeper/proxy.py: what it reads from a session's traffic, and how it interferes."""

from __future__ import annotations

import asyncio

import pytest

from kernel.waiting import until
from kernel.zookeeper import operations
from kernel.zookeeper.errors import NodeExists
from kernel.zookeeper.operations import SessionState, WatchEvent
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import Watched, become, expire, opened

ID = "/consumers/g/ids/g_c1"


async def test_requests_results_and_notifications_are_read_without_the_chroot(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        watched = Watched()
        async with opened(proxy.connect_string) as session:
            await session.create(ID, b"{}", ephemeral=True, makepath=True)
            with pytest.raises(NodeExists):
                await session.create(ID, b"")
            await session.children("/consumers/g/ids", watch=watched)
            await session.exists("/a")
            since = proxy.mark()
            await session.create("/consumers/g/ids/g_c2", None)
            await watched.wait()
            await session.transaction(operations.CheckVersion("/consumers", 0), operations.Create("/b", b"x"))
            assert [event.path for event in proxy.events(since)] == ["/consumers/g/ids"]
            assert proxy.operations(since)[-1].request.parts[1].data == b"x"
            session_id = session.session_id
        seen = proxy.operations()
        assert [str(op) for op in seen if op.op != "create"] == [
            "connect  ok",
            "getChildren /consumers/g/ids ok",
            "exists /a NoNode",
            "multi /consumers ok",
            "closeSession  ok",
        ]
        made = [(op.path, op.data, op.ephemeral) for op in seen if op.op == "create" and op.result == "ok"]
        assert made[-2:] == [(ID, b"{}", True), ("/consumers/g/ids/g_c2", None, False)]
        assert [op.path for op in seen if op.result == "NodeExists"] == [ID]
        assert [op.path for op in seen if op.watch] == ["/consumers/g/ids"]
        assert {(op.connection, op.session) for op in seen} == {("g_c1", session_id)}


async def test_pause_holds_one_request_and_those_behind_it(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string) as session, opened(chroot) as beside:
            pauses = [proxy.pause_at(lambda op: op.op == "create") for _ in range(2)]
            first = asyncio.ensure_future(session.create("/a", b""))
            second = asyncio.ensure_future(session.create("/b", b""))
            assert (await pauses[0].reached()).path == "/a"
            assert await beside.exists("/a") is None
            pauses[0].release()
            await first
            assert (await pauses[1].reached()).path == "/b"
            assert not second.done()
            pauses[1].release()
            await second
            assert pauses[1].op is proxy.operations()[-1]
            assert pauses[1].op.result == "ok"

            answer = proxy.pause_at(lambda op: op.op == "create", at_reply=True)
            third = asyncio.ensure_future(session.create("/c", b""))
            await answer.reached()
            assert await beside.exists("/c")
            assert not third.done()
            answer.release()
            await third


async def test_a_cut_connection_comes_back_unless_it_is_refused(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string) as session:
            await session.create(ID, b"{}", ephemeral=True, makepath=True)
            watched = Watched()
            await session.children("/consumers/g/ids", watch=watched)
            proxy.refuse(True, "g_c1")
            proxy.cut("g_c1")
            await become(session, SessionState.SUSPENDED)
            async with opened(proxy.connect_string):
                pass  # other connections are accepted
            proxy.refuse(False, "g_c1")
            await become(session, SessionState.CONNECTED)
            assert watched.events == [WatchEvent.NONE]
            came_back = [op for op in proxy.operations(connection="g_c1") if op.op == "reconnect"]
            assert [op.result for op in came_back] == ["ok"]
            proxy.refuse()
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            proxy.refuse(False)
            await become(session, SessionState.CONNECTED)
            await expire(session)
            await until(lambda: proxy.operations()[-1].op == "connect", 60, "a new session")
            assert [op.result for op in proxy.operations() if op.op == "reconnect"][-1] == "SessionExpired"


async def test_held_bytes_are_delivered_later_in_order(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, ListTracer()) as session, opened(chroot) as beside:
            since = proxy.mark()
            proxy.hold()
            writes = [asyncio.ensure_future(session.create(f"/held-{n}", b"")) for n in range(3)]
            await asyncio.to_thread(lambda: None)
            assert await beside.exists("/held-0") is None
            assert proxy.operations(since) == []
            proxy.hold(False)
            await asyncio.gather(*writes)
            assert [op.path for op in proxy.operations(since)] == ["/held-0", "/held-1", "/held-2"]
            await proxy.quiet(0.05)
