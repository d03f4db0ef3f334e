"""Performs a scenario's steps: the nemesis. Every fault is written into the same trace as its effects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.step import MeasuredFault, OwnStep
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
from comparison.scenarios.run.topic_steps import TopicSteps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.scenarios.plan.step import Step
    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.testbed import Testbed

    #: Plays against a group until it is asked to stop.
    Player = Callable[[Changes], Awaitable[None]]


async def nobody(_: Changes) -> None:
    """Return at once: nobody plays."""


def performers(
    changes: Changes, injections: Injections, play: Player = nobody
) -> Mapping[str, Callable[[Any], Awaitable[None]]]:
    """What performs each kind of step but faults, by its name: `freeze-owner` by the method `freeze_owner`."""
    of_all = (
        GroupSteps(changes),
        Faults(changes, injections),
        Restarts(changes),
        MembershipSteps(changes),
        CopySteps(changes),
        KillSteps(changes, injections),
        TopicSteps(changes),
        injections,
    )
    methods = {name: name.replace("-", "_") for name in STEPS}
    found = {
        name: getattr(each, method) for name, method in methods.items() for each in of_all if hasattr(each, method)
    }
    return {**found, "played": lambda _: play(changes)}


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
        is_first = self._before is None
        await self._perform(step)
        if is_first:
            self._changes.begun_s = asyncio.get_running_loop().time()

    async def _perform(self, step: Step) -> None:
        if step.comes_at_a_phase and not isinstance(self._before, Steady):
            await self._changes.wait_for_phase()
        self._before = step
        if isinstance(step, OwnStep):
            with own_code(name_of(type(step)), self._changes):
                await step.perform(self._changes)
            return
        if isinstance(step, MeasuredFault):
            await self._injections.measure(step)
            return
        await self._performers[name_of(type(step))](step)

    async def end_faults(self) -> None:
        """After the last step, heal the faults that steps have injected and not healed. Raises `WaitTimeout`."""
        await self._injections.end()

    def heal(self) -> None:
        """Undo the faults that are still in effect, also after an interrupt."""
        self._injections.abandon()
        self._changes.testbed.heal_links()
