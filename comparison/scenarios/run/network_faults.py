"""Faults of all links of a ZooKeeper server at once."""

from __future__ import annotations

from comparison.scenarios.run.performer import OurPerformer
from kernel.zookeeper.servers import Detachable


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
