"""Lives of a group as lists of steps, at each of which its coordinator may be replaced.

    life = ConsumerLife(brokers)
    await life.begin()
    await life.do("join a, who gets everything")    # what, by whom; the rest is for readers
    await life.fail_over()                          # or `lose_answer(step)`, `fence(step)` instead of `do(step)`
    await life.settle()

The topic is `t` of `tests.coordinator.failover.moving`. Capital letters are static members.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from kernel.wire.versions import Api
from tests.coordinator.failover.moving import GROUP, TOPIC_ID_OF_T, TOPIC_PARTITIONS, MovedCoordinator

Description = dict[str, Any]
#: What a member sends as it goes: the epoch of a heartbeat.
GOING = {"leave": -1, "away": -2}


class Party(Protocol):
    """A member as a client behaves: it gives partitions up as soon as it is told to."""

    owned: frozenset[int]

    async def ask(self, at: MovedCoordinator, what: str) -> Any: ...

    def take(self, what: str, answer: Any) -> None: ...

    def miss(self) -> None:
        """The answer to its last request was lost."""

    async def live(self, at: MovedCoordinator) -> None:
        """Do what is due."""


@dataclass
class Client:
    """A member as librdkafka or the Java consumer behaves."""

    id: str
    instance: str | None = None
    regex: str | None = None
    epoch: int = 0
    owned: frozenset[int] = frozenset()
    is_full: bool = True  #: its next heartbeat tells everything

    async def ask(self, at: MovedCoordinator, what: str) -> Any:
        owned = [{"topic_id": TOPIC_ID_OF_T, "partitions": tuple(sorted(self.owned))}] if self.owned else []
        subscription = {"subscribed_topic_names": () if self.regex else ("t",), "subscribed_topic_regex": self.regex}
        told = {"rebalance_timeout": 60_000, **subscription} if self.is_full else {}
        return await at.ask(
            Api.ConsumerGroupHeartbeat,
            1,
            group_id=GROUP,
            member_id=self.id,
            member_epoch=GOING.get(what, self.epoch),
            instance_id=self.instance,
            topic_partitions=owned,
            **told,
        )

    def take(self, what: str, answer: Any) -> None:
        assert answer.error_code.name == "none", (self, answer)
        if what in GOING:
            assert answer.member_epoch == GOING[what]
            self.owned = frozenset()
            return
        assert answer.member_epoch >= self.epoch
        self.epoch, self.is_full = answer.member_epoch, False
        if answer.assignment is not None:
            self.owned = frozenset(n for row in answer.assignment.topic_partitions for n in row.partitions)

    def miss(self) -> None:
        self.is_full = True

    async def live(self, at: MovedCoordinator) -> None:
        self.take("beat", await self.ask(at, "beat"))


@dataclass
class Life:
    """Members, and the broker that coordinates them."""

    #: What is done, by whom, and what the step is for.
    STEPS: ClassVar[tuple[str, ...]]
    #: The beginnings of steps that are refused when they are repeated, as by 4.1.1.
    UNREPEATABLE: ClassVar[tuple[str, ...]] = ()

    brokers: Sequence[MovedCoordinator]
    clients: dict[str, Party] = field(default_factory=dict)
    leader: int = 0

    @property
    def coordinator(self) -> MovedCoordinator:
        return self.brokers[self.leader]

    def new(self, name: str) -> Party:
        """A member that is going to join for the first time, or replaces itself."""
        return Client(f"{name}-2" if name in self.clients else name, f"i-{name}" if name.isupper() else None)

    def of(self, step: str) -> tuple[str, Party]:
        """What is done, and by whom."""
        what, name, *_ = step.replace(",", "").split()
        if what == "join":
            self.clients[name] = self.new(name)
        return what, self.clients[name]

    async def begin(self) -> None:
        await self.coordinator.leads(0)

    async def do(self, step: str) -> None:
        what, client = self.of(step)
        self.took(client, what, await client.ask(self.coordinator, what))

    def took(self, client: Party, what: str, answer: Any) -> None:
        client.take(what, answer)
        self._forget(client, what)
        self.check()

    def _forget(self, client: Party, what: str) -> None:
        if what in GOING:
            client.owned = frozenset()
        if what == "leave":
            self.clients = {name: other for name, other in self.clients.items() if other is not client}

    def check(self) -> None:
        for one, other in itertools.combinations(self.clients.values(), 2):
            assert not one.owned & other.owned, f"{one} and {other} own the same"

    async def describe(self) -> Description:
        answer = await self.coordinator.ask(Api.ConsumerGroupDescribe, 1, group_ids=(GROUP,))
        (group,) = answer.groups
        assert group.error_code.name == "none"
        members = {
            member.member_id: (member.member_epoch, member.assignment, member.target_assignment)
            for member in group.members
        }
        return {"epoch": group.group_epoch, "target": group.assignment_epoch, "members": members}

    # -- the ways in which a coordinator is replaced ----------------------------------------------------------------

    async def fail_over(self, *, is_dead: bool = True) -> None:
        """Dead, it does not know that it no longer leads; otherwise it resigns before."""
        if not is_dead:
            await self.coordinator.leads(None)
        self.leader += 1
        await self.coordinator.leads(self.leader)

    async def lose_answer(self, step: str) -> None:
        """The step is stored; its client never learns of it, and asks the successor with what it knew before."""
        what, client = self.of(step)
        await client.ask(self.coordinator, what)
        stored = await self.describe()
        await self.fail_over()
        assert await self.describe() == stored
        client.miss()
        if what in GOING:
            self._forget(client, what)
        else:
            self.took(client, what, await client.ask(self.coordinator, what))

    async def fence(self, step: str) -> None:
        """The coordinator decides the step, and another takes over before it is stored."""
        before = await self.describe() if self.clients else None
        what, client = self.of(step)
        self.coordinator.storage.gate.clear()
        asked = asyncio.create_task(client.ask(self.coordinator, what))
        await asyncio.sleep(0.01)
        fenced = self.coordinator
        await self.fail_over()
        fenced.storage.gate.set()
        answer = await asked
        if answer.error_code.name == "not_coordinator":  # the step had something to store
            client.miss()
            answer = await client.ask(self.coordinator, what)
        elif before is not None:
            assert await self.describe() == before
        self.took(client, what, answer)

    async def settle(self) -> None:
        """All who are left end with all partitions, and nobody is fenced on the way."""
        for _ in range(6):
            for client in self.clients.values():
                await client.live(self.coordinator)
                self.check()
        assert sum(len(client.owned) for client in self.clients.values()) == TOPIC_PARTITIONS
        described = await self.describe()
        if "epoch" in described:
            assert described["epoch"] == described["target"]
            assert {epoch for epoch, _, _ in described["members"].values()} == {described["epoch"]}


class ConsumerLife(Life):
    """Members of the consumer protocol, one of them static, come and go."""

    STEPS = (
        "join a, who gets everything",
        "join b, who has to wait",
        "beat a, who is told to revoke",
        "beat b, who still waits",
        "beat a, who has revoked",
        "beat b, who takes",
        "join C, while the group is Stable",
        "beat a, who is told to revoke",
        "beat b, who is told to revoke",
        "beat a, who has revoked",
        "beat C, who takes a part and waits for the rest",
        "join d, while b is revoking",
        "beat b, who has revoked, and is told to revoke more",
        "beat C, who is told to revoke",
        "beat b, who has revoked",
        "away C, while it is revoking",
        "beat d, who takes",
        "join C, under another id",
        "beat a, who is told to revoke",
        "beat a, who has revoked",
        "leave d, who has partitions",
        "beat b, who finds a new target",
        "beat C, who takes",
    )
    #: A static member that joins again has to wait until its session has ended, and a member that reports more than it
    #: has left is fenced.
    UNREPEATABLE = ("join C", "beat b, who has revoked, and is told to revoke more")
