"""Faults of links: what a network does to the connections of a member, a broker or a ZooKeeper server."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.run.performer import OurPerformer, of_process
from comparison.scenarios.testbed.link import BOTH_WAYS, Way
from kernel.designs import DESIGNS
from kernel.zookeeper.servers import Detachable

if TYPE_CHECKING:
    from comparison.scenarios.testbed.proxy import LinkFault, Picks, TcpProxy
    from kernel.zookeeper.servers import Server

_STEPS = 10


class Cable(NamedTuple):
    """Some connections at one proxy, as seen from the end that the fault names."""

    proxy: TcpProxy
    picks: Picks
    connects: bool  #: whether that end made them

    def ways(self, named: str) -> frozenset[Way]:
        """The directions in which bytes go: `out` of the named end, `in` to it, or `both`."""
        if named == "both":
            return BOTH_WAYS
        out = (named == "out") == self.connects
        return frozenset({Way.TO_UPSTREAM if out else Way.TO_CLIENT})


class _OfLink(OurPerformer):
    async def setup(self) -> None:
        kind, (end, _, other) = kind_of(self.target), self.target.partition("->")
        self._broken: list[tuple[Cable, LinkFault]] = []
        self._server: Server | None = None  #: of ZooKeeper, whose links to the others these are
        self._cables = await self._found(kind, end)
        self.target = f"{self._end}->{other}"

    async def _found(self, kind: TargetKind, end: str) -> list[Cable]:
        zookeeper = self.testbed.zookeeper
        if kind is TargetKind.SERVERS:
            server = await self.testbed.runtime.threads.run(zookeeper.server, end)
            self._end, self._server = f"zookeeper-{server.number}", server
            return [Cable(proxy, frozenset, connects) for proxy, connects in zookeeper.links_of(server.number)]
        if kind is TargetKind.BROKER_ZOOKEEPER:
            broker = self.testbed.broker(end)
            self._end = broker.life
            assert broker.child is not None
            return [Cable(proxy, of_process(broker.child), True) for proxy in zookeeper.client_proxies.values()]
        self._end = self.member(end)
        picks = of_process(self.members.child(self._end))
        if kind is TargetKind.MEMBER_DATA:
            proxies = [self.testbed.data_proxy]
        else:
            design = DESIGNS[self.testbed.request.design]
            proxies = [
                *((zookeeper.member_proxy, *zookeeper.client_proxies.values()) if design.zookeeper_sessions else ()),
                self.testbed.coordinator_proxy if design.coordinator else None,
            ]
        return [Cable(proxy, picks, True) for proxy in proxies if proxy is not None]

    async def inject(self) -> None:
        self._broken = [(cable, self.break_(cable)) for cable in self._cables]

    @abstractmethod
    def break_(self, cable: Cable) -> LinkFault:
        """Make the fault begin in some connections."""

    async def heal(self) -> None:
        for cable, fault in self._broken:
            cable.proxy.heal(fault)
        if self._server is not None:
            self.testbed.zookeeper.readmit(self._server)


class Cut(_OfLink):
    def break_(self, cable: Cable) -> LinkFault:
        return cable.proxy.cut(cable.picks, cable.ways(str(self.values["ways"])))


class Delay(_OfLink):
    def break_(self, cable: Cable) -> LinkFault:
        return cable.proxy.delay(self.number("by_ms"), cable.picks, cable.ways(str(self.values["ways"])))


class GrowingDelay(_OfLink):
    def break_(self, cable: Cable) -> LinkFault:
        return cable.proxy.delay(0, cable.picks, cable.ways(str(self.values["ways"])))

    async def inject(self) -> None:
        await super().inject()
        self._growing = asyncio.create_task(self._grow(), name="growing delay")

    async def _grow(self) -> None:
        for step in range(1, _STEPS + 1):
            for cable, fault in self._broken:
                cable.proxy.change_delay(fault, self.number("to_ms") * step // _STEPS)
            await asyncio.sleep(self.number("within_ms") / _STEPS / 1000)

    def abandon(self) -> None:
        self._growing.cancel()

    async def heal(self) -> None:
        self._growing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._growing
        await super().heal()


class HalfOpen(_OfLink):
    def break_(self, cable: Cable) -> LinkFault:
        return cable.proxy.half_open(cable.picks)


class Close(_OfLink):
    def break_(self, cable: Cable) -> LinkFault:
        return cable.proxy.close(cable.picks)


class Disconnect(OurPerformer):
    """A server is taken off its network: by the engine that runs it, or by the proxies on all of its links."""

    async def setup(self) -> None:
        zookeeper = self.testbed.zookeeper
        end, _, other = self.target.partition("->")
        self._server = await self.testbed.runtime.threads.run(zookeeper.server, end)
        self.target = f"zookeeper-{self._server.number}->{other}"
        self._clients = zookeeper.client_proxies[self._server.number]
        self._peers = [proxy for proxy, _ in zookeeper.links_of(self._server.number)]

    async def inject(self) -> None:
        if isinstance(self._server, Detachable):
            await self.testbed.runtime.threads.run(self._server.disconnect)
            return
        self._broken = [(self._clients, self._clients.close()), *((proxy, proxy.cut()) for proxy in self._peers)]

    async def heal(self) -> None:
        if isinstance(self._server, Detachable):
            await self.testbed.runtime.threads.run(self._server.connect)
            return
        for proxy, fault in self._broken:
            proxy.heal(fault)
        self.testbed.zookeeper.readmit(self._server)
