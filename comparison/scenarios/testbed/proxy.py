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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.scenarios.testbed.link import BOTH_WAYS, Link, Way
from kernel.tasks import cancel_and_wait, close_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.trace.writer import Tracer

LOOPBACK = "127.0.0.1"
UPSTREAM_RETRY_S = 2.0
_RETRY_EVERY_S = 0.02


#: Selects, of the clients' ports, those whose connections to hold.
Picks = Callable[[Collection[int]], Collection[int]]


@dataclass(slots=True, eq=False)
class LinkFault:
    """A fault of some connections, until it is healed."""

    picks: Picks
    held: frozenset[Way] = frozenset()
    delays: Mapping[Way, float] = field(default_factory=dict)
    closes: bool = False  #: new connections are reset
    links: set[Link] = field(default_factory=set)  #: that it affects


class TcpProxy:
    """Forwards connections to one upstream port, of this machine or of a container on it.

    A fault affects every connection, or those whose clients' ports a function picks: called once with the ports of all
    connections, and once for each later one. A connection may have several faults.
    """

    def __init__(self, name: str, tracer: Tracer) -> None:
        self.name = name
        self.port = 0
        self.upstream_port = 0
        self.upstream_host = LOOPBACK
        self._tracer = tracer
        self._server: asyncio.Server | None = None
        self._links: dict[Link, asyncio.Task[None] | None] = {}
        self._faults: list[LinkFault] = []

    async def start(self, upstream_port: int = 0, host: str = LOOPBACK) -> int:
        """Listen on a free port of `host`; the port. The upstream may be set later."""
        self.upstream_port = upstream_port
        self._server = await asyncio.start_server(self._accepted, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    def keep(self, link: Link) -> None:
        """Have a link that is always there, beside those of connections."""
        self._links[link] = None

    @property
    def links(self) -> int:
        """The number of connections."""
        return len(self._links)

    @property
    def cut_off(self) -> bool:
        """Whether bytes are held, in one direction or both."""
        return any(fault.held for fault in self._faults)

    def cut(self, picks: Picks = frozenset, ways: frozenset[Way] = BOTH_WAYS) -> LinkFault:
        """Hold the picked connections in these directions."""
        was_cut = self.cut_off
        fault = self._begin(LinkFault(picks, held=ways))
        if not was_cut:
            self._tracer.emit("link_cut", link=self.name)
        return fault

    def delay(self, by_ms: int, picks: Picks = frozenset, ways: frozenset[Way] = BOTH_WAYS) -> LinkFault:
        """Deliver bytes so much later, in each of these directions."""
        return self._begin(LinkFault(picks, delays=dict.fromkeys(ways, by_ms / 1000)))

    def change_delay(self, fault: LinkFault, by_ms: int) -> None:
        fault.delays = dict.fromkeys(fault.delays, by_ms / 1000)
        self._apply()

    def close(self, picks: Picks = frozenset) -> LinkFault:
        """Reset the picked connections, and every one that they try to make until the heal."""
        fault = self._begin(LinkFault(picks, closes=True))
        for link in fault.links:
            link.abort()
        return fault

    def half_open(self, picks: Picks = frozenset) -> LinkFault:
        """Reset the upstream's end of the picked connections; their clients notice at the heal. New ones work."""
        fault = self._begin(LinkFault(picks))
        for link in fault.links:
            link.abandon()
        return fault

    def heal(self, fault: LinkFault | None = None) -> None:
        """End a fault, or all, and deliver what was held. Does nothing if there is none."""
        was_cut = self.cut_off
        ended = [each for each in self._faults if fault in (each, None)]
        self._faults = [each for each in self._faults if each not in ended]
        self._apply()
        for each in ended:
            for link in each.links:
                link.reset_abandoned()
        if was_cut and not self.cut_off:
            self._tracer.emit("link_healed", link=self.name)

    def _begin(self, fault: LinkFault) -> LinkFault:
        ports = fault.picks({link.peer_port for link in self._links})
        fault.links = {link for link in self._links if link.peer_port in ports}
        self._faults.append(fault)
        self._apply()
        return fault

    def _apply(self) -> None:
        for link in self._links:
            self._affect(link)

    def _affect(self, link: Link) -> None:
        """Hold and delay a connection as all its faults together do."""
        faults = [fault for fault in self._faults if link in fault.links]
        link.hold(frozenset[Way]().union(*(fault.held for fault in faults)))
        for way, stream in link.streams.items():
            stream.delay_s = max((fault.delays.get(way, 0.0) for fault in faults), default=0.0)

    async def stop(self) -> None:
        if self._server is not None:
            await close_server(self._server)
        tasks = [task for task in self._links.values() if task is not None]
        await cancel_and_wait(*tasks)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        peer = writer.get_extra_info("peername")
        link = Link(peer[1] if peer is not None else 0, reader, writer)
        for fault in self._faults:
            if fault.picks({link.peer_port}):
                fault.links.add(link)
                if fault.closes:
                    link.abort()
                    return
        self._affect(link)
        self._links[link] = task
        try:
            await self._forward(link, writer)
        except asyncio.CancelledError:
            # Only stop() cancels a link. The cancellation is swallowed, because the stream server reports a cancelled
            # connection as an error.
            writer.transport.abort()
        finally:
            del self._links[link]
            for fault in self._faults:
                fault.links.discard(link)

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
