"""Performs a scenario's steps: the nemesis. Every fault is written into the same trace as its effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.step_names import name_of
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    CopyWithZombie,
    CrashAndReturn,
    CutAuthority,
    CutEnsemble,
    DuplicateInstance,
    Form,
    FreezeOwner,
    Heal,
    Hold,
    Inject,
    JoinAndLeave,
    JoinBehind,
    JoinOne,
    KillAtPoint,
    KillCoordinator,
    KillOwner,
    LeaveOne,
    OwnStep,
    Played,
    RestartEach,
    Resubscribe,
    Settle,
    SlowApplication,
    SlowOwner,
    StartAnew,
    Steady,
    Undisturbed,
)
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

    from comparison.scenarios.plan.vocabulary import Step
    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.testbed import Testbed

    #: Plays against a group until it is asked to stop.
    Player = Callable[[Changes], Awaitable[None]]


async def nobody(_: Changes) -> None:
    """Return at once: nobody plays."""


def performers(
    changes: Changes, injections: Injections, play: Player = nobody
) -> Mapping[type[Step], Callable[[Any], Awaitable[None]]]:
    """What performs each kind of step; `play` performs what is asked for by hand."""
    group, faults, restarts = GroupSteps(changes, injections), Faults(changes, injections), Restarts(changes)
    membership = MembershipSteps(changes)

    async def played(_: Played) -> None:
        await play(changes)

    return {
        Form: group.form,
        Steady: group.steady,
        Undisturbed: group.undisturbed,
        JoinOne: group.join_one,
        JoinBehind: group.join_behind,
        LeaveOne: group.leave_one,
        KillOwner: group.kill_owner,
        AddPartitions: group.add_partitions,
        RestartEach: restarts.restart_each,
        Resubscribe: restarts.resubscribe,
        CopyWithZombie: CopySteps(changes).copy_with_zombie,
        CrashAndReturn: membership.crash_and_return,
        DuplicateInstance: membership.duplicate_instance,
        StartAnew: membership.start_anew,
        JoinAndLeave: membership.join_and_leave,
        SlowApplication: membership.slow_application,
        FreezeOwner: faults.freeze_owner,
        SlowOwner: faults.slow_owner,
        CutAuthority: faults.cut_authority,
        CutEnsemble: faults.cut_ensemble,
        KillCoordinator: faults.kill_coordinator,
        KillAtPoint: KillSteps(changes).kill_at_point,
        Inject: injections.inject,
        Hold: injections.hold,
        Heal: injections.heal,
        Settle: injections.settle,
        Played: played,
    }


def _comes_at_a_phase(step: Step) -> bool:
    """Whether a step changes a group at rest, so that its phase is drawn. `RestartEach` draws one for each restart."""
    grows = isinstance(step, Form) and step.more is not None
    comes_or_goes = JoinOne | LeaveOne | KillOwner | KillAtPoint | CrashAndReturn | DuplicateInstance
    return grows or isinstance(step, comes_or_goes | AddPartitions | Resubscribe)


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
        if _comes_at_a_phase(step) and not isinstance(self._before, Steady):
            await self._changes.wait_for_phase()
        self._before = step
        if isinstance(step, OwnStep):
            with own_code(name_of(type(step)), self._changes):
                await step.perform(self._changes)
            return
        await self._performers[type(step)](step)

    async def end_faults(self) -> None:
        """After the last step, heal the faults that steps have injected and not healed. Raises `WaitTimeout`."""
        await self._injections.end()

    def heal(self) -> None:
        """Undo the faults that are still in effect, also after an interrupt."""
        self._injections.abandon()
        self._changes.testbed.heal_links()
