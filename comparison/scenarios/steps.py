"""Performing a scenario's steps: the nemesis. Every fault is written into the same trace as what it causes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from comparison.scenarios.catalogue import (
    CutAuthority,
    CutEnsemble,
    Form,
    FreezeOwner,
    JoinOne,
    KillOwner,
    LeaveOne,
    Steady,
    Step,
)
from comparison.scenarios.link_ownership import ports_of_process
from comparison.scenarios.processes import ended_within
from coordinator.membership.effects import Identity
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.scenarios.group_members import GroupMembers
    from comparison.scenarios.testbed import Testbed
    from kernel.values import TopicPartition

#: Above this, a commit interval is too long to wait for: the members are asked to commit.
_COMMIT_INTERVAL_MS_MAX = 2000
_SETTLE_S = 20.0
_QUIET_S = 15.0


class Nemesis:
    """Performs steps against one group."""

    def __init__(self, testbed: Testbed, members: GroupMembers, enter_stage: Callable[[str], None]) -> None:
        self._testbed = testbed
        self._members = members
        self._tracer = testbed.tracer
        self._configuration = testbed.request.configuration
        self._enter_stage = enter_stage
        self._healing: list[Callable[[], None]] = []
        self._round = 0
        #: Detection takes a session; deciding and, in zookeeper, some tries with their backoff come on top.
        self._takeover_s = self._configuration.session_ms / 1000 + _SETTLE_S

    async def perform(self, step: Step) -> None:
        """One step, until it is over. Raises `WaitTimeout` when what it waits for does not come."""
        match step:
            case Form():
                await self._form(step)
            case Steady():
                await self._steady()
            case JoinOne():
                await self._change("join", self._join_one, round_=step.round, counted=True)
            case LeaveOne():
                await self._change("leave", self._leave_one)
            case KillOwner():
                await self._change("crash", self._kill_owner)
            case FreezeOwner():
                await self._freeze_owner(step)
            case CutAuthority():
                await self._cut_authority(step)
            case CutEnsemble():
                await self._cut_ensemble(step)

    def heal(self) -> None:
        """Undo what is still done. Also after an interrupt."""
        while self._healing:
            self._healing.pop()()

    # -- changes of the group --------------------------------------------------------------------------------------

    async def _form(self, step: Form) -> None:
        size = step.members if step.members is not None else self._testbed.request.parameters.members
        coming = size - self._members.present
        self._round += 1

        async def join() -> None:
            self._members.join(coming)

        if self._members.present == 0 and step.change == "form":
            # Growth to the first size is not measured; it is over when it is quiet, as a change is.
            await join()
            await self._members.until_settled(self._takeover_s)
            await self._members.until_quiet(_QUIET_S)
        else:
            await self._change(step.change, join, round_=self._round, members=size, stage="warm")

    async def _change(
        self,
        change: str,
        make: Callable[[], object],
        *,
        round_: int = 1,
        members: int = 0,
        counted: bool = False,
        stage: str = "fault",
    ) -> None:
        """One change of membership: told, made, settled, quiet; `counted`: between readings of the counters."""
        self._enter_stage(stage)
        if counted:
            await self._testbed.zookeeper.count(f"{change}-{round_}:before")
        members = members or self._members.present + {"join": 1, "leave": -1, "crash": -1}[change]
        self._tracer.emit("change_started", change=change, round=round_, members=members)
        result = make()
        if asyncio.iscoroutine(result):
            await result
        await self._members.until_settled(self._takeover_s)
        self._tracer.emit("change_settled", change=change, round=round_, members=members)
        await self._members.until_quiet(_QUIET_S)
        if counted:
            await self._testbed.zookeeper.count(f"{change}-{round_}:after")

    def _join_one(self) -> None:
        self._members.join(1)

    async def _leave_one(self) -> None:
        name = self._members.choose_owner()
        self._members.leave(name)
        await ended_within(self._members.child(name), self._takeover_s)

    async def _kill_owner(self) -> None:
        name = self._members.choose_owner()
        self._tracer.emit("fault_started", fault="kill", target=name)
        await self._members.kill(name)
        self._tracer.emit("fault_ended", fault="kill", target=name)

    # -- waiting ---------------------------------------------------------------------------------------------------

    async def _steady(self) -> None:
        self._enter_stage("steady")
        view = self._members.view
        interval_ms = self._configuration.commit_interval_ms
        patience_s = _SETTLE_S + min(interval_ms, _COMMIT_INTERVAL_MS_MAX) / 1000

        def everywhere(offsets: Mapping[TopicPartition, int]) -> bool:
            self._members.check()
            return len(offsets) == len(view.partitions)

        await until(lambda: everywhere(view.delivered), patience_s, "every partition is being delivered")
        if interval_ms > _COMMIT_INTERVAL_MS_MAX:
            self._members.commit()
        await until(lambda: everywhere(view.committed), patience_s, "every partition was committed once")
        phase_ms = self._members.random.uniform(0, min(interval_ms, _COMMIT_INTERVAL_MS_MAX))
        await asyncio.sleep(phase_ms / 1000)

    # -- faults ----------------------------------------------------------------------------------------------------

    async def _freeze_owner(self, step: FreezeOwner) -> None:
        self._enter_stage("fault")
        name = self._members.choose_owner()
        child = self._members.child(name)
        held = self._members.view.held_by(name)
        for_ms = self._configuration.session_ms + step.over_ms
        begun = time.monotonic()
        self._members.commit_remembered(name)
        self._tracer.emit("fault_started", fault="freeze", target=name, detail={"for_ms": for_ms})
        child.freeze()
        self._members.view.leave_out(name)

        def thaw() -> None:
            # Written into its input while it is frozen: the first thing it does is to commit.
            self._members.commit_remembered(name)
            child.thaw()
            self._members.view.take_back(name)
            self._tracer.emit("fault_ended", fault="freeze", target=name)

        self._healing.append(thaw)
        await self._members.until_settled(self._takeover_s, without=name)
        await self._late_commit(name, held, generations_ago=0)
        await _reach(begun + for_ms / 1000)
        await self._heal_and_settle()

    async def _late_commit(self, name: str, held: frozenset[TopicPartition], *, generations_ago: int) -> None:
        """A commit that the member had sent before it was replaced, and that was long on its way, arrives.

        A client that notices its own expiry drops what it has not sent; what it has sent is for the broker to fence,
        whose trace tells what became of it. It is part of the fault that is under way, not another one.
        """
        identity = self._members.view.identities.get(name)
        if identity is None or self._testbed.request.design == "zookeeper":
            return
        member_id, generation = identity
        late = Identity(member_id, generation - generations_ago)
        group, offsets = self._testbed.group, dict.fromkeys(held, 0)
        await self._testbed.access.commit_as(group, late, offsets)

    async def _cut_authority(self, step: CutAuthority) -> None:
        if self._testbed.request.design == "zookeeper":
            await self._cut(
                step.over_ms, self._members.victim, self._testbed.zookeeper.cut, self._testbed.zookeeper.heal
            )
            return
        proxy = self._testbed.coordinator_proxy
        assert proxy is not None
        pid = self._members.child(self._members.victim).pid

        def cut() -> None:
            proxy.cut(lambda ports: ports_of_process(pid).intersection(ports))

        await self._cut(step.over_ms, self._members.victim, cut, proxy.heal)

    async def _cut_ensemble(self, step: CutEnsemble) -> None:
        zookeeper = self._testbed.zookeeper
        # In zookeeper the owner itself sits on the cut server; in the coordinator designs only a broker does.
        victim = self._members.victim if self._testbed.request.design == "zookeeper" else ""
        await self._cut(step.over_ms, victim, zookeeper.cut, zookeeper.heal)

    async def _cut(self, over_ms: int, victim: str, cut: Callable[[], None], heal: Callable[[], None]) -> None:
        """Cut, let the others take over, hold the cut for its whole length with commits asked for, heal."""
        self._enter_stage("fault")
        for_ms = self._configuration.session_ms + over_ms
        target = victim or "coordinating-broker"
        begun = time.monotonic()
        self._tracer.emit("fault_started", fault="cut", target=target, detail={"for_ms": for_ms})
        cut()

        def healed() -> None:
            heal()
            if victim:
                self._members.view.take_back(victim)
            self._tracer.emit("fault_ended", fault="cut", target=target)

        self._healing.append(healed)
        if victim:
            self._members.view.leave_out(victim)
            await self._members.until_settled(for_ms / 1000, without=victim)
            self._members.commit_remembered(victim)
        await _reach(begun + for_ms / 1000)
        if victim:
            self._members.commit_remembered(victim)
        else:
            # Nobody was replaced, so a commit of the generation before is what the moved group has to fence.
            name = self._members.choose_owner()
            await self._late_commit(name, self._members.view.held_by(name), generations_ago=1)
        await self._heal_and_settle()

    async def _heal_and_settle(self) -> None:
        self._enter_stage("heal")
        self.heal()
        await self._members.until_settled(self._takeover_s)
        await self._members.until_quiet(_QUIET_S)


async def _reach(monotonic_s: float) -> None:
    """Until that moment: how long a fault lasts is part of the experiment."""
    await asyncio.sleep(max(0.0, monotonic_s - time.monotonic()))
