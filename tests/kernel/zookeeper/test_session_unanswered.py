"""A server that accepts a connection and never answers, as ZooKeeper 3.9 does in the middle of its start."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kernel.waiting import until
from kernel.zookeeper.connection import connect_timeout_s
from kernel.zookeeper.end_session import SessionCredentials, end_session
from kernel.zookeeper.operations import SessionState
from tests.kernel.zookeeper.scripted_zookeeper import ScriptedZooKeeper
from tests.support.wire.servers import serving
from tests.support.zookeeper.sessions import become, opened

#: A third of it is waited for a greeting at first, then two thirds.
SLOW_SESSION_S = 6


class SilentOnce:
    """Between one client and a server; the client's second connection is accepted, and nothing is sent on it."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._first: asyncio.StreamWriter | None = None
        self.connections = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.closing(writer):
            if self.connections == 2:
                with contextlib.suppress(ConnectionError):
                    await reader.read()  # until the client has waited long enough
                return
            self._first = self._first or writer
            there, back = await asyncio.open_connection(*self._server)
            with contextlib.closing(back):
                await asyncio.gather(_pass(reader, back), _pass(there, writer))

    def cut(self) -> None:
        assert self._first is not None
        self._first.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


async def test_connection_accepted_and_never_answered_does_not_cost_the_session(chroot):
    address, _, folder = chroot.partition("/")
    host, _, port = address.partition(":")
    proxy = SilentOnce(host, int(port))
    async with serving(proxy.accept) as through_port:
        through = f"127.0.0.1:{through_port}/{folder}"
        async with opened(through, timeout_ms=20_000) as session:
            before = session.session_id
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            await until(lambda: proxy.connections > 2, 60, "another connection while the session lives")
            await session.wait_connected()
            assert session.session_id == before


@pytest.mark.parametrize(
    ("session_s", "servers", "within_s"),
    [
        (30, 1, [10, 20, 30, 30]),
        (9, 1, [3, 6, 9, 9]),
        (6, 1, [2, 4, 6, 6]),
        (1, 1, [1, 2, 2, 2]),
        (6, 2, [2, 2, 4, 4, 6]),
        (30, 3, [10, 10, 10, 20]),
        (3, 3, [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]),
    ],
)
def test_connect_timeout_is_a_third_of_the_session_timeout_and_grows_with_each_round_that_goes_unanswered(
    session_s, servers, within_s
):
    assert [connect_timeout_s(session_s, servers, unanswered) for unanswered in range(len(within_s))] == within_s


async def test_server_that_takes_longer_than_the_connect_timeout_for_a_session_is_not_given_up_for_ever():
    lag_s = connect_timeout_s(SLOW_SESSION_S, 1, 0) + 0.5
    async with ScriptedZooKeeper(lag_s=lag_s) as server, opened(server.address, timeout_ms=SLOW_SESSION_S * 1000):
        assert server.connections > 1


async def test_server_that_takes_longer_to_end_a_session_than_is_waited_at_first_ends_it():
    async with ScriptedZooKeeper(lag_s=2.5) as server:
        assert await end_session(server.address, SessionCredentials(7, b"p" * 16), timeout_s=60)
        assert server.connections > 1
