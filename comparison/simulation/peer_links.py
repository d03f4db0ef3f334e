"""The links between modelled ZooKeeper servers as the runner breaks them: in place of `QuorumProxies`.

What servers say to each other goes over no socket, so a proxy here has one link for good, and holds or delays what the
model sends over it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from comparison.scenarios.testbed.link import Link, Way
from comparison.scenarios.testbed.proxy import TcpProxy
from comparison.scenarios.testbed.quorum import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from comparison.simulation.zookeeper.servers import Peers
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.servers import QuorumPorts


class _Way:
    """One direction."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.is_held = False
        self._delay_s = 0.0
        self._changed = changed

    @property
    def delay_s(self) -> float:
        return self._delay_s

    @delay_s.setter
    def delay_s(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._changed()


class _PeerLink:
    """The part of `comparison.scenarios.testbed.link.Link` that a proxy uses."""

    peer_port = 0

    def __init__(self, changed: Callable[[], None], reset: Callable[[], None]) -> None:
        self.streams = {way: _Way(changed) for way in Way}
        self._changed = changed
        self._reset = reset

    def hold(self, ways: frozenset[Way]) -> None:
        for way, stream in self.streams.items():
            stream.is_held = way in ways
        self._changed()

    def abort(self) -> None:
        self._reset()

    def abandon(self) -> None:
        self._reset()

    def reset_abandoned(self) -> None:
        """Both ends have noticed."""


class PeerProxies:
    """See `QuorumProxies`; `peers` are there once the servers are."""

    def __init__(self, tracer: Tracer) -> None:
        self.peers: Peers | None = None
        self._links: dict[tuple[int, int], _PeerLink] = {}
        self._proxies: dict[tuple[int, int], TcpProxy] = {}
        for pair in ((i, j) for i in SERVERS for j in SERVERS if i != j):
            link = self._links[pair] = _PeerLink(self._apply, partial(self._reset, pair))
            proxy = self._proxies[pair] = TcpProxy("quorum {}->{}".format(*pair), tracer)
            proxy.keep(cast("Link", link))

    async def start(self, host: str) -> None:
        """There is nothing to listen on."""

    def ports(self, _i: int, _j: int, real: QuorumPorts) -> QuorumPorts:
        return real

    async def introduce(self, server: int) -> None:
        """Servers find each other."""

    async def readmit(self, server: int, serving: Callable[[], Collection[int]]) -> None:
        """As `introduce`."""

    def of(self, server: int) -> list[tuple[TcpProxy, bool]]:
        return [(proxy, pair[0] == server) for pair, proxy in self._proxies.items() if server in pair]

    def heal(self) -> None:
        for proxy in self._proxies.values():
            proxy.heal()

    async def stop(self) -> None:
        """There is nothing to stop."""

    def _apply(self) -> None:
        if self.peers is None:
            return
        for i, j in self._links:
            there, back = self._links[i, j].streams[Way.TO_UPSTREAM], self._links[j, i].streams[Way.TO_CLIENT]
            self.peers.delay(i, j, max(there.delay_s, back.delay_s))
            if there.is_held or back.is_held:
                self.peers.cut(i, j)
            else:
                self.peers.mend(i, j)

    def _reset(self, pair: tuple[int, int]) -> None:
        if self.peers is not None:
            self.peers.reset(*pair)
