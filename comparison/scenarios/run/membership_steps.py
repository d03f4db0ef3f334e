"""Steps about who is a member: one comes back, one is replaced, all start anew, and all of them are slow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import StepPerformer
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.membership_vocabulary import (
        DuplicateInstance,
        JoinAndLeave,
        SlowApplication,
        StartAnew,
    )
    from comparison.scenarios.run.changes import Changes

DUPLICATE = "duplicate"


class MembershipSteps(StepPerformer):
    """Performs the steps in which it matters who is who."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(changes)
        self._settings: Mapping[str, str] = {}  #: of members that join after the group was started anew
        self._begun = 0
        self._labelled = 0

    async def duplicate_instance(self, _: DuplicateInstance) -> None:
        view, name = self._members.view, self._members.choose_owner()
        rivals = [name]

        def refused() -> list[str]:
            self._members.check()
            return [each for each in rivals if each in view.refused]

        async def duplicate() -> None:
            rivals.extend(await self._members.add(1, posing_as=self._members.place_of(name)))
            message = f"{' or '.join(rivals)} to learn that both have the same name"
            loser, *_ = await until(refused, self._changes.takeover_s, message)
            await self._members.go(self._members.place_of(loser), self._changes.takeover_s)

        detail = {"target": name}
        await self._changes.make(DUPLICATE, duplicate, members=self._members.present, detail=detail)

    async def start_anew(self, step: StartAnew) -> None:
        self._settings = step.settings
        self._begun += 1
        members = self._members

        async def all_anew() -> None:
            going, size = members.present_processes(), members.present
            await asyncio.gather(*(members.go(members.place_of(name), self._changes.takeover_s) for name in going))
            await asyncio.sleep(step.away_ms / 1000)
            await members.add(size, step.settings)

        detail = {"settings": dict(step.settings)}
        present = members.present
        stage = "steady" if step.change == "form" else "fault"
        await self._changes.make(step.change, all_anew, members=present, round_=self._begun, stage=stage, detail=detail)

    async def join_and_leave(self, step: JoinAndLeave) -> None:
        self._labelled += 1
        members, round_ = self._members, self._labelled

        async def join() -> None:
            await members.add(1, self._settings)

        async def leave() -> None:
            await members.go(members.place_of(members.present_processes()[0]), self._changes.takeover_s)

        await self._changes.wait_for_phase()
        await self._changes.make(f"{step.label} join", join, members=members.present + 1, round_=round_)
        await self._changes.wait_for_phase()
        await self._changes.make(f"{step.label} leave", leave, members=members.present - 1, round_=round_)

    async def slow_application(self, step: SlowApplication) -> None:
        self._members.delay_all(step.per_record_ms)
