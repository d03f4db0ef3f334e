"""Steps in which the group grows or shrinks, or runs undisturbed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import SETTLE_S, StepPerformer
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.vocabulary import (
        Form,
        JoinBehind,
        Steady,
        Undisturbed,
    )
    from comparison.scenarios.run.changes import Changes
    from kernel.values import TopicPartition

#: With a longer commit interval the runner does not wait for an automatic commit: it asks the members to commit.
_COMMIT_INTERVAL_MS_MAX = 2000


class GroupSteps(StepPerformer):
    """Performs the steps in which members come and go, one after the other or at once."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(changes)
        self._round = 0

    async def form(self, step: Form) -> None:
        size = step.size(self._members.present, self._testbed.request.parameters.members)
        coming = size - self._members.present
        self._round += 1

        async def join() -> None:
            await self._members.join_spread(coming, step.spread_ms, step.settings, step.design)

        if self._members.present == 0 and step.change == "form":
            # Growth to the first size is not measured. Like a change, it ends when the group is quiet.
            await join()
            await self._changes.settle()
        else:
            stage = "warm" if step.change in ("grow", "mass-start") else "fault"
            await self._changes.make(step.change, join, members=size, round_=self._round, stage=stage)

    async def join_behind(self, step: JoinBehind) -> None:
        view = self._members.view

        def others_rebalance() -> bool:
            self._members.check_joining()
            done = view.rebalanced()  # where nobody waits for the others, a rebalance takes milliseconds
            return any(
                process in view.rebalancing() or done.get(process, 0) > ended for process, ended in before.items()
            )

        async def join() -> None:
            self._members.join(1)
            await until(others_rebalance, self._changes.takeover_s, "a member to rebalance for the one that joins")
            await asyncio.sleep(step.after_ms / 1000)
            self._members.join(1)

        before = view.rebalanced()
        detail = {"target": self._members.process_at(self._members.next_places(1)[0])}
        await self._changes.make("join-behind", join, members=self._members.present + 2, detail=detail)

    async def undisturbed(self, step: Undisturbed) -> None:
        self._changes.enter_stage("steady")
        bystander = self._testbed.bystander
        assert bystander is not None, "the step brings the bystander with it"
        wanted = bystander.operations + step.operations

        def has_operated() -> bool:
            self._members.check()
            return bystander.operations >= wanted

        await until(has_operated, SETTLE_S, f"the bystander to do {step.operations} operations")

    async def steady(self, _: Steady) -> None:
        self._changes.enter_stage("steady")
        view = self._members.view
        commit_ms = self._configuration.commit_interval_ms
        patience_s = SETTLE_S + min(commit_ms, _COMMIT_INTERVAL_MS_MAX) / 1000

        def everywhere(offsets: Mapping[TopicPartition, int]) -> bool:
            self._members.check()
            return view.partitions <= offsets.keys()

        await until(lambda: everywhere(view.delivered), patience_s, "records of every partition to be delivered")
        if commit_ms > _COMMIT_INTERVAL_MS_MAX:
            self._members.commit()
        await until(lambda: everywhere(view.committed), patience_s, "a commit of every partition")
        await self._changes.wait_for_phase(commits=True)
