"""Performs the steps that a scenario is composed of: inject a fault, hold it, heal it."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.scenarios.plan.faults import fault_named
from comparison.scenarios.plan.vocabulary import heals
from comparison.scenarios.run.link_faults import Close, Cut, Delay, GrowingDelay, HalfOpen
from comparison.scenarios.run.member_faults import Expire, ListenerException, SetData, Slow, SlowRecord, StuckRecord
from comparison.scenarios.run.membership_faults import Join, Leave, RollingRestart, Unsubscribe
from comparison.scenarios.run.process_faults import (
    ClockStep,
    DiskFull,
    Flap,
    Freeze,
    Kill,
    QuorumLoss,
    Restart,
    SlowStart,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.scenarios.plan.vocabulary import Heal, Hold, Inject, Settle
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.performer import Performer

#: What performs each fault of `comparison.scenarios.plan.faults`.
_PERFORMERS: dict[str, type[Performer]] = {
    "kill": Kill,
    "freeze": Freeze,
    "restart": Restart,
    "slow-start": SlowStart,
    "flap": Flap,
    "join": Join,
    "leave": Leave,
    "unsubscribe": Unsubscribe,
    "rolling-restart": RollingRestart,
    "cut": Cut,
    "delay": Delay,
    "growing-delay": GrowingDelay,
    "half-open": HalfOpen,
    "close": Close,
    "quorum-loss": QuorumLoss,
    "disk-full": DiskFull,
    "clock-step": ClockStep,
    "expire": Expire,
    "set-data": SetData,
    "listener-exception": ListenerException,
    "slow": Slow,
    "slow-record": SlowRecord,
    "stuck-record": StuckRecord,
}
PERFORMERS: Mapping[str, type[Performer]] = MappingProxyType(_PERFORMERS)


def add_performer(name: str, performer: type[Performer]) -> None:
    """Let a user's class perform a fault of theirs."""
    _PERFORMERS[name] = performer


class _InEffect(NamedTuple):
    step: Inject
    performer: Performer

    @property
    def stays(self) -> bool:
        return fault_named(self.step.fault).stays


class Injections:
    """The faults of one run that were injected by steps, and are in effect."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._present: list[_InEffect] = []
        self._change: Mapping[str, Any] | None = None  #: the last one, if it has not settled
        self._rounds: Counter[str] = Counter()

    async def inject(self, step: Inject) -> None:
        fault = fault_named(step.fault)
        values = fault.values(step.parameters)
        performer = PERFORMERS[step.fault](self._changes, step.target, values)
        await performer.setup()
        self._changes.enter_stage("fault")
        named: dict[str, Any] = {"fault": step.fault, "target": performer.target}
        if fault.is_change:
            self._begin_change(step.fault, performer.comes)
        self._changes.tracer.emit("fault_started", **named, detail=dict(values))
        if fault.heals:
            # Before it begins: if that fails halfway, there is something to heal.
            self._present.append(_InEffect(step, performer))
        await performer.inject()
        if not fault.heals:
            self._changes.tracer.emit("fault_ended", **named)

    def _begin_change(self, change: str, comes: int) -> None:
        """Trace a change of the group. One that has not settled yet never will: it is over with the next one."""
        self._rounds[change] += 1
        members = self._changes.members.present + comes
        self._change = {"change": change, "round": self._rounds[change], "members": members}
        self._changes.tracer.emit("change_started", **self._change)

    async def hold(self, step: Hold) -> None:
        await asyncio.sleep(step.ms / 1000)

    async def heal(self, step: Heal) -> None:
        """The last one that was injected first; the group settles when no fault is left that keeps it from that."""
        await self._heal(
            [each for each in self._present if heals(step, each.step.fault, each.step.target)],
        )

    async def _heal(self, healed: Sequence[_InEffect]) -> None:
        self._changes.enter_stage("heal")
        for each in reversed(healed):
            self._present.remove(each)
            if change := each.performer.heals_by:
                self._begin_change(change, -each.performer.comes)
            await each.performer.heal()
            self._changes.tracer.emit("fault_ended", fault=each.step.fault, target=each.performer.target)
        if all(each.stays for each in self._present):
            await self._settle()

    async def settle(self, _: Settle) -> None:
        await self._settle()

    async def _settle(self) -> None:
        await self._changes.settle()
        if self._change is not None:
            self._changes.tracer.emit("change_settled", **self._change)
            self._change = None

    def abandon(self) -> None:
        """Undo at once what is in effect, because the run is broken off."""
        for each in reversed(self._present):
            each.performer.abandon()

    async def end(self) -> None:
        """Heal what is still in effect after the last step and does not stay; wait for the group if it was changed."""
        lasting = [each for each in self._present if not each.stays]
        if lasting:
            await self._heal(lasting)
        elif self._change is not None:
            await self._settle()
