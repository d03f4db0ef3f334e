"""What is possible at each point of a schedule: which faults fit beside those in effect, and which steps need rest.

Pure. The rules are those of `comparison.scenarios.plan` (`check`), and those of a run that ends: what is healed
must be able to recover. So one broker or one ZooKeeper server at most is broken at a time; who is asked to
leave must be able to; and what waits for the group to settle comes when nothing keeps it from that.

`sequence` makes any list of steps a possible one, by leaving out those that are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.fuzzing.schedule import GROUP, SESSION_MS, SETTINGS
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.faults import FAULTS, check
from comparison.scenarios.plan.membership_vocabulary import CopyWithZombie, Resubscribe
from comparison.scenarios.plan.points import POINTS, points_of_members
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CutAuthority,
    CutEnsemble,
    Form,
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
from kernel.designs import DESIGNS, EAGER
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comparison.fuzzing.schedule import Steps
    from comparison.scenarios.plan.step import Step

K = TargetKind
#: Every schedule begins with it.
START = Form()
MEMBERS_MAX = 5
#: More at once leave nothing that works.
IN_EFFECT_MAX = 3
_MEMBERS = "members"
_BROKERS, _SERVERS = "brokers", "ZooKeeper"
_SUBJECTS = {
    K.BROKER: _BROKERS,
    K.BROKER_ZOOKEEPER: _BROKERS,
    K.SERVER: _SERVERS,
    K.SERVERS: _SERVERS,
    K.ENSEMBLE: _SERVERS,
    K.NETWORK: _SERVERS,
    K.MEMBERS: _MEMBERS,
    K.GROUP: "group",
}
_OF_ONE_MEMBER = frozenset({K.MEMBER, K.MEMBER_AUTHORITY, K.MEMBER_DATA})
#: A clean leave waits for answers of the authority, and so does a client that writes to ZooKeeper by hand.
_NEED_AUTHORITY = frozenset(
    {"restart", "join", "leave", "rolling-restart", "flap", "unsubscribe", "expire", "set-data"}
)


def subject_of(target: str) -> str:
    """What a fault breaks: one member, by its place; the brokers; ZooKeeper; one partition."""
    return _SUBJECTS.get(kind_of(target)) or target.partition("->")[0]


class Situation:
    """The group and the faults in effect after some steps of a schedule for one design."""

    def __init__(self, design: str) -> None:
        self._design = design
        self._settings = configuration(design, GROUP.overridden(settings=dict(SETTINGS))).member
        self.present: list[Inject] = []  #: in effect, in the order in which they came
        self.places: list[str] = []  #: where members are that were not killed and did not leave
        self.size = 0  #: places that were ever used
        self._newcomers: list[str] = []  #: places of a fault that lets members join
        self._arriving: set[str] = set()  #: places whose process may not even have begun its trace
        self.settled = False
        self._is_known = True  #: who is left: some steps choose whom they end when they come
        self._broker_gone = False
        self._brokers_broken = False  #: at any time: a broker that was down may still lack records
        self._grown = False
        self._spare = 1  #: members that must be left so that every topic has one: not all may read all of them

    @property
    def lasting(self) -> list[Inject]:
        """Those that keep the group from settling."""
        return [each for each in self.present if not FAULTS[each.fault].stays]

    @property
    def at_rest(self) -> bool:
        return not self.lasting

    def allows(self, step: Step) -> bool:
        """Whether this step can come next."""
        match step:
            case Inject():
                return self._allows_fault(step)
            case Heal():
                return self._allows_heal(step)
            case Hold():
                return True
            case Form():
                return not self.size
            case Settle() | Steady():
                return self.at_rest
            case _:
                return self.at_rest and self.settled and self._allows_change(step)

    def _allows_change(self, step: Step) -> bool:
        """Whether this step can change a group that has settled."""
        match step:
            case JoinOne() | SlowOwner():
                return self.size < MEMBERS_MAX
            case AddPartitions():
                # Replicas are on all brokers, and one that was cut off may not have registered again.
                return not self._grown and not self._brokers_broken
            case FreezeOwner():
                return len(self.places) > self._spare
            case LeaveOne():
                return len(self.places) > self._spare + 1
            case FreezeAtPoint():
                return (
                    self.size < MEMBERS_MAX
                    and len(self.places) > self._spare
                    and step.point in [point.name for point in points_of_members(self._design)]
                )
            case KillAtPoint():
                room = self.size < MEMBERS_MAX and step.point in {point.name for point in POINTS[self._design]}
                if step.target == "broker":
                    return room and DESIGNS[self._design].coordinator and not self._brokers_broken
                return room and step.target == "member" and len(self.places) > self._spare
            case Resubscribe():
                known = self._is_known and f"m{step.place}" in self.places
                return known and len(self.places) > 1
            case CutAuthority() | CutEnsemble():
                # The member at the server that is cut off was chosen before the start, and must be there.
                return self._is_known and len(self.places) == self.size and not self._brokers_broken
            case CopyWithZombie():
                return self._design == EAGER and not self._brokers_broken  # brokers fence producers in any design
            case _:
                return False

    def take(self, step: Step) -> None:
        """Go on to the situation after `step`."""
        self._take(step)
        if self.settled or isinstance(step, Hold):
            self._arriving.clear()

    def _take(self, step: Step) -> None:
        match step:
            case Form():
                self._come(GROUP.members)
                self.settled = True
            case AddPartitions():
                self._grown = True
            case Resubscribe():
                self._spare = 1 if len(step.topics) == GROUP.topics else 2
            case CutEnsemble():
                # The coordinator loses its session. Until members hear that it is back, they know no broker but its
                # successor, which is also all that they have to bootstrap from: they would be lost with it.
                self._brokers_broken |= DESIGNS[self._design].coordinator
            case Settle() | Steady():
                self.settled = True
            case Inject():
                self._take_fault(step)
            case Heal():
                for each in [each for each in reversed(self.present) if step.heals(each.fault, each.target)]:
                    self._heal(each)
                self.settled = self.at_rest
            case _:
                came = step.turnover(len(self.places), GROUP.members)
                self._come(came.joined)
                for _ in range(came.gone):
                    self._lose_one()
                if isinstance(step, KillAtPoint) and step.target == "broker":
                    self._broker_gone = self._brokers_broken = True

    def ending(self) -> Steps:
        """What the schedule ends with now, so that the group is whole and settled again."""
        if self.lasting:
            return (Heal(),)
        return () if self.settled else (Settle(),)

    def targets(self, kind: TargetKind) -> list[str]:
        """The targets of a kind that there are."""
        members = [f"m{number}" for number in range(1, self.size + 1)] if self._is_known else []
        owner = self._owner()
        named = {
            K.MEMBER: owner + members,
            K.MEMBERS: ["members"],
            K.GROUP: ["group"],
            K.BROKER: ["coordinator", "broker-1"],
            K.SERVER: ["leader", "follower"],
            K.ENSEMBLE: ["ensemble"],
            K.PARTITION: [f"partition-{number}" for number in range(GROUP.partitions)],
            K.MEMBER_AUTHORITY: [f"{each}->authority" for each in owner + members],
            K.MEMBER_DATA: [f"{each}->data" for each in owner + members],
            K.BROKER_ZOOKEEPER: ["coordinator->zookeeper", "broker-1->zookeeper"],
            K.SERVERS: ["follower->ensemble", "leader->ensemble"],
            K.NETWORK: ["follower->network", "leader->network"],
        }
        return named.get(kind, [])

    def _owner(self) -> list[str]:
        """An owner is chosen when the step comes: only where nobody knows better, and somebody must own something."""
        return ["owner"] if self.settled and self.at_rest else []

    def _allows_fault(self, step: Inject) -> bool:
        fault, kind, subject = FAULTS[step.fault], kind_of(step.target), subject_of(step.target)
        needs = fault.needs.get(self._design, {})
        if any(self._settings.get(name) != value for name, value in needs.items()) or not self._fits(step):
            return False
        if len(self.lasting) >= IN_EFFECT_MAX and fault.heals:
            return False
        subjects = {subject_of(each.target) for each in self.lasting}
        if subject in subjects or "owner" in subjects or (subject == "owner" and not self._owner()):
            return False
        if subject == _BROKERS and self._broker_gone:
            return False
        broken = subjects & {_BROKERS, _SERVERS}
        if broken and (subject in (_BROKERS, _SERVERS) or step.fault in _NEED_AUTHORITY):
            return False
        if kind in _OF_ONE_MEMBER and subject == "owner":
            return not fault.stays
        if kind in _OF_ONE_MEMBER:
            is_there = self._is_known and subject in self.places and subject not in self._arriving
            return is_there and not self._leaves_none(step)
        if subject == _MEMBERS:
            return not subjects
        if kind is K.GROUP:
            return self.size + int(fault.values(step.parameters).get("count", 1)) <= MEMBERS_MAX
        return True

    def _allows_heal(self, step: Heal) -> bool:
        """Members that joined leave by it, which the authority must answer; all at once, that is broken no longer."""
        healed = [each for each in self.present if step.heals(each.fault, each.target)]
        subjects = {subject_of(each.target) for each in self.lasting}
        leave = any(kind_of(each.target) is K.GROUP for each in healed) and step.fault
        return bool(healed) and not (leave and subjects & {_BROKERS, _SERVERS})

    def _fits(self, step: Inject) -> bool:
        try:
            check(step.fault, step.target, step.parameters, design=self._design, servers=3)
        except ConfigurationError:
            return False
        return all((each.fault, each.target) != (step.fault, step.target) for each in self.present)

    def _leaves_none(self, step: Inject) -> bool:
        """Whether nobody would be left to take the partitions over until a heal: then nothing can settle."""
        return FAULTS[step.fault].stays and len(self.places) <= self._spare + 1

    def _take_fault(self, step: Inject) -> None:
        fault = FAULTS[step.fault]
        self.settled = False
        self._brokers_broken |= subject_of(step.target) == _BROKERS
        if fault.heals:
            self.present.append(step)
        if kind_of(step.target) is K.GROUP:
            before = len(self.places)
            self._come(int(fault.values(step.parameters).get("count", 1)))
            self._newcomers = self.places[before:]
            self._arriving.update(self._newcomers)
        elif not fault.heals and kind_of(step.target) is K.MEMBER:
            self._arriving.add(step.target)
        elif not fault.heals and kind_of(step.target) is K.MEMBERS:
            self._arriving.update(self.places)
        elif fault.heals and step.target in self.places and (fault.stays or step.fault == "kill"):
            self.places.remove(step.target)

    def _heal(self, each: Inject) -> None:
        self.present.remove(each)
        if kind_of(each.target) is K.GROUP:
            self.places = [place for place in self.places if place not in self._newcomers]
        elif kind_of(each.target) is K.MEMBER and each.target != "owner" and each.target not in self.places:
            self.places.append(each.target)
            self._arriving.add(each.target)

    def _lose_one(self) -> None:
        """Somebody is gone, who is chosen when the step comes."""
        self._is_known = False
        self.places.pop()

    def _come(self, count: int) -> None:
        self.places += [f"m{number}" for number in range(self.size + 1, self.size + count + 1)]
        self.size += count


def sequence(design: str, steps: Iterable[Step]) -> Steps:
    """The steps that are possible, from the start to an end at which the group is whole and settled."""
    return tuple(_possible(design, steps))


def _possible(design: str, steps: Iterable[Step]) -> Iterator[Step]:
    situation = Situation(design)
    situation.take(START)
    yield START
    for step in steps:
        if situation.allows(step):
            situation.take(step)
            yield step
    yield from situation.ending()


def outlasts(design: str, share: float) -> int:
    """A hold of so many session timeouts, in milliseconds; of a coordinator's delay as well, where there is one."""
    delay_ms = SESSION_MS if DESIGNS[design].delays_reassignment else 0
    return round((SESSION_MS + delay_ms) * share)
