"""Faults of processes: members, brokers and ZooKeeper servers that are killed, frozen or restarted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.processes.children import ended_within
from comparison.scenarios.run.performer import OurPerformer
from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.faults import Given
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.testbed.testbed import BrokerChild
    from kernel.zookeeper.servers import Server

START_S = 60.0
_BEGUN_S_MAX = 2.0


class _OfProcess(OurPerformer):
    """A fault of one process, whichever part of the run it is."""

    def __init__(self, changes: Changes, target: str, values: Mapping[str, Given]) -> None:
        super().__init__(changes, target, values)
        self._kind = kind_of(target)
        self._server: Server | None = None
        self._broker: BrokerChild | None = None

    @property
    def server(self) -> Server:
        assert self._server is not None, "set up first"
        return self._server

    @property
    def broker(self) -> BrokerChild:
        assert self._broker is not None, "set up first"
        return self._broker

    async def setup(self) -> None:
        if self._kind is TargetKind.SERVER:
            self._server = await self.testbed.runtime.threads.run(self.testbed.zookeeper.server, self.target)
            self.target = f"zookeeper-{self._server.number}"
        elif self._kind is TargetKind.BROKER:
            self._broker = self.testbed.broker(self.target)
            self.target = self._broker.life
        else:
            self.target = self.member(self.target)

    async def begin_again(self) -> None:
        """Start what was killed or stopped."""
        if self._kind is TargetKind.SERVER:
            await self.testbed.zookeeper.restart([self.server], START_S)
        elif self._kind is TargetKind.BROKER:
            await self.testbed.start_again(self.broker)
        else:
            await self.members.come_back(self.members.place_of(self.target))

    async def kill(self) -> None:
        if self._kind is TargetKind.SERVER:
            await self.testbed.runtime.threads.run(self.server.kill)
        elif self._kind is TargetKind.BROKER:
            await self.testbed.kill_broker(self.broker)
        else:
            await self.members.kill(self.target)


class Kill(_OfProcess):
    async def inject(self) -> None:
        await self.kill()

    async def heal(self) -> None:
        await self.begin_again()


class Freeze(_OfProcess):
    async def inject(self) -> None:
        if self._kind is TargetKind.SERVER:
            await self.testbed.runtime.threads.run(self.server.pause)
        elif self._kind is TargetKind.BROKER:
            assert self.broker.child is not None
            self.broker.child.freeze()
        else:
            self.members.child(self.target).freeze()
            self.members.view.leave_out(self.target)

    def abandon(self) -> None:
        self._thaw()

    async def heal(self) -> None:
        self._thaw()

    def _thaw(self) -> None:
        if self._kind is TargetKind.SERVER:
            self.server.resume()
        elif self._kind is TargetKind.BROKER:
            assert self.broker.child is not None
            self.broker.child.thaw()
        else:
            self.members.child(self.target).thaw()
            if not self.members.is_gone(self.target):  # it may have been killed meanwhile
                self.members.view.take_back(self.target)


class Restart(_OfProcess):
    async def inject(self) -> None:
        if self._kind is TargetKind.SERVER:
            await self.testbed.runtime.threads.run(self.server.stop)
        elif self._kind is TargetKind.BROKER:
            await self.testbed.stop_broker(self.broker)
        else:
            self.members.leave(self.target)
            await ended_within(self.members.child(self.target), self.changes.takeover_s)
        await asyncio.sleep(self.number("away_ms") / 1000)
        await self.begin_again()


class SlowStart(_OfProcess):
    async def inject(self) -> None:
        await self.kill()
        await asyncio.sleep(self.number("away_ms") / 1000)
        await self.begin_again()


class Flap(_OfProcess):
    async def inject(self) -> None:
        place = self.members.place_of(self.target)
        for time_ in range(self.number("times")):
            if time_:
                await asyncio.sleep(self.number("every_ms") / 1000)
            if self.values["by"] == "leave":
                await self.members.go(place, self.changes.takeover_s)
            else:
                await self.members.kill(self.members.process_at(place))
            await asyncio.sleep(self.number("every_ms") / 1000)
            await self.members.come_back(place)
            await self._until_joining(self.members.process_at(place))

    async def _until_joining(self, name: str) -> None:
        """A process that is killed before it has begun to join was never back."""
        with suppress(WaitTimeout):  # another fault may keep it away
            await until(lambda: name in self.members.view.begun(), _BEGUN_S_MAX, f"{name} to join")


class DiskFull(_OfProcess):
    async def inject(self) -> None:
        self._fill(full=True)

    async def heal(self) -> None:
        self._fill(full=False)

    def _fill(self, *, full: bool) -> None:
        assert self.broker.child is not None
        self.broker.child.send({"command": "fill_disk", "full": full})


class ClockStep(_OfProcess):
    """A process that takes the place of the one that it was injected into has the machine's time."""

    async def setup(self) -> None:
        await super().setup()
        child = self.members.child(self.target) if self._broker is None else self._broker.child
        assert child is not None
        self._child = child

    async def inject(self) -> None:
        self._child.send({"command": "step_clock", "by_ms": self.number("by_ms")})

    async def heal(self) -> None:
        self._child.send({"command": "step_clock", "by_ms": -self.number("by_ms")})


class QuorumLoss(OurPerformer):
    """Two of three servers die, the leader among them."""

    async def setup(self) -> None:
        servers = self.testbed.zookeeper.servers
        leader = await self.testbed.runtime.threads.run(self.testbed.zookeeper.server, "leader")
        self._dead = [leader, next(server for server in servers if server is not leader)]

    async def inject(self) -> None:
        for server in self._dead:
            await self.testbed.runtime.threads.run(server.kill)

    async def heal(self) -> None:
        await self.testbed.zookeeper.restart(self._dead, START_S)
