"""Whether steps can follow each other as they do, in any design: who is there to be killed, which places exist.

A row of the catalogue is written so that they can; a file may say anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import Form, Heal, Inject, Played
from kernel.decimals import decimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.plan.step import Sizes, Step

_OWNER = "owner"
#: Faults of a member that can neither be chosen nor leave, until they are healed.
_AWAY = ("freeze", "kill", "leave", "unsubscribe")
#: Those of them that leave nobody at its place.
_GONE = ("kill", "leave")


class Objection(NamedTuple):
    """Why a step is impossible where it is; steps count from 0."""

    step: int
    why: str


class _Away:
    """Which members are frozen or gone before a step, as far as the steps say: `owner` may be anybody."""

    def __init__(self) -> None:
        self._since: list[tuple[str, str, int]] = []  #: fault, target and the number of its step, from 1

    def after(self, number: int, step: Step) -> None:
        if isinstance(step, Heal):
            self._since = [each for each in self._since if not step.heals(*each[:2])]
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
    sizes, away, seen = scenario.sizes(parameters), _Away(), set[type]()
    for number, step in enumerate(scenario.steps):
        for why in (*_objections(step, sizes), *_nobody_for(step, sizes, away)):
            yield Objection(number, why)
        if step.once and type(step) in seen:
            yield Objection(number, "a scenario can have this step once")
        seen.add(type(step))
        sizes.after(step)
        away.after(number + 1, step)


def _nobody_for(step: Step, sizes: Sizes, away: _Away) -> Iterator[str]:
    """Why a step is about members that are frozen or gone."""
    faulty = step if isinstance(step, Inject) and step.fault in FAULTS else None
    place = step.member if faulty is None else faulty.target.partition("->")[0]
    has_to_leave = faulty is not None and (
        faulty.fault in ("leave", "restart") or (faulty.fault == "flap" and faulty.parameters.get("by") == "leave")
    )
    chooses = step.picks_owner or place == _OWNER
    if step.all_leave or (faulty is not None and faulty.fault == "rolling-restart"):
        if who := away.frozen():
            yield f"{who}, and a frozen process cannot leave. Heal it first"
    elif place and place != _OWNER and (who := away.gone(place)):
        yield f"{who}. Heal that first"
    elif place and place != _OWNER and (has_to_leave or step.member) and (who := away.frozen(place)):
        yield f"{who}, and a frozen process does nothing. Heal it first"
    elif chooses and sizes.present and sizes.present <= len(away):
        yield "no member is left that could own partitions: all are frozen or gone. Heal one first"


def _objections(step: Step, sizes: Sizes) -> Iterator[str]:
    if step.needs_ensemble and sizes.numbers["zookeeper"] < 3:
        yield "needs an ensemble. Set zookeeper_servers = 3"
    if step.needs_successor and sizes.present < 2:
        yield f"needs another member to take over, but there would be {sizes.present} in the group"
    if sizes.numbers["broker"] < step.brokers_min:
        yield "needs another broker to take over. Use two brokers or more"
    yield from step.complaints(sizes)
    if isinstance(step, Inject) and step.fault in FAULTS:
        yield from _targets(step.target, sizes)


def _targets(target: str, sizes: Sizes) -> Iterator[str]:
    kind, named = kind_of(target), target.partition("->")[0]
    if kind in (TargetKind.MEMBER, TargetKind.MEMBER_AUTHORITY, TargetKind.MEMBER_DATA):
        place, most = decimal(named.removeprefix("m")), sizes.places  # None: the owner's
        if place is not None and place > most:
            yield f"{target!r}: by then there {'is only m1' if most == 1 else f'are members at m1 to m{most}'}"
    part, _, number = named.rpartition("-")
    if part == "partition" and int(number) >= sizes.partitions:
        yield f"{target!r}: there are {sizes.partitions} partitions, which count from 0"
    elif part in sizes.numbers and int(number) > sizes.numbers[part]:
        most = sizes.numbers[part]
        yield f"{target!r}: there {f'is only {part}-1' if most == 1 else f'are {part}-1 to {part}-{most}'}"
