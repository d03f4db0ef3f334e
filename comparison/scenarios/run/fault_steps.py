"""Faults that are measured in a certain way: commits of a frozen or cut member, a rebalance that waits for a slow one.

What freezes, cuts and kills is performed by `comparison.scenarios.run.injections`. A sequence of `Inject`, `Hold` and
`Heal` cannot say what these steps add: commits at certain moments of a fault, and a change of the group within it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import SETTLE_S, StepPerformer, sleep_until
from comparison.scenarios.run.performer import Together
from coordinator.membership.effects import Identity
from kernel.waiting import until

if TYPE_CHECKING:
    from comparison.scenarios.plan.vocabulary import CutAuthority, CutEnsemble, FreezeOwner, KillCoordinator, SlowOwner
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.injections import Injections
    from kernel.values import TopicPartition

#: The links between the server to be cut off and the other two.
_FOLLOWER = "follower->ensemble"


class Faults(StepPerformer):
    """Performs the steps that break something, for a while or for good."""

    def __init__(self, changes: Changes, injections: Injections) -> None:
        super().__init__(changes)
        self._injections = injections

    # -- members -----------------------------------------------------------------------------------------------------

    async def freeze_owner(self, step: FreezeOwner) -> None:
        self._changes.enter_stage("fault")
        name = self._members.choose_owner()
        held = self._members.view.held_by(name)
        for_ms = self._configuration.session_ms + step.over_ms
        begun = asyncio.get_running_loop().time()
        freeze = await self._injections.set_up("freeze", self._members.place_of(name))
        self._members.commit_remembered(name)
        frozen = await self._injections.begin("freeze", freeze, {"for_ms": for_ms})
        await self._members.until_settled(self._changes.takeover_s, without=name)
        await self._late_commit(name, held, generations_ago=0)
        await sleep_until(begun + for_ms / 1000)
        # Written to its input while it is frozen: the first thing it does is to commit.
        self._members.commit_remembered(name)
        await self._injections.heal_and_settle(frozen)

    async def _late_commit(self, name: str, held: frozenset[TopicPartition], *, generations_ago: int) -> None:
        """Deliver a delayed commit, as if the member had sent it before it was replaced.

        A client that notices its own expiry drops the commits that it has not sent. Those that it has sent must be
        fenced by the broker, whose trace has the outcome. This is part of the current fault, not another one.
        """
        identity = self._members.view.identities.get(name)
        if identity is None or not self._design.coordinator:
            return
        member_id, generation = identity
        late = Identity(member_id, generation - generations_ago)
        group, offsets = self._testbed.group, dict.fromkeys(held, 0)
        await self._testbed.access.commit_as(group, late, offsets, self._design.name)

    async def slow_owner(self, step: SlowOwner) -> None:
        """Another member joins while the owner is slow, so that the rebalance waits for the owner."""
        self._changes.enter_stage("fault")
        name = self._members.choose_owner()
        for_ms = self._configuration.max_poll_ms + step.over_ms
        detail = {"processing_ms": for_ms, "max_poll_interval_ms": self._configuration.max_poll_ms}
        slow = await self._injections.set_up("slow", self._members.place_of(name))
        slowed = await self._injections.begin("slow", slow, detail)
        begun = asyncio.get_running_loop().time()  # its last poll has returned

        async def join() -> None:
            self._members.join(1)
            await sleep_until(begun + for_ms / 1000)
            await self._injections.undo(slowed)

        await self._changes.make("join", join, members=self._members.present + 1)

    # -- links -------------------------------------------------------------------------------------------------------

    async def cut_authority(self, step: CutAuthority) -> None:
        """Cut the victim off from the authority, but not from its fetches.

        zookeeper: cut the victim's ZooKeeper server off from the other two. server: the same, so that its session
        expires and the coordinator removes it, and cut its connections to the coordinator, which would notify it at
        once. The others: cut its connections to the coordinator, at the proxy in front of the broker.
        """
        links = []
        if self._design.zookeeper_sessions:
            links.append(_FOLLOWER)
        if self._design.coordinator:
            links.append(f"{self._members.victim}->authority")
        await self._cut(step.over_ms, self._victim(), links)

    async def cut_ensemble(self, step: CutEnsemble) -> None:
        """Cut a ZooKeeper server off, and with it its client.

        zookeeper: the victim. The other designs: only the coordinating broker. In server the members have sessions as
        well, but with the other two servers.
        """
        await self._cut(step.over_ms, "" if self._design.coordinator else self._victim(), [_FOLLOWER])

    def _victim(self) -> str:
        """The process that is now at the place which was chosen before the start."""
        return self._members.process_at(self._members.victim)

    async def _cut(self, over_ms: int, victim: str, links: list[str]) -> None:
        """Cut, let the others take over, request commits, hold the cut for its full length, heal."""
        self._changes.enter_stage("fault")
        # In delayed, the takeover comes later by its delay.
        for_ms = self._configuration.session_ms + self._configuration.delay_ms + over_ms
        begun = asyncio.get_running_loop().time()
        parts = [await self._injections.set_up("cut", link) for link in links]
        together = Together(self._changes, victim or "coordinating-broker", parts)
        cut = await self._injections.begin("cut", together, {"for_ms": for_ms})
        if victim:
            self._members.view.leave_out(victim)
            await self._members.until_settled(for_ms / 1000, without=victim)
            self._members.commit_remembered(victim)
        await sleep_until(begun + for_ms / 1000)
        if victim:
            self._members.commit_remembered(victim)
            self._members.view.take_back(victim)
        else:
            # No member was replaced, so the new coordinator has to fence a commit of the previous generation.
            name = self._members.choose_owner()
            await self._late_commit(name, self._members.view.held_by(name), generations_ago=1)
        await self._injections.heal_and_settle(cut)

    # -- brokers -----------------------------------------------------------------------------------------------------

    async def kill_coordinator(self, _: KillCoordinator) -> None:
        view = self._members.view
        broker = self._testbed.coordinating_broker
        detail = {"target": broker.name, "coordinates": self._design.coordinator}

        async def kill() -> None:
            delivered, committed = dict(view.delivered), dict(view.committed)
            await self._injections.strike("kill", await self._injections.set_up("kill", broker.name))

            def goes_on() -> bool:
                self._members.check()
                return all(
                    view.delivered.get(tp, 0) > delivered.get(tp, 0)
                    and view.committed.get(tp, 0) > committed.get(tp, 0)
                    for tp in view.partitions
                )

            patience_s = (self._configuration.broker_session_ms + self._configuration.commit_interval_ms) / 1000
            await until(goes_on, patience_s + SETTLE_S, "every partition to be delivered and committed again")

        await self._changes.make("failover", kill, members=self._members.present, detail=detail)
