"""Draws schedules: number n of a seed is always the same one. Pure.

A new fault of the table is drawn as it stands: its targets and parameters say all that is needed. Kinds of targets are
drawn by weight, then one of the faults that such a target can have.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from comparison.fuzzing.schedule import Schedule
from comparison.fuzzing.situation import START, Situation, outlasts
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.links import DEFAULT, PRESETS, PRIORITIES, canonical
from comparison.scenarios.plan.membership_vocabulary import CopyWithZombie, Resubscribe
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.plan.points import POINTS, points_of_members
from comparison.scenarios.plan.targets import TargetKind
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CutAuthority,
    CutEnsemble,
    FreezeAtPoint,
    FreezeOwner,
    Heal,
    Hold,
    Inject,
    JoinOne,
    KillAtPoint,
    LeaveOne,
    Settle,
    SlowOwner,
    Steady,
)
from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from comparison.scenarios.plan.faults import Fault, Given, Number
    from comparison.scenarios.plan.step import Step

K = TargetKind
#: How many steps are drawn after the group has formed, without those that end the schedule.
STEPS_MIN, STEPS_MAX = 2, 7
#: With the first one, and before the end.
SIMULATED_STEPS_MIN = 5
#: How often a kind of target is drawn, beside 1 of any other: faults of servers need an ensemble of their own.
_WEIGHTS: Mapping[TargetKind, float] = {
    K.MEMBER: 5,
    K.MEMBER_AUTHORITY: 3,
    K.MEMBER_DATA: 1,
    K.BROKER: 3,
    K.BROKER_ZOOKEEPER: 2,
    K.GROUP: 1.5,
    K.SERVER: 0.4,
    K.SERVERS: 0.5,
    K.ENSEMBLE: 0.1,
    K.NETWORK: 0.1,
}
_HOLDS = (0.1, 0.3, 0.8, 1.5)  #: session timeouts
#: Long enough more often for others to take over: virtual time costs little.
_SIMULATED_HOLDS = (0.1, 0.8, 1.5, 2.0)
_OVER_MS = (300, 1000, 2000)
#: Of steps that wait for others to take over before they heal.
_TAKEN_OVER_MS = (2000, 3000, 4000)
#: No parameter in milliseconds is drawn longer, and no other number higher.
_MS_MOST, _NUMBER_MOST = 1500, 2
#: What is longer by default is nothing that a run waits for.
_WAITED_MS_MAX = 60_000
_TRIES = 40
#: Of simulated schedules: of those of the zookeeper design, those with fixes; of those at rest, those that go on with
#: somebody who is replaced while it stands still.
_FIXED_SHARE, _REPLACED_SHARE = 0.7, 0.75
#: How often it is frozen between an answer and what comes of it, beside 1 for the beginning of a phase.
_POINT_WEIGHTS: Mapping[str, float] = {"zk_op": 3}
#: Not every rebalance passes it: there is nothing to commit if no offset has changed.
_UNSURE = "R4"
#: A broker's successor leads its partitions after so many session timeouts.
_SUCCEEDED = 2.0


def draw(seed: int, number: int, design: str, *, simulated: bool = False) -> Schedule:
    """Schedule `number` of a seed; a simulated one has enough steps, a fault, and a drawn world."""
    rolls = random.Random(f"{seed} {number} {design}")  # reproducible, not secret
    drawn = _Drawing(rolls, design, _SIMULATED_HOLDS if simulated else _HOLDS)
    for _ in range(rolls.randint(STEPS_MIN, STEPS_MAX)):
        drawn.add()
    if simulated:
        drawn.add_enough()
    steps = drawn.ended()
    if simulated:
        steps = drawn.replaced()
    schedule = Schedule(seed=seed, number=number, design=design, steps=steps, run_seed=rolls.randint(0, SEED_MAX))
    return _in_a_world(schedule, rolls) if simulated else schedule


def _in_a_world(schedule: Schedule, rolls: random.Random) -> Schedule:
    """Plain latencies of one machine in a half of all schedules, and any order of turns in a half."""
    links = rolls.choice((DEFAULT, DEFAULT, *PRESETS))
    priorities = rolls.choice((0, 0, 0, 1, 2, 3))
    return replace(
        schedule,
        simulated=True,
        links=canonical((links, f"{PRIORITIES}={priorities}")),
        fixed=schedule.design == ZOOKEEPER and rolls.random() < _FIXED_SHARE and not _by_hand(schedule),
    )


def _by_hand(schedule: Schedule) -> bool:
    """Whether somebody writes owners by hand: then no promise about owners holds."""
    return any(isinstance(step, Inject) and step.fault == "set-data" for step in schedule.steps)


class _Drawing:
    def __init__(self, rolls: random.Random, design: str, holds: Sequence[float]) -> None:
        self._rolls = rolls
        self._holds = holds
        self._design = design
        self._situation = Situation(design)
        self._steps: list[Step] = []
        self._take(START)

    def add(self) -> None:
        """Draw steps until one is possible. Something always is: to hold."""
        for _ in range(_TRIES):
            moves = self._moves()
            (move,) = self._rolls.choices([move for move, _ in moves], [weight for _, weight in moves])
            step = move()
            if step is not None and self._situation.allows(step):
                break
        else:
            step = self._hold()
        if isinstance(step, Heal):
            self._hold_after_a_fault()
        self._take(step)

    def add_enough(self) -> None:
        """Add what a simulated schedule still lacks."""
        while len(self._steps) < SIMULATED_STEPS_MIN or not any(isinstance(step, Inject) for step in self._steps):
            self.add()

    def replaced(self) -> tuple[Step, ...]:
        """In many, somebody is replaced at the end while it stands still, and goes on then.

        That is a member in the middle of a rebalance, an application that copies records, or a broker.
        """
        endings: list[tuple[tuple[Step, ...], float]] = [
            ((self._freeze_at_point(),), 3),
            ((CopyWithZombie(),), 2),
            (self._frozen_broker(), 2),
        ]
        possible = [(steps, weight) for steps, weight in endings if self._situation.allows(steps[0])]
        if possible and self._rolls.random() < _REPLACED_SHARE:
            (steps,) = self._rolls.choices([steps for steps, _ in possible], [weight for _, weight in possible])
            for step in steps:
                self._take(step)
        return tuple(self._steps)

    def _frozen_broker(self) -> tuple[Step, ...]:
        target = self._rolls.choice(self._situation.targets(K.BROKER))
        return Inject("freeze", target), Hold(outlasts(self._design, _SUCCEEDED)), Heal()

    def ended(self) -> tuple[Step, ...]:
        ending = self._situation.ending()
        if Heal() in ending:
            self._hold_after_a_fault()
        for step in ending:
            self._take(step)
        return tuple(self._steps)

    def _hold_after_a_fault(self) -> None:
        """If it were healed at once, nothing would come of it."""
        if isinstance(self._steps[-1], Inject):
            self._take(self._hold())

    def _take(self, step: Step) -> None:
        self._situation.take(step)
        self._steps.append(step)

    def _moves(self) -> list[tuple[Callable[[], Step | None], float]]:
        situation, held = self._situation, isinstance(self._steps[-1], Hold)
        if not situation.at_rest:
            return [(self._inject, 3), (self._heal, 1.5), (self._hold, 0 if held else 1.5)]
        if not situation.settled:
            return [(self._inject, 3), (Settle, 2), (self._hold, 0 if held else 1)]
        return [
            (self._inject, 6),
            (Steady, 0 if isinstance(self._steps[-1], Steady) else 2),
            (JoinOne, 0.5),
            (AddPartitions, 0.5),
            (self._resubscribe, 0.5),
            (self._kill_at_point, 1.5),
            (LeaveOne, 0.3),
            (self._slow_owner, 0.3),
            (self._cut_authority, 0.2),
            (self._cut_ensemble, 0.1),
            (self._freeze_owner, 1),
        ]

    def _hold(self) -> Hold:
        return Hold(outlasts(self._design, self._rolls.choice(self._holds)))

    def _heal(self) -> Heal:
        each = self._rolls.choice(self._situation.present)
        return Heal(each.fault, each.target)

    def _resubscribe(self) -> Resubscribe:
        """Always the same member, so that the others read every topic."""
        return Resubscribe(1, self._rolls.choice(((0,), (1,), (0, 1))))

    def _kill_at_point(self) -> KillAtPoint:
        point = self._rolls.choice(POINTS[self._design])
        return KillAtPoint(point.name, self._rolls.choice(("member", "broker")))

    def _freeze_at_point(self) -> FreezeAtPoint:
        points = [point for point in points_of_members(self._design) if point.name != _UNSURE]
        (point,) = self._rolls.choices(points, [_POINT_WEIGHTS.get(point.kind, 1) for point in points])
        return FreezeAtPoint(point.name, self._rolls.choice(_OVER_MS))

    def _slow_owner(self) -> SlowOwner:
        return SlowOwner(over_ms=self._rolls.choice(_OVER_MS))

    def _cut_authority(self) -> CutAuthority:
        return CutAuthority(over_ms=self._rolls.choice(_TAKEN_OVER_MS))

    def _cut_ensemble(self) -> CutEnsemble:
        return CutEnsemble(over_ms=self._rolls.choice(_TAKEN_OVER_MS))

    def _freeze_owner(self) -> FreezeOwner:
        return FreezeOwner(over_ms=self._rolls.choice(_OVER_MS))

    def _inject(self) -> Step | None:
        kinds = list(TargetKind)
        (kind,) = self._rolls.choices(kinds, [_WEIGHTS.get(kind, 1) for kind in kinds])
        faults = [fault for fault in FAULTS.values() if kind in fault.targets and self._design in fault.designs]
        targets = self._situation.targets(kind)
        if not faults or not targets:
            return None
        fault = self._rolls.choice(faults)
        return Inject(fault.name, self._rolls.choice(targets), self._parameters(fault))

    def _parameters(self, fault: Fault) -> dict[str, Given]:
        """Values that are not the default ones."""
        drawn = {each.name: self._value(each) for each in fault.parameters}
        return {each.name: drawn[each.name] for each in fault.parameters if drawn[each.name] != each.default}

    def _value(self, parameter: Number | Choice) -> Given:
        if isinstance(parameter, Choice):
            return self._rolls.choice(parameter.words)
        most = _MS_MOST if parameter.name.endswith("_ms") else _NUMBER_MOST
        if parameter.default > _WAITED_MS_MAX:
            most = parameter.most
        wanted = self._rolls.choice((parameter.default // 4, parameter.default, parameter.default * 2))
        return max(parameter.least, min(wanted, most, parameter.most))
