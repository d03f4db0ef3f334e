"""A TCP proxy that cuts links like a network partition: bytes are held, and delivered at the heal.

`tc netem` is missing from many kernels, so the proxy is the portable way. While a link is cut, nothing is read from
either end: what is sent stays in the kernel's buffers, and neither end sees the other's close or reset. A connection
made meanwhile is accepted but goes no further. At the heal everything flows again, also on connections that one end
has closed by then.

It handles two traps of ZooKeeper's ensembles (tried on 3.9.5). A proxy accepts connections before the server behind it
listens, so it retries for a while before it closes the accepted connection. And a link can be `refused`, see
`comparison.scenarios.testbed.quorum`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer

LOOPBACK = "127.0.0.1"
UPSTREAM_RETRY_S = 2.0
_RETRY_EVERY_S = 0.02
_CHUNK = 65_536


#: Selects, of the clients' ports, those whose connections to hold.
Picks = Callable[[Collection[int]], Collection[int]]


class Gate:
    """A gate that is open, or closed until it is opened again."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        await self._open.wait()


class TcpProxy:
    """Forwards connections to one upstream port of this machine.

    A cut holds every connection, or those whose clients' ports a function picks: called once with the ports of all
    connections, and once for each later one.
    """

    def __init__(self, name: str, tracer: Tracer) -> None:
        self.name = name
        self.port = 0
        self.upstream_port = 0
        self._tracer = tracer
        self._server: asyncio.Server | None = None
        self._links: dict[asyncio.Task[None], tuple[int, Gate]] = {}
        self._holds: Picks | None = None

    async def start(self, upstream_port: int = 0) -> int:
        """Listen on a free port; the port. The upstream port may be set later."""
        self.upstream_port = upstream_port
        self._server = await asyncio.start_server(self._accepted, LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    @property
    def links(self) -> int:
        """The number of connections."""
        return len(self._links)

    @property
    def cut_off(self) -> bool:
        return self._holds is not None

    def cut(self, holds: Picks = frozenset) -> None:
        """Hold the connections that `holds` picks."""
        assert not self.cut_off, f"{self.name} is cut already"
        self._holds = holds
        held = holds({peer_port for peer_port, _ in self._links.values()})
        for peer_port, gate in self._links.values():
            if peer_port in held:
                gate.close()
        self._tracer.emit("link_cut", link=self.name)

    def cut_instead(self, holds: Picks) -> None:
        """Hold the connections that `holds` picks, and no others: those that were held before flow again."""
        assert self.cut_off, f"{self.name} is not cut"
        self._holds = holds
        held = holds({peer_port for peer_port, _ in self._links.values()})
        for peer_port, gate in self._links.values():
            gate.close() if peer_port in held else gate.open()

    def heal(self) -> None:
        """Deliver what was held. Does nothing if the link is not cut."""
        if not self.cut_off:
            return
        self._holds = None
        for _, gate in self._links.values():
            gate.open()
        self._tracer.emit("link_healed", link=self.name)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        peer = writer.get_extra_info("peername")
        peer_port = peer[1] if peer is not None else 0
        gate = Gate()
        if self._holds is not None and self._holds({peer_port}):
            gate.close()
        self._links[link] = (peer_port, gate)
        try:
            await self._forward(reader, writer, gate)
        except asyncio.CancelledError:
            # Only stop() cancels a link. The cancellation is swallowed, because the stream server reports a cancelled
            # connection as an error.
            writer.transport.abort()
        finally:
            del self._links[link]

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate) -> None:
        await gate.passed()
        upstream = await self._connected()
        if upstream is None:
            writer.transport.abort()
            return
        up_reader, up_writer = upstream
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, up_writer, gate))
                both.create_task(_pump(up_reader, writer, gate))
        except* OSError:
            pass  # one end was reset: the other one is closed below
        finally:
            for end in (writer, up_writer):
                end.transport.abort() if end.transport.is_closing() else end.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the upstream, with retries: it may not listen yet."""
        deadline = asyncio.get_running_loop().time() + UPSTREAM_RETRY_S
        while asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(LOOPBACK, self.upstream_port)
            await asyncio.sleep(_RETRY_EVERY_S)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate) -> None:
    """Copy bytes from one end to the other until the end of the stream; passes a half-close on."""
    while True:
        data = await reader.read(_CHUNK)
        await gate.passed()
        if not data:
            if writer.can_write_eof():
                writer.write_eof()
            return
        writer.write(data)
        await writer.drain()
