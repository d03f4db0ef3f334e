"""Performs the steps that a scenario is composed of: inject a fault, hold it, heal it."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.scenarios.plan.faults import FAULTS, fault_named
from comparison.scenarios.plan.step_names import name_of
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.run import link_faults, member_faults, process_faults
from comparison.scenarios.run.changes import sleep_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.faults import Given
    from comparison.scenarios.plan.step import MeasuredFault
    from comparison.scenarios.plan.vocabulary import At, Heal, Hold, Inject, Rate, Settle
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.performer import Performer

_CLASSES = {
    name_of(each): each
    for module in (link_faults, member_faults, process_faults)
    for each in vars(module).values()
    if isinstance(each, type)
}
#: What performs each fault of `comparison.scenarios.plan.faults`: `slow-start` is performed by the class `SlowStart`.
_PERFORMERS: dict[str, type[Performer]] = {name: _CLASSES[name] for name in FAULTS}
PERFORMERS: Mapping[str, type[Performer]] = MappingProxyType(_PERFORMERS)


def add_performer(name: str, performer: type[Performer]) -> None:
    """Let a user's class perform a fault of theirs."""
    _PERFORMERS[name] = performer


class InEffect(NamedTuple):
    """A fault that can be healed; `target` as the step names it."""

    fault: str
    target: str
    performer: Performer

    @property
    def stays(self) -> bool:
        return fault_named(self.fault).stays


class Injections:
    """The faults of one run, which are traced, and those that are in effect."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._present: list[InEffect] = []
        self._change: Mapping[str, Any] | None = None  #: the last one, if it has not settled
        self._rounds: Counter[str] = Counter()

    # -- steps of their own --------------------------------------------------------------------------------------

    async def inject(self, step: Inject) -> None:
        fault = fault_named(step.fault)
        values = fault.values(step.parameters)
        performer = await self.set_up(step.fault, step.target, values)
        self._changes.enter_stage("fault")
        if fault.is_change:
            self._begin_change(step.fault, performer.comes)
        if fault.heals:
            await self.begin(step.fault, performer, values, named=step.target)
        else:
            await self.strike(step.fault, performer, values)

    async def hold(self, step: Hold) -> None:
        await asyncio.sleep(step.ms / 1000)

    async def at(self, step: At) -> None:
        await sleep_until(self._changes.begun_s + step.ms / 1000)

    async def rate(self, step: Rate) -> None:
        self._changes.testbed.load.rate = step.per_second

    async def heal(self, step: Heal) -> None:
        """The last one that was injected first; the group settles when no fault is left that keeps it from that."""
        healed = [each for each in self._present if step.heals(each.fault, each.target)]
        if step.commits:
            for each in healed:
                if each.fault == "freeze" and kind_of(each.target) is TargetKind.MEMBER:
                    # Written to its input while it is frozen: the first thing that its application does is to commit.
                    self._changes.members.commit_remembered(each.performer.target)
        await self.heal_and_settle(*healed, waits=step.wait)

    async def settle(self, _: Settle) -> None:
        await self._settle()

    async def measure(self, step: MeasuredFault) -> None:
        """Perform a fault as one change of the group; a member that is to be back comes back in it."""
        made, members = self._changes.configuration, self._changes.members
        away_ms = step.away(made.session_ms, made.delay_ms)
        performer = await self.set_up(step.fault, step.target)

        async def change() -> None:
            begun = asyncio.get_running_loop().time()
            if step.is_traced:
                await self.strike(step.fault, performer)
            else:
                await performer.inject()
            if away_ms is not None:
                await sleep_until(begun + away_ms / 1000)
                await performer.heal()

        detail = None
        if away_ms is not None:
            life = members.next_at(members.place_of(performer.target))
            detail = {"target": performer.target, "life": life, "away_ms": away_ms}
        turnover = step.turnover(members.present, members.present)
        await self._changes.make(
            step.change,
            change,
            members=members.present + turnover.joined - turnover.gone,
            round_=step.number,
            counted=step.is_counted,
            detail=detail,
        )

    # -- parts of steps ------------------------------------------------------------------------------------------

    async def set_up(self, fault: str, target: str, values: Mapping[str, Given] | None = None) -> Performer:
        """What performs a fault, with its target found."""
        given = fault_named(fault).values(values or {})
        performer = PERFORMERS[fault](self._changes, target, given)
        await performer.setup()
        return performer

    async def begin(
        self, fault: str, performer: Performer, detail: Mapping[str, object] | None = None, *, named: str = ""
    ) -> InEffect:
        """Begin a fault that is healed later."""
        self._trace_start(fault, performer, detail)
        present = InEffect(fault, named, performer)
        # Before it begins: if that fails halfway, there is something to heal.
        self._present.append(present)
        await performer.inject()
        return present

    async def strike(self, fault: str, performer: Performer, detail: Mapping[str, object] | None = None) -> None:
        """Perform a fault that is over at once, or is not healed."""
        self._trace_start(fault, performer, detail)
        await performer.inject()
        self._changes.tracer.emit("fault_ended", fault=fault, target=performer.target)

    async def undo(self, present: InEffect) -> None:
        """Heal a fault, and wait for nothing."""
        self._present.remove(present)
        if change := present.performer.heals_by:
            self._begin_change(change, -present.performer.comes)
        await present.performer.heal()
        self._changes.tracer.emit("fault_ended", fault=present.fault, target=present.performer.target)

    def forget(self, present: InEffect) -> None:
        """The process of a fault has ended, and the fault with it."""
        self._present.remove(present)
        self._changes.tracer.emit("fault_ended", fault=present.fault, target=present.performer.target)

    async def heal_and_settle(self, *healed: InEffect, waits: bool = True) -> None:
        self._changes.enter_stage("heal")
        for each in reversed(healed):
            await self.undo(each)
        if waits and all(each.stays for each in self._present):
            await self._settle()

    # -- the end of the run --------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Undo at once what is in effect, because the run is broken off. Links are healed right after."""
        for each in reversed(self._present):
            each.performer.abandon()
            self._changes.tracer.emit("fault_ended", fault=each.fault, target=each.performer.target)
        self._present.clear()

    async def end(self) -> None:
        """Heal what is still in effect after the last step and does not stay; wait for the group if it was changed."""
        lasting = [each for each in self._present if not each.stays]
        if lasting:
            await self.heal_and_settle(*lasting)
        elif self._change is not None:
            await self._settle()

    # -- internals -----------------------------------------------------------------------------------------------

    def _trace_start(self, fault: str, performer: Performer, detail: Mapping[str, object] | None) -> None:
        described = {} if detail is None else {"detail": dict(detail)}
        self._changes.tracer.emit("fault_started", fault=fault, target=performer.target, **described)  # type: ignore[arg-type]  # none of them is member or stream

    def _begin_change(self, change: str, comes: int) -> None:
        """Trace a change of the group. One that has not settled yet never will: it is over with the next one."""
        self._rounds[change] += 1
        members = self._changes.members.present + comes
        self._change = {"change": change, "round": self._rounds[change], "members": members}
        self._changes.tracer.emit("change_started", **self._change)

    async def _settle(self) -> None:
        await self._changes.settle()
        if self._change is not None:
            self._changes.tracer.emit("change_settled", **self._change)
            self._change = None
