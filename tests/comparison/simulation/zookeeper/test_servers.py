"""Modelled servers on sockets: the real client, the real `end_session` and the real monitor use them as they are."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kazoo.protocol.serialization import Connect

from comparison.simulation.zookeeper.frames import FRAME_MAX
from comparison.simulation.zookeeper.servers import SimulatedZooKeeper
from kernel.waiting import until
from kernel.zookeeper import errors
from kernel.zookeeper.counters import four_letter, read_counters
from kernel.zookeeper.end_session import SessionCredentials, end_session
from kernel.zookeeper.operations import CheckVersion, Create, SetData
from tests.support.zookeeper.sessions import Watched, gone, opened

CONNECT = Connect(0, 0, 10_000, 0, bytes(16), False).serialize()


@asynccontextmanager
async def started(servers: int = 1, delay_s: float = 0.001) -> AsyncIterator[SimulatedZooKeeper]:
    zookeeper = SimulatedZooKeeper(lambda _, __: delay_s, lambda: int(time.time() * 1000), servers=servers)
    await zookeeper.start()
    try:
        await until(lambda: all(server.mode for server in zookeeper.servers), 60, "the servers to serve")
        yield zookeeper
    finally:
        zookeeper.stop()


async def test_session_of_ours_works_on_a_modelled_server() -> None:
    async with started() as zookeeper, opened(zookeeper.connect_string) as session:
        watched = Watched()
        assert await session.exists("/a", watch=watched) is None
        await session.create("/a/b", b"data", makepath=True)
        assert (await session.get("/a/b"))[0] == b"data"
        assert await session.create_numbered("/a/n-") == "/a/n-0000000001"
        assert await session.children("/a") == ["b", "n-0000000001"]
        await session.transaction(CheckVersion("/a", 0), Create("/c", None), SetData("/a/b", b"", 0))
        with pytest.raises(errors.BadVersion, match="/a/b"):
            await session.transaction(Create("/d"), SetData("/a/b", b"", 0))
        assert await session.exists("/d") is None
        assert [fired.path for fired in await watched.wait()] == ["/a"]


async def test_session_is_ended_by_its_credentials() -> None:
    async with (
        started(3) as zookeeper,
        opened(zookeeper.connect_string) as session,
        opened(zookeeper.connect_string) as other,
    ):
        await session.create("/e", b"", ephemeral=True)
        first = session.session_id
        credentials = SessionCredentials(*session.credentials)
        assert await end_session(zookeeper.connect_string, credentials, timeout_s=30)
        await gone(other, "/e")
        await until(lambda: session.session_id != first, 30, "a new session")


async def test_session_survives_the_end_of_the_leader_and_its_return() -> None:
    async with started(3) as zookeeper, opened(zookeeper.connect_string) as session:
        await session.create("/e", b"", ephemeral=True)
        first, leader = session.session_id, zookeeper.leader
        assert leader is not None
        leader.kill()
        await until(lambda: zookeeper.leader not in (None, leader), 60, "another leader")
        await until(lambda: session.connected, 60, "the session to be connected")
        assert (await session.set("/e", b"x")).ephemeral_owner == first == session.session_id
        await leader.start()
        await until(lambda: leader.mode == "follower", 60, "the old leader to follow")
        async with opened(leader.address) as other:
            assert (await other.get("/e"))[0] == b"x"


async def test_follower_lags_by_the_delay_of_its_link_and_sync_waits_for_it() -> None:
    async with started(3, delay_s=0.05) as zookeeper:
        leader = zookeeper.leader
        assert leader is not None
        follower = next(server for server in zookeeper.servers if server is not leader)
        async with opened(leader.address) as writer, opened(follower.address) as reader:
            zookeeper.peers.cut(leader.number, follower.number)
            await writer.create("/a")
            assert await reader.exists("/a") is None
            synced = asyncio.create_task(reader.sync("/"))
            zookeeper.peers.heal()
            await synced
            assert await reader.exists("/a") is not None


async def test_monitors_read_the_counters_that_they_know() -> None:
    async with started() as zookeeper, opened(zookeeper.connect_string) as session:
        await session.create("/a")
        await session.get("/a", watch=Watched())
        host, port = "127.0.0.1", zookeeper.servers[0].port
        counters = await asyncio.to_thread(read_counters, host, port)
        assert (counters.mode, counters.per_namespace, counters.watch_count) == ("standalone", {"a": (1, 1)}, 1)
        assert await asyncio.to_thread(four_letter, host, port, "ruok") == "imok"


async def test_counters_of_a_restarted_server_begin_again_but_for_the_writes_in_its_log() -> None:
    async with started() as zookeeper, opened(zookeeper.connect_string) as session:
        await session.create("/a")
        await session.get("/a")
        (server,) = zookeeper.servers
        server.kill()
        await server.start()
        counters = await asyncio.to_thread(read_counters, "127.0.0.1", server.port)
        assert counters.per_namespace == {"a": (0, 1)}


@pytest.mark.parametrize(
    "frames",
    [
        [b"\0\0"],  # no whole Connect
        [CONNECT, struct.pack(">ii", 1, 99)],  # an unknown request
        [CONNECT, struct.pack(">iii", 1, 4, 50) + b"/too-short"],
        [CONNECT, struct.pack(">iii", 1, 4, 1) + b"\xff"],
        [CONNECT, bytes(FRAME_MAX + 1)],
    ],
    ids=["connect", "type", "length", "encoding", "size"],
)
async def test_malformed_frame_ends_its_connection_alone(frames: list[bytes]) -> None:
    async with started() as zookeeper, opened(zookeeper.connect_string) as session:
        reader, writer = await asyncio.open_connection("127.0.0.1", zookeeper.servers[0].port)
        for frame in frames:
            writer.write(struct.pack(">i", len(frame)) + frame)
        async with asyncio.timeout(60):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1 << 20)
        writer.close()
        assert await session.create("/a") == "/a"
