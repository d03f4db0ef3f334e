"""Whether steps can follow each other as they do, in any design: who is there to be killed, which places exist.

A row of the catalogue is written so that they can; a file may say anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.scenarios.plan.faults import FAULTS, TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CutAuthority,
    CutEnsemble,
    DuplicateInstance,
    Form,
    FreezeOwner,
    Inject,
    JoinAndLeave,
    JoinBehind,
    JoinOne,
    KillAtPoint,
    KillCoordinator,
    KillOwner,
    LeaveOne,
    Played,
    RestartEach,
    Resubscribe,
    SlowOwner,
    StartAnew,
)
from kernel.designs import DESIGN_NAMES
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.plan.vocabulary import Step

#: Steps that can only be performed once: they are about a place or a broker that was chosen before the start.
_ONCE = (KillCoordinator, JoinBehind)
_AN_ENSEMBLE = (CutAuthority, CutEnsemble, JoinBehind)
#: Another member has to take over.
_TWO_MEMBERS = (KillOwner, LeaveOne, FreezeOwner, CutAuthority)


class Objection(NamedTuple):
    """Why a step is impossible where it is; steps count from 0."""

    step: int
    why: str


class _Sizes:
    """How large everything is before a step."""

    def __init__(self, scenario: Scenario, parameters: Parameters) -> None:
        self.present = 0  #: members
        self.places = 0  #: where a member has ever been
        self.partitions = parameters.partitions
        self.numbers = {"broker": parameters.brokers, "zookeeper": scenario.zookeeper_servers}
        self.asked = parameters.members
        self.per_place = scenario.members_per_process
        self.topics = parameters.topics

    def after(self, step: Step) -> None:
        before = self.present
        if isinstance(step, Form):
            self.present = max(self.present, step.size(self.present, self.asked))
        elif isinstance(step, JoinOne | SlowOwner):
            self.present += 1
        elif isinstance(step, JoinBehind):
            self.present += 2
        elif isinstance(step, Inject) and step.fault == "join":
            self.present += int(FAULTS["join"].values(step.parameters)["count"])
        elif isinstance(step, KillOwner | LeaveOne):
            self.present = max(0, self.present - 1)
        elif isinstance(step, AddPartitions):
            self.partitions = step.size(self.partitions)
        elif isinstance(step, KillAtPoint):
            self.places += 1
            self.present += step.target != "member"
            return
        self.places += max(0, self.present - before)
        if isinstance(step, JoinAndLeave | DuplicateInstance):
            self.places += 1
        elif isinstance(step, StartAnew):
            self.places += self.present

    @property
    def places_max(self) -> int:
        return -(-self.places // self.per_place)


def objections(scenario: Scenario, parameters: Parameters) -> Iterator[Objection]:
    """Everything that is impossible about the steps, in their order."""
    if not scenario.steps or not isinstance(scenario.steps[0], Form | Played):
        yield Objection(0, "there is no group yet: the first step must be form")
        return
    sizes, seen = _Sizes(scenario, parameters), set[type]()
    for number, step in enumerate(scenario.steps):
        for why in _objections(step, sizes, scenario, parameters):
            yield Objection(number, why)
        if isinstance(step, _ONCE) and type(step) in seen:
            yield Objection(number, "a scenario can have this step once")
        seen.add(type(step))
        sizes.after(step)


def _objections(step: Step, sizes: _Sizes, scenario: Scenario, parameters: Parameters) -> Iterator[str]:
    if isinstance(step, _AN_ENSEMBLE) and scenario.zookeeper_servers < 3:
        yield "needs an ensemble. Set zookeeper_servers = 3"
    if isinstance(step, _TWO_MEMBERS) and sizes.present < 2:
        yield f"needs another member to take over, but there would be {sizes.present} in the group"
    if isinstance(step, KillCoordinator) and parameters.brokers < 2:
        yield "needs another broker to take over. Use two brokers or more"
    if isinstance(step, Form) and step.members is not None and step.more is not None:
        yield "members and more exclude each other"
    if isinstance(step, Form | RestartEach) and step.design not in ("", *DESIGN_NAMES):
        yield unknown("design", step.design, DESIGN_NAMES)
    if isinstance(step, KillAtPoint):
        yield from _at_a_point(step, scenario, parameters)
    if isinstance(step, Resubscribe):
        if not 1 <= step.place <= sizes.places_max:
            several = f"are places 1 to {sizes.places_max}" if sizes.places_max > 1 else "is only place 1"
            yield f"place {step.place}: there {several} by then"
        if strange := [number for number in step.topics if not 0 <= number < parameters.topics]:
            yield f"topic {strange[0]}: there are {parameters.topics} topics, which count from 0"
        if not step.topics:
            yield "topics is empty. Name at least one"
    if isinstance(step, Inject) and step.fault in FAULTS:
        yield from _targets(step.target, sizes)


def _at_a_point(step: KillAtPoint, scenario: Scenario, parameters: Parameters) -> Iterator[str]:
    if step.target == "broker" and parameters.brokers < 2:
        yield "needs another broker to take over. Use two brokers or more"
    if step.target == "server" and scenario.zookeeper_servers > 1:
        yield "kills the only ZooKeeper server. Set zookeeper_servers = 1"


def _targets(target: str, sizes: _Sizes) -> Iterator[str]:
    kind, named = kind_of(target), target.partition("->")[0]
    if kind in (TargetKind.MEMBER, TargetKind.MEMBER_AUTHORITY, TargetKind.MEMBER_DATA):
        number, most = named.removeprefix("m"), sizes.places_max
        if number.isdecimal() and int(number) > most:
            yield f"{target!r}: by then there {'is only m1' if most == 1 else f'are members at m1 to m{most}'}"
    part, _, number = named.rpartition("-")
    if part == "partition" and int(number) >= sizes.partitions:
        yield f"{target!r}: there are {sizes.partitions} partitions, which count from 0"
    elif part in sizes.numbers and int(number) > sizes.numbers[part]:
        most = sizes.numbers[part]
        yield f"{target!r}: there {f'is only {part}-1' if most == 1 else f'are {part}-1 to {part}-{most}'}"
