"""The loop reads and writes, kazoo's thread connects and pings: what could go wrong between them."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AsyncExitStack

from kernel.waiting import until
from kernel.zookeeper.operations import SessionState
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, opened


async def test_session_survives_a_loop_busy_for_longer_than_its_timeout(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer, timeout_ms=15_000) as session, opened(chroot) as beside:
        await session.create("/mine", b"", ephemeral=True)
        before = session.session_id
        time.sleep(16)  # noqa: ASYNC251  # the fault: nothing else runs on this loop meanwhile
        assert await session.exists("/mine")
        assert await beside.exists("/mine")
        assert session.session_id == before
        assert [e["state"] for e in tracer.of("session_changed") if e["state"] != "connected"] == []


async def test_more_than_the_socket_takes_at_once_is_written_in_order(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True) as session:
            session._bridge._connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            large = b"x" * 50_000
            since = proxy.mark()
            await until(lambda: session._bridge._connection._ours is not None, 30, "kazoo to hand the socket over")
            proxy.read(False)
            writes = [asyncio.ensure_future(session.create(f"/n{number:02}", large)) for number in range(30)]
            await until(lambda: session._bridge._connection._unsent, 60, "the socket to be full")
            proxy.read(True)
            await asyncio.gather(*writes)
            made = [op.path for op in proxy.operations(since) if op.op == "create"]
            assert made == [f"/n{number:02}" for number in range(30)]
            assert (await session.get("/n29"))[0] == large
            assert not session._bridge._connection._unsent


async def test_requests_of_one_turn_are_answered_in_order_across_many_sessions(chroot):
    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(opened(chroot)) for _ in range(5)]
        await sessions[0].create("/n", b"")
        answered: list[tuple[int, int]] = []

        async def ask(who: int, number: int) -> None:
            await sessions[who].get("/n")
            answered.append((who, number))

        await asyncio.gather(*(ask(who, number) for number in range(100) for who in range(5)))
        for who in range(5):
            assert [number for asked, number in answered if asked == who] == list(range(100))


async def test_disconnection_amid_many_responses_loses_none_with_retries(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True) as session:
            await session.create("/n", b"data")
            pause = proxy.pause_at(lambda op: op.op == "getData", at_reply=True)
            reads = [asyncio.ensure_future(session.get("/n")) for _ in range(200)]
            await pause.reached()
            proxy.cut()
            await become(session, SessionState.CONNECTED)
            assert {data for data, _ in await asyncio.gather(*reads)} == {b"data"}


async def test_session_is_closed_while_requests_are_in_flight(chroot):
    async def gone(session) -> bool:
        return await session.exists("/mine") is None

    async with opened(chroot) as beside:
        async with opened(chroot) as session:
            await session.create("/mine", b"", ephemeral=True)
            reads = [asyncio.ensure_future(session.get("/mine")) for _ in range(300)]
            await asyncio.wait(reads[:1])
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert len(outcomes) == 300
        await until(lambda: gone(beside), 60, "the ephemeral node to be gone")
