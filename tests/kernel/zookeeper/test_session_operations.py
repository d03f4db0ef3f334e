"""The session's operations on a real server, and the trace compared with the server's counters."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from kernel.errors import Unavailable, UserError
from kernel.waiting import wait_until
from kernel.zookeeper import errors
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.operations import CheckVersion, Create, Delete, SessionState, SetData
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, end_session, expire, opened, successes


def counted(zookeeper, chroot):
    counters = read_counters("127.0.0.1", zookeeper.servers[0].client_port, timeout_s=30)
    return counters.per_namespace.get(chroot.partition("/")[2], (0, 0))


def since(zookeeper, chroot, before):
    now = counted(zookeeper, chroot)
    return now[0] - before[0], now[1] - before[1]


async def test_every_operation_answers_as_zookeeper_does(chroot):
    async with opened(chroot) as session:
        assert await session.create("/a", b"1") == "/a"
        assert await session.exists("/nothing") is None
        data, stat = await session.get("/a")
        assert (data, stat.version, stat.ephemeral_owner) == (b"1", 0, 0)
        assert (await session.set("/a", b"22")).version == 1
        assert await session.create("/a/e", b"", ephemeral=True) == "/a/e"
        assert (await session.exists("/a/e")).ephemeral_owner == session.session_id
        await session.create("/a/d", None)
        assert (await session.get("/a/d"))[0] == b""
        assert await session.children("/a") == ["d", "e"]
        assert await session.children("/") == ["a"]
        await session.sync("/a")
        await session.delete("/a/d")
        with pytest.raises(errors.NodeExists, match="/a"):
            await session.create("/a")
        with pytest.raises(errors.NoNode):
            await session.get("/nothing")
        with pytest.raises(errors.NoNode):
            await session.create("/nothing/below")
        with pytest.raises(errors.NotEmpty):
            await session.delete("/a")
        with pytest.raises(errors.BadVersion):
            await session.set("/a", b"", version=0)
        with pytest.raises(errors.NoChildrenForEphemerals):
            await session.create("/a/e/below")
        with pytest.raises(errors.NodeTooLarge):
            await session.set("/a", b"x" * 2_000_000)


async def test_makepath_creates_parents_only_after_a_no_node_and_sends_nothing_else(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        await session.create("/p/q/r", b"x", makepath=True, step="S")
        await session.create("/p/q/s", b"x", makepath=True, step="S")
        await session.ensure_path("/p/q")
    assert [(op["op"], op["path"], op["error"]) for op in tracer.of("zk_op")] == [
        ("create", "/p/q/r", "NoNode"),
        ("create", "/p/q", "NoNode"),
        ("create", "/p", None),
        ("create", "/p/q", None),
        ("create", "/p/q/r", None),
        ("create", "/p/q/s", None),
        ("create", "/p/q", "NodeExists"),
    ]
    assert {op["step"] for op in tracer.of("zk_op")} == {"S", ""}


@pytest.mark.parametrize("nested", [False, True], ids=["chroot", "chroot of two levels"])
async def test_traced_successes_equal_the_servers_own_counters(zookeeper, chroot, nested):
    tracer = ListTracer()
    async with opened(chroot) as outside:
        if nested:
            await outside.create("/below")
        before = counted(zookeeper, chroot)
        async with opened(chroot + ("/below" if nested else ""), tracer) as session:
            await session.ensure_path("/g/ids")
            await asyncio.gather(*(session.create(f"/g/ids/{n}", b"d") for n in range(30)))
            await asyncio.gather(*(session.get(f"/g/ids/{n}") for n in range(0, 40, 2)), return_exceptions=True)
            await asyncio.gather(*(session.exists(f"/g/ids/{n}") for n in range(25, 35)))
            await session.children("/g/ids")
            await session.sync("/g/ids")
            await session.set("/g/ids/1", b"changed")
            with pytest.raises(errors.BadVersion):
                await session.set("/g/ids/1", b"changed", 0)
            await session.delete("/g/ids/2")
            with pytest.raises(errors.NoNode):
                await session.delete("/g/ids/2")
            assert since(zookeeper, chroot, before) == successes(tracer) == (21, 34)
            assert all(op["latency_ns"] > 0 for op in tracer.of("zk_op"))


async def test_a_transaction_counts_each_part_and_a_closing_session_each_ephemeral(zookeeper, chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        before = counted(zookeeper, chroot)
        await session.transaction(Create("/a", b"1"), Create("/a/b", ephemeral=True), SetData("/a", b"2", 0))
        assert since(zookeeper, chroot, before) == (0, 3)
        await session.transaction(CheckVersion("/a", 1), SetData("/a", b"3", 1))
        assert since(zookeeper, chroot, before) == (0, 4)
        with pytest.raises(errors.BadVersion, match="/a: "):
            await session.transaction(Delete("/a/b"), CheckVersion("/a", 9), Create("/c"))
        assert since(zookeeper, chroot, before) == (0, 4)
        assert [(op["op"], op["ok"], op["error"]) for op in tracer.of("zk_op")] == [
            ("multi", True, None),
            ("multi", True, None),
            ("multi", False, "BadVersion"),
        ]
        assert (await session.get("/a"))[0] == b"3"
    # The read above, and /a/b, as soon as the server has ended the session.
    wait_until(lambda: since(zookeeper, chroot, before) != (1, 4), 30, "the session to end")
    assert since(zookeeper, chroot, before) == (1, 5)


async def test_operations_issued_together_are_sent_in_order_and_may_be_more_than_a_window(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        await session.create("/n")
        stats = await asyncio.gather(*(session.set("/n", b"%d" % n) for n in range(1000)))
        assert [stat.version for stat in stats] == list(range(1, 1001))
        assert (await session.get("/n"))[0] == b"999"
    zxids = [op["zxid"] for op in tracer.of("zk_op") if op["op"] == "setData"]
    assert zxids == sorted(set(zxids))  # with gaps where other sessions wrote
    assert len(zxids) == 1000


async def test_a_cancelled_operation_is_traced_when_it_was_sent_and_never_sent_when_it_was_not(zookeeper, chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        await session.create("/n")
        before = counted(zookeeper, chroot)
        tasks = [asyncio.ensure_future(session.set("/n", b"%d" % n)) for n in range(200)]
        await asyncio.sleep(0)  # all are issued, a window of them is sent, none is answered
        for task in tasks:
            task.cancel()
        await session.get("/n")
        reads, writes = since(zookeeper, chroot, before)
    traced_reads, traced_writes = successes(tracer)
    assert (reads, writes) == (traced_reads, traced_writes - 1)  # less the create before
    assert 0 < writes < 200


async def test_member_step_and_cause_are_on_every_operation(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        session.member = "g_c1"
        await session.children("/", step="R4", cause="zxid:17")
    (op,) = tracer.of("zk_op")
    assert (op["member"], op["step"], op["cause"], op["op"], op["ok"]) == ("g_c1", "R4", "zxid:17", "getChildren", True)


def open_briefly(connect_string, *, session_timeout_ms=1000):
    async def conversation():
        async with await ZooKeeperSession.open(
            connect_string,
            session_timeout_ms=session_timeout_ms,
            tracer=ListTracer(),
            name="s",
            connection_timeout_ms=300,
        ):
            pass

    asyncio.run(conversation())


def test_a_zookeeper_that_is_down_is_unavailable_within_the_timeout(unused_port):
    with pytest.raises(Unavailable, match=f"no ZooKeeper at 127.0.0.1:{unused_port}.*300 ms"):
        open_briefly(f"127.0.0.1:{unused_port}")


def test_a_host_that_never_takes_the_connection_is_unavailable_too():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())  # fills the backlog: later ones are not even refused
        started = time.monotonic()
        with pytest.raises(Unavailable):
            open_briefly(f"127.0.0.1:{full.getsockname()[1]}", session_timeout_ms=60_000)
        assert time.monotonic() - started < 30


def test_malformed_connect_string_is_a_user_error():
    with pytest.raises(UserError, match="not a ZooKeeper connect string"):
        open_briefly("localhost:many")


async def test_timeout_that_zookeeper_does_not_grant_is_reported(chroot, caplog):
    async with opened(chroot, timeout_ms=100_000) as session:
        assert (session.requested_timeout_ms, session.negotiated_timeout_ms) == (100_000, 60_000)
    assert "requested a timeout of 100000 ms, ZooKeeper granted 60000 ms" in caplog.text


async def test_closed_session_refuses_operations_and_may_be_closed_again(chroot):
    async with opened(chroot) as session:
        await session.close()
        await session.close()
        with pytest.raises(errors.SessionClosed):
            await session.get("/")


# -- operations for one session only: done in it, or not at all, however late its end is noticed -----------------------


async def test_an_operation_for_one_session_is_done_while_that_session_lives(chroot):
    async with opened(chroot, retry_forever=True) as session:
        await session.create("/n", b"1", only_in=session.session_id)
        await session.set("/n", b"2", only_in=session.session_id)
        assert (await session.get("/n"))[0] == b"2"


@pytest.mark.parametrize("bound", [True, False])
async def test_waiting_operation_goes_into_a_new_session_only_if_allowed(chroot, bound):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True) as session, opened(chroot) as direct:
            await session.create("/n", b"before")
            old = session.session_id
            proxy.refuse(True)
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            waiting = asyncio.ensure_future(session.set("/n", b"stale", only_in=old if bound else 0))
            await asyncio.to_thread(end_session, chroot, session.credentials)
            proxy.refuse(False)
            if bound:
                with pytest.raises(errors.SessionExpired):
                    await waiting
            else:
                await waiting
            await session.wait_connected()
            assert session.session_id != old
            assert (await direct.get("/n"))[0] == (b"before" if bound else b"stale")


async def test_operations_of_an_ended_session_are_not_sent_in_the_next_one(chroot):
    async with opened(chroot, retry_forever=True) as session, opened(chroot) as direct:
        await session.create("/n", b"before")
        old = session.session_id
        ender = threading.Thread(target=end_session, args=(chroot, session.credentials))
        ender.start()
        # Blocks the loop on purpose, until kazoo's thread is in the next session.
        wait_until(lambda: session.credentials[0] not in (0, old), 60, "a new session")
        assert (session.session_id, session.state) == (old, SessionState.CONNECTED)
        with pytest.raises(errors.SessionExpired):
            await session.set("/n", b"stale", only_in=old)
        ender.join()
        assert (await direct.get("/n"))[0] == b"before"


@pytest.mark.parametrize("operation", ["create", "set"])
async def test_operation_for_an_ended_session_is_refused_without_a_request(chroot, operation):
    async with opened(chroot, retry_forever=True) as session:
        old = session.session_id
        await expire(session)
        await session.wait_connected()
        with pytest.raises(errors.SessionExpired, match="is over"):
            await getattr(session, operation)("/m", b"", only_in=old)
        assert await session.exists("/m") is None
