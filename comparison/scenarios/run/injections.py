"""Performs the steps that a scenario is composed of: inject a fault, hold it, heal it."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.scenarios.plan.faults import fault_named
from comparison.scenarios.plan.vocabulary import Heal, heals
from comparison.scenarios.run.link_faults import Close, Cut, Delay, GrowingDelay, HalfOpen
from comparison.scenarios.run.member_faults import Expire, SetData, Slow, SlowRecord, StuckRecord
from comparison.scenarios.run.process_faults import Flap, Freeze, Kill, QuorumLoss, Restart, SlowStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.vocabulary import Hold, Inject
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.performer import Performer

#: What performs each fault of `comparison.scenarios.plan.faults`.
PERFORMERS: Mapping[str, type[Performer]] = MappingProxyType(
    {
        "kill": Kill,
        "freeze": Freeze,
        "restart": Restart,
        "slow-start": SlowStart,
        "flap": Flap,
        "cut": Cut,
        "delay": Delay,
        "growing-delay": GrowingDelay,
        "half-open": HalfOpen,
        "close": Close,
        "quorum-loss": QuorumLoss,
        "expire": Expire,
        "set-data": SetData,
        "slow": Slow,
        "slow-record": SlowRecord,
        "stuck-record": StuckRecord,
    }
)
_ALL = Heal()
#: A fault that is measured as a change of the group.
_KILL = "kill"


class _InEffect(NamedTuple):
    step: Inject
    performer: Performer


class Injections:
    """The faults of one run that were injected by steps, and are in effect."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._present: list[_InEffect] = []
        self._kills: list[Mapping[str, Any]] = []  #: changes that have not settled
        self._killed = 0

    async def inject(self, step: Inject) -> None:
        fault = fault_named(step.fault)
        values = fault.values(step.parameters)
        performer = PERFORMERS[step.fault](self._changes, step.target, values)
        await performer.setup()
        self._changes.enter_stage("fault")
        named: dict[str, Any] = {"fault": step.fault, "target": performer.target}
        if step.fault == _KILL:
            self._killed += 1
            change: dict[str, Any] = {"change": _KILL, "round": self._killed, "members": self._changes.members.present}
            self._kills.append(change)
            self._changes.tracer.emit("change_started", **change)
        self._changes.tracer.emit("fault_started", **named, detail=dict(values))
        if fault.heals:
            # Before it begins: if that fails halfway, there is something to heal.
            self._present.append(_InEffect(step, performer))
        await performer.inject()
        if not fault.heals:
            self._changes.tracer.emit("fault_ended", **named)

    async def hold(self, step: Hold) -> None:
        await asyncio.sleep(step.ms / 1000)

    async def heal(self, step: Heal) -> None:
        """The last one that was injected first; the group settles when no fault is left."""
        self._changes.enter_stage("heal")
        for each in [each for each in reversed(self._present) if heals(step, each.step.fault, each.step.target)]:
            self._present.remove(each)
            await each.performer.heal()
            self._changes.tracer.emit("fault_ended", fault=each.step.fault, target=each.performer.target)
        if not self._present:
            await self._changes.settle()
            for change in self._kills:
                self._changes.tracer.emit("change_settled", **change)
            self._kills.clear()

    def abandon(self) -> None:
        """Undo at once what is in effect, because the run is broken off."""
        for each in reversed(self._present):
            each.performer.abandon()

    async def end(self) -> None:
        """Heal what is still in effect after the last step, and wait for the group if any fault was injected."""
        if self._present:
            await self.heal(_ALL)
