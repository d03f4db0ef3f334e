"""Faults of a member's session and of its application, and of an owner znode that somebody writes by hand; and members
that join, leave, unsubscribe, or are restarted one after the other.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from comparison.scenarios.run.performer import OurPerformer
from comparison.scenarios.testbed.sessions import expire_from_outside
from kernel.waiting import WaitTimeout, until
from kernel.zookeeper import paths
from kernel.zookeeper.session import untraced

if TYPE_CHECKING:
    from comparison.scenarios.plan.faults import Given

_BY_HAND = b"by-hand"
_FOR_GOOD_MS = 3_600_000
#: A poll takes a tenth of a second. A member that is processing records or is frozen is waited for no longer than this.
_POLL_S_MAX = 2.0


class Expire(OurPerformer):
    """End the sessions of a member's process, or of all of them."""

    async def setup(self) -> None:
        if self.target != "members":
            self.target = self.member(self.target)

    async def inject(self) -> None:
        known = self.members.view.sessions.ids
        names = (
            [name for name in known if not self.members.is_gone(name)] if self.target == "members" else [self.target]
        )
        addresses = self.testbed.zookeeper.connect_for_member(victim=False)
        for name in names:
            for session in list(known.get(name, {}).values()):  # a new one may come meanwhile
                await expire_from_outside(addresses, session, self.testbed.runtime)


class SetData(OurPerformer):
    async def inject(self) -> None:
        number = int(self.target.removeprefix("partition-"))
        topic = self.testbed.request.parameters.topic_names[0]
        servers = self.testbed.zookeeper.connect_for_member(victim=False)
        async with await untraced(servers, "by-hand", runtime=self.testbed.runtime) as session:
            await session.set(paths.owner(self.testbed.group, topic, number), _BY_HAND)


class _OfApplication(OurPerformer):
    async def setup(self) -> None:
        self.target = self.member(self.target)

    def send(self, command: str, **given: Given) -> None:
        self.members.child(self.target).send({"command": command, **given})


class ListenerException(_OfApplication):
    async def inject(self) -> None:
        self.members.fail_listener(self.target, str(self.values["callback"]))

    async def heal(self) -> None:
        self.members.fail_listener(self.target, "")


class SlowListener(_OfApplication):
    async def inject(self) -> None:
        self.send("trouble_listener", **self.values)

    async def heal(self) -> None:
        self.send("trouble_listener")


class LateCommit(SlowListener):
    async def inject(self) -> None:
        self.send("trouble_listener", callback="revoked", commits=True, **self.values)


class PausedPartitions(_OfApplication):
    async def inject(self) -> None:
        self.send("pause_partitions", on=True)

    async def heal(self) -> None:
        self.send("pause_partitions", on=False)


class Slow(_OfApplication):
    async def inject(self) -> None:
        """Stop polling, and wait until the poll under way has returned: until then it takes part in rebalances."""
        self.members.slow_down(self.target)
        with suppress(WaitTimeout):
            await until(
                lambda: self.target in self.members.view.stopped_polling, _POLL_S_MAX, f"{self.target} to stop polling"
            )

    async def heal(self) -> None:
        self.members.speed_up(self.target)


class SlowRecord(_OfApplication):
    async def inject(self) -> None:
        self.members.delay(self.target, self.number("per_record_ms"))

    async def heal(self) -> None:
        self.members.delay(self.target, 0)


class StuckRecord(SlowRecord):
    async def inject(self) -> None:
        self.members.delay(self.target, _FOR_GOOD_MS)


# -- changes of the group as faults -----------------------------------------------------------------------------------


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


class Unsubscribe(Leave):
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
