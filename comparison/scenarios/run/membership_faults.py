"""Changes of the group as faults: members that join, leave, unsubscribe, or are restarted one after the other."""

from __future__ import annotations

import asyncio

from comparison.scenarios.run.performer import OurPerformer


class Join(OurPerformer):
    """The new members are named after the first of them."""

    heals_by = "leave"

    async def setup(self) -> None:
        self._joining = self.members.next_places(self.number("count"))
        self.target = self.members.process_at(self._joining[0])

    @property
    def comes(self) -> int:
        return self.number("count")

    async def inject(self) -> None:
        self.members.join(self.number("count"))

    async def heal(self) -> None:
        present = [place for place in self._joining if self.members.has_joined(place)]
        await asyncio.gather(*(self.members.go(place, self.changes.takeover_s) for place in present))


class Leave(OurPerformer):
    heals_by = "join"

    async def setup(self) -> None:
        self.target = self.member(self.target)

    @property
    def comes(self) -> int:
        return -1

    async def inject(self) -> None:
        await self.members.go(self.members.place_of(self.target), self.changes.takeover_s)

    async def heal(self) -> None:
        await self.members.come_back(self.members.place_of(self.target))


class Unsubscribe(OurPerformer):
    heals_by = "join"

    async def setup(self) -> None:
        self.target = self.member(self.target)

    @property
    def comes(self) -> int:
        return -1

    async def inject(self) -> None:
        self.members.unsubscribe(self.target)

    async def heal(self) -> None:
        self.members.subscribe_again(self.target)


class RollingRestart(OurPerformer):
    """It waits for no rebalance: a deployment that does is the step `RestartEach`."""

    async def setup(self) -> None:
        self._places = [place for place in self.members.places if self.members.has_joined(place)]

    async def inject(self) -> None:
        for number, place in enumerate(self._places):
            if number:
                await asyncio.sleep(self.number("every_ms") / 1000)
            await self.members.go(place, self.changes.takeover_s)
            await asyncio.sleep(self.number("away_ms") / 1000)
            await self.members.come_back(place)
