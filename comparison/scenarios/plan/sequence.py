"""Whether steps can follow each other as they do, in any design: who is there to be killed, which places exist.

A row of the catalogue is written so that they can; a file may say anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.scenarios.plan.faults import FAULTS, TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CrashAndReturn,
    CutAuthority,
    CutEnsemble,
    DuplicateInstance,
    Form,
    FreezeOwner,
    Heal,
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
    heals,
)
from kernel.decimals import decimal
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


_OWNER = "owner"
#: All processes have to leave.
_ALL_LEAVE = (RestartEach, StartAnew)
#: These choose a member that owns partitions.
_AN_OWNER = (KillOwner, LeaveOne, FreezeOwner, SlowOwner, CrashAndReturn, DuplicateInstance)
#: Faults of a member that can neither be chosen nor leave, until they are healed.
_AWAY = ("freeze", "kill", "leave", "unsubscribe")
#: Those of them that leave nobody at its place.
_GONE = ("kill", "leave")


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


class _Away:
    """Which members are frozen or gone before a step, as far as the steps say: `owner` may be anybody."""

    def __init__(self) -> None:
        self._since: list[tuple[str, str, int]] = []  #: fault, target and the number of its step, from 1

    def after(self, number: int, step: Step) -> None:
        if isinstance(step, Heal):
            self._since = [each for each in self._since if not heals(step, *each[:2])]
        elif isinstance(step, Inject) and step.fault in FAULTS and kind_of(step.target) is TargetKind.MEMBER:
            if step.fault in (*_GONE, "slow-start", "flap"):  # a frozen process dies as others do
                self._since = [each for each in self._since if each[1] != step.target or each[1] == _OWNER]
            if step.fault in _AWAY:
                self._since.append((step.fault, step.target, number))

    def __len__(self) -> int:
        return len(self._since)

    def frozen(self, place: str = "") -> str:
        """Who at this place (by default: any) is frozen, and since when; '' if nobody is."""
        for fault, target, number in self._since:
            if fault == "freeze" and place in ("", target):
                return f"{'an owner' if target == _OWNER else target} has been frozen since step {number}"
        return ""

    def gone(self, place: str) -> str:
        """Since when nobody is at this place; '' if somebody is."""
        for fault, target, number in self._since:
            if fault in _GONE and target == place:
                return f"nobody has been at {place} since step {number} ({fault})"
        return ""


def objections(scenario: Scenario, parameters: Parameters) -> Iterator[Objection]:
    """Everything that is impossible about the steps, in their order."""
    if not scenario.steps or not isinstance(scenario.steps[0], Form | Played):
        yield Objection(0, "there is no group yet: the first step must be form")
        return
    sizes, away, seen = _Sizes(scenario, parameters), _Away(), set[type]()
    for number, step in enumerate(scenario.steps):
        for why in (*_objections(step, sizes, scenario, parameters), *_nobody_for(step, sizes, away)):
            yield Objection(number, why)
        if isinstance(step, _ONCE) and type(step) in seen:
            yield Objection(number, "a scenario can have this step once")
        seen.add(type(step))
        sizes.after(step)
        away.after(number + 1, step)


def _nobody_for(step: Step, sizes: _Sizes, away: _Away) -> Iterator[str]:
    """Why a step is about members that are frozen or gone."""
    faulty = step if isinstance(step, Inject) and step.fault in FAULTS else None
    place = "" if faulty is None else faulty.target.partition("->")[0]
    has_to_leave = faulty is not None and (
        faulty.fault in ("leave", "restart") or (faulty.fault == "flap" and faulty.parameters.get("by") == "leave")
    )
    chooses = isinstance(step, _AN_OWNER) or place == _OWNER
    if isinstance(step, Resubscribe):
        place = f"m{step.place}"
    if isinstance(step, _ALL_LEAVE) or (faulty is not None and faulty.fault == "rolling-restart"):
        if who := away.frozen():
            yield f"{who}, and a frozen process cannot leave. Heal it first"
    elif place and place != _OWNER and (who := away.gone(place)):
        yield f"{who}. Heal that first"
    elif place and place != _OWNER and (has_to_leave or isinstance(step, Resubscribe)) and (who := away.frozen(place)):
        yield f"{who}, and a frozen process does nothing. Heal it first"
    elif chooses and sizes.present and sizes.present <= len(away):
        yield "no member is left that could own partitions: all are frozen or gone. Heal one first"


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
        place, most = decimal(named.removeprefix("m")), sizes.places_max  # None: the owner's
        if place is not None and place > most:
            yield f"{target!r}: by then there {'is only m1' if most == 1 else f'are members at m1 to m{most}'}"
    part, _, number = named.rpartition("-")
    if part == "partition" and int(number) >= sizes.partitions:
        yield f"{target!r}: there are {sizes.partitions} partitions, which count from 0"
    elif part in sizes.numbers and int(number) > sizes.numbers[part]:
        most = sizes.numbers[part]
        yield f"{target!r}: there {f'is only {part}-1' if most == 1 else f'are {part}-1 to {part}-{most}'}"
