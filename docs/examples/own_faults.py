"""An own fault and an own step, for `own-faults.toml` beside it; docs/own-scenarios.md explains them."""

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
