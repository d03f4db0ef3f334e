"""An own fault and two own steps, for `own-faults.toml` beside it; docs/own-scenarios.md explains them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rebalance_lab.extending import Fault, Group, Number, OwnStep, Performer, TargetKind, own_fault, own_step


@own_fault(
    Fault(
        name="hiccups",
        does="Freezes the process for for_ms, again and again with every_ms in between, until it is healed.",
        heals="The process goes on undisturbed.",
        targets=(TargetKind.MEMBER,),
        parameters=(Number("for_ms", 200, 1, 10_000), Number("every_ms", 300, 1, 60_000)),
    )
)
class Hiccups(Performer):
    """Short pauses, as of a garbage collector: each too short for a session timeout."""

    async def setup(self) -> None:
        self.target = self.member(self.target)  # `owner` becomes the process that is chosen

    async def inject(self) -> None:
        self._hiccups = asyncio.create_task(self._hiccup())

    async def _hiccup(self) -> None:
        child = self.members.child(self.target)
        while True:
            child.freeze()
            try:
                await asyncio.sleep(self.number("for_ms") / 1000)
            finally:
                child.thaw()
            await asyncio.sleep(self.number("every_ms") / 1000)

    async def heal(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        self._hiccups.cancel()


@own_step
@dataclass(frozen=True, slots=True)
class JoinInTurn(OwnStep):
    """Let `count` more members join, each when the group has settled with the one before it."""

    count: int = 2

    async def perform(self, group: Group) -> None:
        for number in range(self.count):

            async def join() -> None:
                await group.members.add(1)

            members = group.members.present + 1
            await group.make("join-in-turn", join, members=members, round_=number + 1)


@own_step
@dataclass(frozen=True, slots=True)
class LoseBesideSlow(OwnStep):
    """Kill an owner while the application of another one is slow, and let it come back."""

    per_record_ms: int = 20

    async def perform(self, group: Group) -> None:
        members = group.members
        slow = members.choose_owner()
        lost = next(process for process in members.view.owning_processes() if process != slow)

        async def lose() -> None:
            await members.kill(lost)

        async def come_back() -> None:
            await members.come_back(members.place_of(lost))

        members.delay(slow, self.per_record_ms)
        coordinating = await group.testbed.coordinating_now()
        detail = {"slow": slow, "owned": len(members.view.held_by(lost)), "coordinator": coordinating.name}
        await group.make("lose-beside-slow", lose, members=members.present - 1, detail=detail)
        await group.make("lose-beside-slow", come_back, members=members.present + 1)
        members.delay(slow, 0)
