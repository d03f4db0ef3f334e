"""What was played in a group as steps of a scenario: each command is steps, or has a reason why none says it. Pure.

Steps wait for nothing but their moments (`At`), which count from the end of the first one, as the game's do from when
its groups had formed. So what a group needs for one change delays none of the later ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.playground import commands
from comparison.playground.commands import MemberAction
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import AddPartitions, At, Form, Heal, Inject, Rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from comparison.playground.messages import Limits
    from comparison.scenarios.plan.scenario import Scenario

MS_PER_S = 1000
_STEPPING = "no step of a scenario holds a member before its ZooKeeper operations"


class Act(NamedTuple):
    """A command that a group accepted, and when, since the game began."""

    at_ms: int
    command: commands.GroupCommand


class Left(NamedTuple):
    """What no step says: before which step it was done, in words with the reason."""

    before: int
    text: str


class Steps(NamedTuple):
    """The steps of a game, and what they leave out."""

    steps: tuple[Step, ...]
    left: tuple[Left, ...]


def steps_of(acts: Sequence[Act], begun_ms: int, until_ms: int, around: Scenario, limits: Limits) -> Steps:
    """The steps of these acts, in their order, in a game whose groups had formed at `begun_ms`.

    They last until `until_ms`, and are those of a scenario that is as `around` in everything else. What was done before
    the groups had formed comes at once when they have.
    """
    writer = _Writer(around, limits)
    for act in acts:
        writer.write(act, max(0, act.at_ms - begun_ms))
    steps = (*writer.steps, At(max(0, until_ms - begun_ms)), *writer.thawed())
    return Steps(steps, tuple(writer.left))


#: Steps, or why no step says a command.
_Found = list[Step] | str


class _Writer:
    """Knows who is away, by which fault, and what is in effect."""

    def __init__(self, around: Scenario, limits: Limits) -> None:
        self._around, self._limits = around, limits
        self._places, self._partitions = around.defaults.members, around.defaults.partitions
        self._gone: dict[str, str] = {}  #: the fault that a start heals, by place
        self._present: dict[tuple[str, str], str] = {}  #: fault and place -> target
        self.steps: tuple[Step, ...] = (Form(),)
        self.left: list[Left] = []
        self._actions: Mapping[MemberAction, Callable[[str, commands.ActOnMember], _Found]] = {
            MemberAction.START: self._start,
            MemberAction.LEAVE: self._leave,
            MemberAction.RESTART: lambda member, _: [*self._leave(member, _), *self._start(member, _)],
            MemberAction.KILL: self._kill,
            MemberAction.FREEZE: lambda member, _: [self._inject("freeze", member, member)],
            MemberAction.CONTINUE: lambda member, _: self._heal("freeze", member, commits=True),
            MemberAction.CUT: lambda member, _: [self._inject("cut", member, f"{member}->authority")],
            MemberAction.HEAL: lambda member, _: self._heal("cut", member),
            MemberAction.SLOW: self._slow,
        }

    def write(self, act: Act, at_ms: int) -> None:
        found = self._steps(act.command)
        if not isinstance(found, str):
            steps = (*self.steps, At(at_ms), *found)
            objection = next(objections(replace(self._around, steps=steps), self._around.defaults), None)
            if objection is None:
                self.steps = steps
                return
            found = objection.why
        self.left.append(Left(len(self.steps), f"at {at_ms / MS_PER_S:g} s, {told(act.command)}: {found}"))

    def _steps(self, command: commands.GroupCommand) -> _Found:
        match command:
            case commands.ActOnMember():
                return self._actions[command.action](command.member, command)
            case commands.AddMembers():
                return self._add(command.count) or "there was no room for more"
            case commands.Restore():
                return self._restore(max(self._around.defaults.members, command.members_min))
            case commands.AddPartitions():
                more = min(command.count, self._limits.partitions - self._partitions)
                if more < 1:
                    return "there was no room for more"
                self._partitions += more
                return [AddPartitions(more=more, wait=False)]
            case commands.SetRate():
                return [Rate(command.per_second)]
            case commands.SetStepping() | commands.LetGo():
                return _STEPPING

    def _add(self, wanted: int) -> list[Step]:
        """Those who were added and have ended come back first."""
        added = [place for place in self._gone if _number(place) > self._around.defaults.members]
        back = sorted(added, key=_number)[:wanted]
        found: list[Step] = [Heal(self._gone.pop(place), place, wait=False) for place in back]
        count = min(wanted - len(back), self._limits.members - self._places)
        if count:
            self._places += count
            found.append(Inject("join", "group", {"count": count}))
        return found

    def _restore(self, first: int) -> list[Step]:
        found: list[Step] = []
        for fault, member in list(self._present):
            found += self._heal(fault, member, commits=fault == "freeze")
        for place in (f"m{number}" for number in range(first + 1, self._places + 1)):
            if place not in self._gone:
                self._gone[place] = "leave"
                found.append(Inject("leave", place))
        for place in sorted(self._gone, key=_number):
            if _number(place) <= first:
                found.append(Heal(self._gone.pop(place), place, wait=False))
        if first > self._places:
            found += self._add(first - self._places)
        return [*found, Rate(self._around.defaults.rate)]

    # -- members -----------------------------------------------------------------------------------------------------

    def thawed(self) -> list[Step]:
        """As at the end of a game, who is frozen goes on with a commit; with what a run heals by itself none comes."""
        frozen = sorted((member for fault, member in self._present if fault == "freeze"), key=_number)
        return [step for member in frozen for step in self._heal("freeze", member, commits=True)]

    def _inject(self, fault: str, member: str, target: str, **parameters: int | str) -> Step:
        self._present[fault, member] = target
        return Inject(fault, target, parameters)

    def _heal(self, fault: str, member: str, *, commits: bool = False) -> list[Step]:
        target = self._present.pop((fault, member), "")
        return [Heal(fault, target, wait=False, commits=commits)] if target else []

    def _start(self, member: str, _: commands.ActOnMember) -> _Found:
        fault = self._gone.pop(member, "")
        if not fault:
            return "it had ended by itself, and a start heals only what a step has ended"
        return [Heal(fault, member, wait=False)]

    def _leave(self, member: str, _: commands.ActOnMember) -> list[Step]:
        self._gone[member] = "leave"
        return [*self._heal("slow-record", member), Inject("leave", member)]

    def _kill(self, member: str, _: commands.ActOnMember) -> list[Step]:
        """A cut is healed before, as in the game; a process that is frozen dies frozen."""
        self._gone[member] = "kill"
        before = [*self._heal("cut", member), *self._heal("slow-record", member)]
        return [*before, Inject("kill", member), *self._heal("freeze", member)]

    def _slow(self, member: str, command: commands.ActOnMember) -> list[Step]:
        before = self._heal("slow-record", member)
        if not command.delay_ms:
            return before
        return [*before, self._inject("slow-record", member, member, per_record_ms=command.delay_ms)]


def _number(place: str) -> int:
    return int(place.removeprefix("m"))


def told(command: commands.GroupCommand) -> str:
    """A command in a few words."""
    match command:
        case commands.ActOnMember():
            return f"{command.action} {command.member}"
        case commands.AddMembers():
            return f"add {command.count} members"
        case commands.AddPartitions():
            return f"add {command.count} partitions"
        case commands.SetRate():
            return f"produce {command.per_second} records a second"
        case commands.Restore():
            return "back to how it began"
        case commands.SetStepping():
            return f"{'step' if command.on else 'step no more:'} {command.member}"
        case commands.LetGo():
            return f"let {command.member} go"
