"""Performs a scenario's steps: the nemesis. Every fault is written into the same trace as its effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.step import OwnStep
from comparison.scenarios.plan.step_names import STEPS, name_of
from comparison.scenarios.plan.vocabulary import Steady
from comparison.scenarios.run.changes import Changes
from comparison.scenarios.run.copy_steps import CopySteps
from comparison.scenarios.run.fault_steps import Faults
from comparison.scenarios.run.group_steps import GroupSteps
from comparison.scenarios.run.injections import Injections
from comparison.scenarios.run.kill_steps import KillSteps
from comparison.scenarios.run.membership_steps import MembershipSteps
from comparison.scenarios.run.own_code import own_code
from comparison.scenarios.run.restart_steps import Restarts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.scenarios.plan.step import Step
    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.testbed import Testbed

    #: Plays against a group until it is asked to stop.
    Player = Callable[[Changes], Awaitable[None]]


async def nobody(_: Changes) -> None:
    """Return at once: nobody plays."""


class _Played:
    """Performs what is asked for by hand."""

    def __init__(self, changes: Changes, play: Player) -> None:
        self._changes = changes
        self._play = play

    async def played(self, _: Step) -> None:
        await self._play(self._changes)


def performers(
    changes: Changes, injections: Injections, play: Player = nobody
) -> Mapping[str, Callable[[Any], Awaitable[None]]]:
    """What performs each kind of step, by its name: `kill-owner` by the method `kill_owner` of one of these."""
    of_all = (
        GroupSteps(changes, injections),
        Faults(changes, injections),
        Restarts(changes),
        MembershipSteps(changes, injections),
        CopySteps(changes),
        KillSteps(changes),
        injections,
        _Played(changes, play),
    )
    names = (*STEPS, "played")
    methods = {name: name.replace("-", "_") for name in names}
    return {name: getattr(each, method) for name, method in methods.items() for each in of_all if hasattr(each, method)}


class Nemesis:
    """Performs steps against one group."""

    def __init__(
        self, testbed: Testbed, members: GroupMembers, enter_stage: Callable[[str], None], play: Player = nobody
    ) -> None:
        self._changes = Changes(testbed, members, enter_stage)
        self._injections = Injections(self._changes)
        self._performers = performers(self._changes, self._injections, play)
        self._before: Step | None = None

    async def perform(self, step: Step) -> None:
        """Perform one step to its end. Raises `WaitTimeout` when what it waits for does not come."""
        if step.comes_at_a_phase and not isinstance(self._before, Steady):
            await self._changes.wait_for_phase()
        self._before = step
        if isinstance(step, OwnStep):
            with own_code(name_of(type(step)), self._changes):
                await step.perform(self._changes)
            return
        await self._performers[name_of(type(step))](step)

    async def end_faults(self) -> None:
        """After the last step, heal the faults that steps have injected and not healed. Raises `WaitTimeout`."""
        await self._injections.end()

    def heal(self) -> None:
        """Undo the faults that are still in effect, also after an interrupt."""
        self._injections.abandon()
        self._changes.testbed.heal_links()
