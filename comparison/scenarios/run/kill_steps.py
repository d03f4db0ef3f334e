"""Kills or freezes a process exactly when a rebalance has come to one of its named points."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from comparison.scenarios.plan.points import point_named
from comparison.scenarios.run.changes import StepPerformer, sleep_until
from comparison.scenarios.run.process_faults import START_S
from kernel.platform.swept_folder import swept_folder
from kernel.trace.events import Role
from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.designs.profile import Point
    from comparison.scenarios.plan.vocabulary import FreezeAtPoint, KillAtPoint
    from comparison.scenarios.processes.children import ChildProcess
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.injections import Injections


#: How long a rebalance takes at most, if nobody is waited for.
_ENDS_S = 5.0


class KillSteps(StepPerformer):
    """Performs `KillAtPoint` and `FreezeAtPoint`."""

    def __init__(self, changes: Changes, injections: Injections) -> None:
        super().__init__(changes)
        self._injections = injections

    async def kill_at_point(self, step: KillAtPoint) -> None:
        """Let a member join, wait until a process has stopped itself at the point, and kill the target."""
        changes = self._changes
        await self._rebalances_end()
        changes.enter_stage("fault")
        point = point_named(self._design.name, step.point)
        name = self._passes()
        broker = await self._testbed.coordinating_now()
        assert broker.child is not None
        members = self._members.present + (step.target != "member")
        passing = [broker.child] if point.role is Role.BROKER else self._passing(name)
        changes.tracer.emit("change_started", change="kill", round=1, members=members, detail={"point": point.name})
        halted = await self._halted(point, passing)
        if point.role is Role.MEMBER:
            name = halted.name
        target = {"member": name, "broker": broker.life, "server": "zookeeper-1"}[step.target]
        detail = {"point": point.name, "target": target}
        changes.tracer.emit("fault_started", fault="kill", target=target, detail=detail)
        if step.target == "member":
            await self._members.kill(name)
        elif step.target == "broker":
            await self._testbed.kill_broker(broker)
        else:
            await self._kill_server(halted)
        changes.tracer.emit("fault_ended", fault="kill", target=target)
        if halted.returncode is None:
            halted.thaw()
        await self._members.until_settled(changes.takeover_s)
        changes.tracer.emit("change_settled", change="kill", round=1, members=members)
        await changes.quiet()

    async def freeze_at_point(self, step: FreezeAtPoint) -> None:
        """Let a member join, wait until another one has stopped itself at the point, and keep it frozen."""
        for_ms = self._configuration.session_ms + step.over_ms

        async def join() -> None:
            halted = await self._halted(point_named(self._design.name, step.point), self._passing(self._passes()))
            begun = asyncio.get_running_loop().time()
            freeze = await self._injections.set_up("freeze", self._members.place_of(halted.name))
            frozen = await self._injections.begin("freeze", freeze, {"for_ms": for_ms, "point": step.point})
            await sleep_until(begun + for_ms / 1000)
            await self._injections.undo(frozen)

        await self._rebalances_end()
        self._changes.enter_stage("fault")
        # Not a `join`: what it costs is not what the models say of one that nobody interrupts.
        await self._changes.make("freeze", join, members=self._members.present + 1, detail={"point": step.point})

    async def _rebalances_end(self) -> None:
        """Let a rebalance that is under way end, such as that of a member whose requests were late.

        A member that joins becomes part of it, and nobody passes again what has been passed. That of a frozen member
        does not end, so this waits no longer than until its session does.
        """
        with suppress(WaitTimeout):
            await self._members.until_quiet(self._configuration.session_ms / 1000 + _ENDS_S)

    def _passes(self) -> str:
        """A member that will pass the points of the next rebalance."""
        decider = self._members.view.decider
        # A frozen process is stopped already, at no point.
        can_pass = decider and not (self._members.is_gone(decider) or self._members.child(decider).frozen)
        return decider if can_pass else self._members.choose_owner()

    def _passing(self, name: str) -> list[ChildProcess]:
        """The process of this member, or those of all that may pass a point instead of it."""
        if self._design.reconciles:
            # Only a member that has to give something up passes any point, and who that is, is not known yet.
            return [self._members.child(owner) for owner in self._members.view.owning_processes()]
        return [self._members.child(name)]

    async def _halted(self, point: Point, passing: Sequence[ChildProcess]) -> ChildProcess:
        """The first of these processes that comes to the point when a member joins; it has stopped itself there."""
        halted: list[ChildProcess] = []

        def stopped() -> bool:
            self._members.check_joining()
            for child in passing:
                if child.returncode is not None:
                    raise child.failure(f"it was to stop at {point.name}")
            halted[:] = [child for child in passing if child.process.is_stopped]
            return bool(halted)

        with swept_folder("rebalance-lab-halt-") as (folder, _):
            halt = {"kind": point.kind, "field": point.field, "value": point.value, "first": f"{folder}/first"}
            for child in passing:
                child.send({"command": "halt_at", **halt})
            self._members.join(1)
            names = " or ".join(child.name for child in passing)
            await until(stopped, self._changes.takeover_s, f"{names} to stop itself at {point.name}")
        return halted[0]

    async def _kill_server(self, halted: ChildProcess) -> None:
        """The only server dies, the stopped process goes on, and the server is started again with its data."""
        (server,) = self._testbed.zookeeper.servers
        await self._testbed.runtime.threads.run(server.kill)
        halted.thaw()
        await self._testbed.zookeeper.restart([server], START_S)
