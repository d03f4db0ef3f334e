"""Performing a scenario's steps: the nemesis. Every fault is written into the same trace as what it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    Form,
    GoOver,
    JoinOne,
    KillOwner,
    LeaveOne,
    RestartEach,
    Steady,
)
from comparison.scenarios.processes.children import ended_within
from comparison.scenarios.run.changes import SETTLE_S, Changes
from comparison.scenarios.run.fault_steps import Faults
from comparison.scenarios.run.restart_steps import Restarts
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.scenarios.plan.vocabulary import Step
    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.testbed import Testbed
    from kernel.values import TopicPartition

#: Above this, a commit interval is too long to wait for: the members are asked to commit.
_COMMIT_INTERVAL_MS_MAX = 2000


def _comes_at_a_phase(step: Step) -> bool:
    """A change of a group that rests, and not one that only brings it to its size. `RestartEach` is several."""
    grows = isinstance(step, Form) and step.more is not None
    return grows or isinstance(step, JoinOne | LeaveOne | KillOwner | AddPartitions | GoOver)


class Nemesis:
    """Performs steps against one group."""

    def __init__(self, testbed: Testbed, members: GroupMembers, enter_stage: Callable[[str], None]) -> None:
        self._testbed = testbed
        self._members = members
        self._changes = Changes(testbed, members, enter_stage)
        self._faults = Faults(self._changes)
        self._restarts = Restarts(self._changes)
        self._round = 0
        self._before: Step | None = None

    async def perform(self, step: Step) -> None:
        """One step, until it is over. Raises `WaitTimeout` when what it waits for does not come."""
        if _comes_at_a_phase(step) and not isinstance(self._before, Steady):
            await self._changes.reach_phase()
        self._before = step
        match step:
            case Form():
                await self._form(step)
            case Steady():
                await self._steady()
            case JoinOne():
                await self._change("join", self._join_one, by=1, round_=step.round, counted=True)
            case LeaveOne():
                await self._change("leave", self._leave_one, by=-1)
            case KillOwner():
                await self._change("crash", self._kill_owner, by=-1)
            case AddPartitions():
                await self._add_partitions(step)
            case RestartEach():
                await self._restarts.restart_each(step)
            case GoOver():
                await self._restarts.go_over(step)
            case _:
                await self._faults.perform(step)

    def heal(self) -> None:
        """Undo what is still done. Also after an interrupt."""
        self._changes.heal()

    async def _change(
        self,
        change: str,
        make: Callable[[], Awaitable[object] | None],
        *,
        by: int,
        round_: int = 1,
        counted: bool = False,
    ) -> None:
        members = self._members.present + by
        await self._changes.make(change, make, members=members, round_=round_, counted=counted)

    async def _form(self, step: Form) -> None:
        size = step.size(self._members.present, self._testbed.request.parameters.members)
        coming = size - self._members.present
        self._round += 1

        def join() -> None:
            self._members.join(coming, step.settings)

        if self._members.present == 0 and step.change == "form":
            # Growth to the first size is not measured; it is over when it is quiet, as a change is.
            join()
            await self._changes.settle()
        else:
            stage = "warm" if step.change in ("grow", "mass-start") else "fault"
            await self._changes.make(step.change, join, members=size, round_=self._round, stage=stage)

    def _join_one(self) -> None:
        self._members.join(1)

    async def _leave_one(self) -> None:
        name = self._members.choose_owner()
        self._members.leave(name)
        await ended_within(self._members.child(name), self._changes.takeover_s)

    async def _kill_owner(self) -> None:
        name = self._members.choose_owner()
        self._testbed.tracer.emit("fault_started", fault="kill", target=name)
        await self._members.kill(name)
        self._testbed.tracer.emit("fault_ended", fault="kill", target=name)

    async def _add_partitions(self, step: AddPartitions) -> None:
        topic = self._testbed.request.parameters.topic_names[0]
        before = self._testbed.request.parameters.partitions
        after = before + step.more

        async def grow() -> None:
            self._members.view.grow(await self._testbed.grow_topic(topic, after))
            self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=after)

        detail = {"topic": topic, "before": before, "after": after}
        await self._changes.make("partition-increase", grow, members=self._members.present, detail=detail)

    async def _steady(self) -> None:
        self._changes.enter_stage("steady")
        view = self._members.view
        commit_ms = self._changes.configuration.commit_interval_ms
        patience_s = SETTLE_S + min(commit_ms, _COMMIT_INTERVAL_MS_MAX) / 1000

        def everywhere(offsets: Mapping[TopicPartition, int]) -> bool:
            self._members.check()
            return len(offsets) == len(view.partitions)

        await until(lambda: everywhere(view.delivered), patience_s, "every partition is being delivered")
        if commit_ms > _COMMIT_INTERVAL_MS_MAX:
            self._members.commit()
        await until(lambda: everywhere(view.committed), patience_s, "every partition was committed once")
        await self._changes.reach_phase(commits=True)
