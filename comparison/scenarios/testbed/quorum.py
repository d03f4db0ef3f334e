"""Proxies for the links between the servers of an ensemble, so that one server can be cut off.

Each server has its own ports for reaching the others. When a server connects to one with a larger id for an election,
that one connects back to the *real* address, past any proxy. So those connections are refused (the port is bound but
not listened on), and the server with the larger id connects by its own ports.

That is enough when all servers start in time. One that is slow, is started again, or whose connections were reset, has
no way to tell the larger ids that it is there, so it is introduced to them: they get the message that it would begin an
election connection with, with the port of their own link to it as its address, and connect to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

from comparison.scenarios.testbed.proxy import LOOPBACK, TcpProxy
from kernel.tasks import cancel_and_wait
from kernel.zookeeper.servers import QuorumPorts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kernel.trace.writer import Tracer

SERVERS = (1, 2, 3)
#: QuorumCnxManager.InitialMessage of 3.9: version, the sender's id, the length of its election addresses.
_INITIAL_MESSAGE = struct.Struct("!qqi")
_PROTOCOL_VERSION = -65536
_AGAIN_S, _CONNECT_S = 1.0, 2.0
#: A server whose links are healed: how often, and how many times at most, it is asked whether it serves; after so many
#: answers it is back, or has to be introduced. An election takes half a second.
_CHECK_S, _CHECKS = 0.5, 180
_PRESENT_CHECKS, _ABSENT_CHECKS = 10, 4


class QuorumProxies:
    """Proxies for every ordered pair of servers; start them before the servers."""

    def __init__(self, tracer: Tracer) -> None:
        pairs = [(i, j) for i in SERVERS for j in SERVERS if i != j]
        self._quorum = {(i, j): TcpProxy(f"quorum {i}->{j}", tracer) for i, j in pairs}
        self._election = {(i, j): TcpProxy(f"election {i}->{j}", tracer) for i, j in pairs if i > j}
        self._refused: dict[tuple[int, int], socket.socket] = {}
        self._host = LOOPBACK
        self._real: dict[int, QuorumPorts] = {}

    async def start(self, host: str = LOOPBACK) -> None:
        """Listen on `host`, the address of this machine that the servers can reach."""
        self._host = host
        for proxy in self._all():
            await proxy.start(host=host)
        for i, j in self._quorum:
            if i < j:
                # Bound but not listening: connections are refused, and no other process can take the port.
                held = socket.socket()
                held.bind((host, 0))
                self._refused[i, j] = held

    def ports(self, i: int, j: int, real: QuorumPorts) -> QuorumPorts:
        """`kernel.zookeeper.servers.QuorumLinks`: the ports by which server i reaches server j."""
        self._real[j] = real
        quorum = self._quorum[i, j]
        quorum.upstream_host, quorum.upstream_port = real.host, real.quorum
        if i < j:
            return QuorumPorts(quorum.port, self._refused[i, j].getsockname()[1], self._host)
        election = self._election[i, j]
        election.upstream_host, election.upstream_port = real.host, real.election
        return QuorumPorts(quorum.port, election.port, self._host)

    async def introduce(self, server: int) -> None:
        """Tell the servers with larger ids that this one is back, until this is cancelled.

        The first time it may not listen yet. Each time costs the connections that they have made before, so that each
        wait is twice as long.
        """
        again_s = _AGAIN_S
        while True:
            for (other, this), proxy in self._election.items():
                if this == server:
                    with contextlib.suppress(OSError, TimeoutError):  # it may be down itself
                        await self._tell(self._real[other], server, f"{self._host}:{proxy.port}".encode())
            await asyncio.sleep(again_s)
            again_s *= 2

    async def readmit(self, server: int, serving: Callable[[], Collection[int]]) -> None:
        """Watch a server that starts, or whose links were broken, and introduce it if the others go on without it.

        It looks for them where they refuse it, and they do not look for it, since they are a majority. Returns when the
        server has served for a while, or never did. `serving`, which may block, names the servers that serve.
        """
        introducing: asyncio.Task[None] | None = None
        absent = present = 0
        try:
            for _ in range(_CHECKS):
                await asyncio.sleep(_CHECK_S)
                found = await asyncio.to_thread(serving)
                absent, present = (0, present + 1) if server in found else (absent + bool(found), 0)
                if present == _PRESENT_CHECKS:
                    return
                if absent == _ABSENT_CHECKS and introducing is None:
                    introducing = asyncio.create_task(self.introduce(server))
        finally:
            await cancel_and_wait(introducing)

    async def _tell(self, other: QuorumPorts, server: int, address: bytes) -> None:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(other.host, other.election)
            try:
                writer.write(_INITIAL_MESSAGE.pack(_PROTOCOL_VERSION, server, len(address)) + address)
                await writer.drain()
                await reader.read()  # it closes the connection, to make its own
            finally:
                writer.close()

    def cut(self, server: int) -> None:
        """Cut `server` off from the others."""
        for proxy, _ in self.of(server):
            proxy.cut()

    def heal(self) -> None:
        for proxy in self._all():
            proxy.heal()

    async def stop(self) -> None:
        for proxy in self._all():
            await proxy.stop()
        for held in self._refused.values():
            held.close()

    def _all(self) -> list[TcpProxy]:
        return [*self._quorum.values(), *self._election.values()]

    def of(self, server: int) -> list[tuple[TcpProxy, bool]]:
        """The links of a server, and whether it makes their connections."""
        both = (*self._quorum.items(), *self._election.items())
        return [(proxy, pair[0] == server) for pair, proxy in both if server in pair]
