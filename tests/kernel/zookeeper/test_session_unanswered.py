"""A server that accepts a connection and never answers, as ZooKeeper 3.9 does in the middle of its start."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kernel.waiting import until
from kernel.zookeeper.connection import connect_timeout_s
from kernel.zookeeper.operations import SessionState
from tests.support.zookeeper.sessions import become, opened


class SilentOnce:
    """Between one client and a server; the client's second connection is accepted, and nothing is sent on it."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._first: asyncio.StreamWriter | None = None
        self.connections = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.connections == 2:
            with contextlib.suppress(ConnectionError):
                await reader.read()  # until the client has waited long enough
            writer.close()
            return
        self._first = self._first or writer
        there, back = await asyncio.open_connection(*self._server)
        await asyncio.gather(_pass(reader, back), _pass(there, writer))

    def cut(self) -> None:
        assert self._first is not None
        self._first.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_connection_accepted_and_never_answered_does_not_cost_the_session(chroot):
    address, _, folder = chroot.partition("/")
    host, _, port = address.partition(":")
    proxy = SilentOnce(host, int(port))
    async with await asyncio.start_server(proxy.accept, "127.0.0.1", 0) as server:
        through = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/{folder}"
        async with opened(through, timeout_ms=20_000) as session:
            before = session.session_id
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            await until(lambda: proxy.connections > 2, 60, "another connection while the session lives")
            await session.wait_connected()
            assert session.session_id == before


@pytest.mark.parametrize(("session_s", "within_s"), [(30, 10), (9, 3), (6, 2), (1, 2)])
def test_connect_timeout_is_a_third_of_the_session_timeout_and_at_least_two_seconds(session_s, within_s):
    assert connect_timeout_s(session_s) == within_s
