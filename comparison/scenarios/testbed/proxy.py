"""A TCP proxy that breaks links like a network: it holds bytes, delays them, or ends connections.

`tc netem` is missing from many kernels, so the proxy is the portable way. While a link is cut, nothing is read from
either end: what is sent stays in the kernel's buffers, and neither end sees the other's close or reset. A connection
made meanwhile is accepted but goes no further. At the heal everything flows again, also on connections that one end
has closed by then. Other faults are different ones: a cut of one direction only, a delay, connections that are closed
(seen at once), and half-open ones, whose client alone still believes in them.

It handles two traps of ZooKeeper's ensembles (tried on 3.9.5). A proxy accepts connections before the server behind it
listens, so it retries for a while before it closes the accepted connection. And a link can be `refused`, see
`comparison.scenarios.testbed.quorum`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from comparison.scenarios.testbed.link import BOTH_WAYS, Link, Way

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer

LOOPBACK = "127.0.0.1"
UPSTREAM_RETRY_S = 2.0
_RETRY_EVERY_S = 0.02


#: Selects, of the clients' ports, those whose connections to hold.
Picks = Callable[[Collection[int]], Collection[int]]


class TcpProxy:
    """Forwards connections to one upstream port, of this machine or of a container on it.

    A fault affects every connection, or those whose clients' ports a function picks: called once with the ports of all
    connections, and once for each later one. A link has one fault at a time.
    """

    def __init__(self, name: str, tracer: Tracer) -> None:
        self.name = name
        self.port = 0
        self.upstream_port = 0
        self.upstream_host = LOOPBACK
        self._tracer = tracer
        self._server: asyncio.Server | None = None
        self._links: dict[asyncio.Task[None], Link] = {}
        self._picks: Picks | None = None  #: of the present fault
        self._held: frozenset[Way] = frozenset()
        self._delays: dict[Way, float] = {}
        self._closing = False

    async def start(self, upstream_port: int = 0, host: str = LOOPBACK) -> int:
        """Listen on a free port of `host`; the port. The upstream may be set later."""
        self.upstream_port = upstream_port
        self._server = await asyncio.start_server(self._accepted, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    @property
    def links(self) -> int:
        """The number of connections."""
        return len(self._links)

    @property
    def cut_off(self) -> bool:
        """Whether bytes are held, in one direction or both."""
        return bool(self._held)

    @property
    def faulty(self) -> bool:
        return self._picks is not None

    def cut(self, holds: Picks = frozenset, ways: frozenset[Way] = BOTH_WAYS) -> None:
        """Hold the connections that `holds` picks, in these directions."""
        self._begin(holds)
        self._held = ways
        self._apply()
        self._tracer.emit("link_cut", link=self.name)

    def cut_instead(self, holds: Picks) -> None:
        """Hold the connections that `holds` picks, and no others: those that were held before flow again."""
        assert self.cut_off, f"{self.name} is not cut"
        self._picks = holds
        self._apply()

    def delay(self, by_ms: int, picks: Picks = frozenset, ways: frozenset[Way] = BOTH_WAYS) -> None:
        """Deliver bytes so much later, in each of these directions. It may be called again, to change the delay."""
        if not self._delays:
            self._begin(picks)
        self._delays = dict.fromkeys(ways, by_ms / 1000)
        self._apply()

    def close(self, picks: Picks = frozenset) -> None:
        """Reset the picked connections, and every one that they try to make until the heal."""
        self._begin(picks)
        self._closing = True
        for link in self._picked():
            link.abort()

    def half_open(self, picks: Picks = frozenset) -> None:
        """Reset the upstream's end of the picked connections; their clients notice at the heal. New ones work."""
        self._begin(picks)
        for link in self._picked():
            link.abandon()

    def heal(self) -> None:
        """End the fault and deliver what was held. Does nothing if there is none."""
        if not self.faulty:
            return
        was_cut = self.cut_off
        self._picks, self._held, self._delays, self._closing = None, frozenset(), {}, False
        self._apply()
        for link in self._links.values():
            link.reset_abandoned()
        if was_cut:
            self._tracer.emit("link_healed", link=self.name)

    def _begin(self, picks: Picks) -> None:
        assert not self.faulty, f"{self.name} is cut already" if self.cut_off else f"{self.name} has a fault already"
        self._picks = picks

    def _picked(self) -> list[Link]:
        if self._picks is None:
            return []
        ports = self._picks({link.peer_port for link in self._links.values()})
        return [link for link in self._links.values() if link.peer_port in ports]

    def _apply(self) -> None:
        """Hold and delay the connections that are picked, and no others."""
        picked = self._picked()
        for link in self._links.values():
            self._affect(link, picked=link in picked)

    def _affect(self, link: Link, *, picked: bool) -> None:
        link.hold(self._held if picked else frozenset())
        for way, stream in link.streams.items():
            stream.delay_s = self._delays.get(way, 0.0) if picked else 0.0

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
        task = asyncio.current_task()
        assert task is not None
        peer = writer.get_extra_info("peername")
        link = Link(peer[1] if peer is not None else 0, reader, writer)
        if self._picks is not None and self._picks({link.peer_port}):
            if self._closing:
                link.abort()
                return
            self._affect(link, picked=True)
        self._links[task] = link
        try:
            await self._forward(link, writer)
        except asyncio.CancelledError:
            # Only stop() cancels a link. The cancellation is swallowed, because the stream server reports a cancelled
            # connection as an error.
            writer.transport.abort()
        finally:
            del self._links[task]

    async def _forward(self, link: Link, writer: asyncio.StreamWriter) -> None:
        await link.streams[Way.TO_UPSTREAM].gate.passed()
        upstream = await self._connected()
        if upstream is None:
            writer.transport.abort()
            return
        await link.copy(*upstream)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the upstream, with retries: it may not listen yet."""
        deadline = asyncio.get_running_loop().time() + UPSTREAM_RETRY_S
        while asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(self.upstream_host, self.upstream_port)
            await asyncio.sleep(_RETRY_EVERY_S)
        return None
