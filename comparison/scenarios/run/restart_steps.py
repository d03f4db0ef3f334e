"""Steps that restart processes, or change a member's subscription."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import StepPerformer
from comparison.scenarios.testbed.group_members import NobodyThere
from comparison.scenarios.testbed.group_view import HEARTBEATS
from kernel.java_regex import compiled
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from comparison.scenarios.plan.membership_vocabulary import RestartEach, Resubscribe
    from comparison.scenarios.plan.topic_vocabulary import SubscribePattern
    from comparison.scenarios.run.changes import Changes


class Restarts(StepPerformer):
    """Performs the steps that restart a process."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(changes)
        self._restarts = 0

    async def restart_each(self, step: RestartEach) -> None:
        """Restart the process at each place in turn, each as one change; or all of them as one, without waiting."""
        if not step.wait:
            await self._bounce(step)
            return
        for place in self._members.present_places:
            self._restarts += 1
            await self._restart(step, self._restarts, place)

    async def _restart(self, step: RestartEach, round_: int, place: str) -> None:
        async def go_and_come_back() -> None:
            before = self._members.view.rebalanced()
            await self._members.go(place, self._changes.takeover_s)
            await asyncio.sleep(step.away_ms / 1000)
            if self._design.reconciles:  # who gets nothing new has nothing to do
                await self._members.until_settled(self._changes.takeover_s)
            elif not self._design.static_membership:
                await until(
                    lambda: self._went_through_one(before),
                    self._changes.takeover_s,
                    f"the other members to rebalance without {place}",
                )
            await self._members.come_back(place, step.settings, design=step.design)

        await self._changes.wait_for_phase()
        detail = {
            "target": self._members.process_at(place),
            "life": self._members.next_at(place),
            "away_ms": step.away_ms,
            "settings": dict(step.settings),
            **({"design": step.design} if step.design else {}),
        }
        present = self._members.present
        await self._changes.make("restart", go_and_come_back, members=present, round_=round_, detail=detail)

    async def _bounce(self, step: RestartEach) -> None:
        members, present = self._members, self._members.present

        async def restart_all() -> None:
            for number, place in enumerate(members.present_places):
                if number:
                    await asyncio.sleep(step.away_ms / 1000)
                await self._start_again(place, step)
            while await self._refused():
                await asyncio.sleep(step.away_ms / 1000)
                for place in members.refused_places:
                    await self._start_again(place, step, away_ms=0)

        await self._changes.wait_for_phase()
        detail = {"away_ms": step.away_ms, "settings": dict(step.settings)}
        await self._changes.make("bounce", restart_all, members=present, detail=detail)

    async def _start_again(self, place: str, step: RestartEach, *, away_ms: int | None = None) -> None:
        await self._members.go(place, self._changes.takeover_s)
        await asyncio.sleep((step.away_ms if away_ms is None else away_ms) / 1000)
        await self._members.come_back(place, step.settings, design=step.design)

    async def _refused(self) -> list[str]:
        """Wait until each process is in the group or was refused; the places of the latter."""

        def unanswered() -> set[str]:
            self._members.check()
            view = self._members.view
            return {*self._members.present_processes()} - view.refused.keys() - view.arrived()

        await until(
            lambda: not unanswered(),
            self._changes.takeover_s,
            lambda: f"{', '.join(sorted(unanswered()))} to join or to be refused",
        )
        return self._members.refused_places

    def _went_through_one(self, before: dict[str, int]) -> bool:
        """Whether every present process has ended a rebalance since."""
        self._members.check_joining()
        now = self._members.view.rebalanced()
        return all(ended > before.get(process, 0) for process, ended in now.items())

    async def resubscribe(self, step: Resubscribe) -> None:
        """Change a member's topics, in its process if its design can, otherwise in a new one."""
        names = self._testbed.request.parameters.topic_names
        topics = [names[number] for number in step.topics]
        place = self._members.places[step.place - 1]
        if place not in self._members.present_places:
            raise NobodyThere(f"there is no member at {place} that could subscribe to other topics")
        await self._make_subscribe(lambda: self._subscribe(place, topics), place, step.round, {"topics": topics})

    async def subscribe_pattern(self, step: SubscribePattern) -> None:
        """Change each member's pattern in turn. Topics that match it are wanted from the first one's change on."""
        matches, view, testbed = compiled(step.pattern).fullmatch, self._members.view, self._testbed
        new = [tp for tp in testbed.partitions if matches(tp.topic) and tp not in view.partitions]
        added: dict[str, object] = {"before": 0, "after": len(new)}

        async def subscribe() -> None:
            process, before = self._members.process_at(place), view.rebalanced()
            await self._subscribe(place, pattern=step.pattern)
            if new and number == 1:
                view.grow(new)
                for topic, count in Counter(tp.topic for tp in new).items():
                    testbed.tracer.emit("topic_wanted", topic=topic, wanted=count)
            if self._design.reconciles:  # who gets nothing new has nothing to do
                quiet_ms = HEARTBEATS * self._configuration.heartbeat_ms
                await self._members.until_settled(self._changes.takeover_s, quiet_ms=quiet_ms)
            elif self._design.resubscribes:
                await until(
                    lambda: view.rebalanced().get(process, 0) > before.get(process, 0),
                    self._changes.takeover_s,
                    f"{process} to rebalance with its new pattern",
                )

        for number, place in enumerate(self._members.present_places, start=1):
            detail = {"pattern": step.pattern, **(added if number == 1 else {})}
            await self._make_subscribe(subscribe, place, number, detail)

    async def _make_subscribe(
        self, subscribe: Callable[[], Awaitable[None]], place: str, round_: int, detail: Mapping[str, object]
    ) -> None:
        about = {"target": self._members.process_at(place), **detail, "restart": not self._design.resubscribes}
        present = self._members.present
        await self._changes.make("subscribe", subscribe, members=present, round_=round_, detail=about)

    async def _subscribe(self, place: str, topics: Sequence[str] = (), pattern: str = "") -> None:
        if self._design.resubscribes:
            self._members.subscribe(place, topics, pattern)
            return
        await self._members.go(place, self._changes.takeover_s)
        await self._members.come_back(place, topics=topics, pattern=pattern)
