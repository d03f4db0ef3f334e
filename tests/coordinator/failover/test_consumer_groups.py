"""A coordinator that goes away at any step of the life of a `consumer` group: members go on as if nothing had happened.

The life is a list of steps. At each of them the coordinator is replaced in four ways: between two steps, by a transfer
or a death; after the step's records are durable, but its answer is lost; before they are durable.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from kernel.wire.versions import Api
from tests.support.moving import GROUP, TOPIC_ID_OF_T, MovedCoordinator, play

if TYPE_CHECKING:
    from collections.abc import Sequence

Description = dict[str, Any]
EVERY_PARTITION = 50


@dataclass
class Client:
    """A member as librdkafka or the Java consumer behaves; it gives partitions up as soon as it is told to."""

    id: str
    instance: str | None = None
    epoch: int = 0
    owned: frozenset[int] = frozenset()
    is_full: bool = True  #: its next heartbeat tells everything

    def request(self, epoch: int | None = None) -> dict[str, Any]:
        owned = [{"topic_id": TOPIC_ID_OF_T, "partitions": tuple(sorted(self.owned))}] if self.owned else []
        told = {"rebalance_timeout": 60_000, "subscribed_topic_names": ("t",)} if self.is_full else {}
        return {
            "group_id": GROUP,
            "member_id": self.id,
            "member_epoch": self.epoch if epoch is None else epoch,
            "instance_id": self.instance,
            "topic_partitions": owned,
            **told,
        }

    def take(self, answer: Any) -> None:
        assert answer.error_code.name == "none", (self, answer)
        assert answer.member_epoch >= self.epoch
        self.epoch, self.is_full = answer.member_epoch, False
        if answer.assignment is not None:
            self.owned = frozenset(n for row in answer.assignment.topic_partitions for n in row.partitions)


@dataclass
class Life:
    """Members, and the broker that coordinates them."""

    brokers: Sequence[MovedCoordinator]
    clients: dict[str, Client] = field(default_factory=dict)
    leader: int = 0

    @property
    def coordinator(self) -> MovedCoordinator:
        return self.brokers[self.leader]

    async def ask(self, request: dict[str, Any]) -> Any:
        return await self.coordinator.ask(Api.ConsumerGroupHeartbeat, 1, **request)

    def client_of(self, step: str) -> tuple[Client, int | None]:
        """The client of a step, and the epoch that it sends if it is not its own."""
        what, _, name = step.partition(" ")
        name = name.split()[0]
        if what == "join":
            replaces = self.clients.get(name)
            is_static = name.isupper()
            self.clients[name] = Client(f"{name}-2" if replaces else name, f"i-{name}" if is_static else None)
        return self.clients[name], {"leave": -1, "away": -2}.get(what)

    async def do(self, step: str) -> None:
        client, epoch = self.client_of(step)
        answer = await self.ask(client.request(epoch))
        self.took(client, epoch, answer)

    def took(self, client: Client, epoch: int | None, answer: Any) -> None:
        if epoch is None:
            client.take(answer)
        else:
            assert answer.error_code.name == "none"
            assert answer.member_epoch == epoch
            client.owned = frozenset()
            if epoch == -1:
                self.clients = {name: other for name, other in self.clients.items() if other is not client}
        self.check()

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
        client, epoch = self.client_of(step)
        await self.ask(client.request(epoch))
        stored = await self.describe()
        await self.fail_over()
        assert await self.describe() == stored
        client.is_full = True
        if epoch is None:
            client.take(await self.ask(client.request()))
            self.check()
        else:
            client.owned = frozenset()
            self.clients = {name: other for name, other in self.clients.items() if epoch == -2 or other is not client}

    async def fence(self, step: str) -> None:
        """The coordinator decides the step, and another takes over before it is stored."""
        before = await self.describe() if self.clients else None
        client, epoch = self.client_of(step)
        self.coordinator.storage.gate.clear()
        asked = asyncio.create_task(self.ask(client.request(epoch)))
        await asyncio.sleep(0.01)
        fenced = self.coordinator
        await self.fail_over()
        fenced.storage.gate.set()
        answer = await asked
        if answer.error_code.name != "none":  # the step had something to store
            assert answer.error_code.name == "not_coordinator"
            client.is_full = True
            answer = await self.ask(client.request(epoch))
        elif before is not None:
            assert await self.describe() == before
        self.took(client, epoch, answer)

    async def settle(self) -> None:
        """All who are left end with all partitions, and nobody is fenced on the way."""
        for _ in range(6):
            for client in self.clients.values():
                client.take(await self.ask(client.request()))
                self.check()
        assert sum(len(client.owned) for client in self.clients.values()) == EVERY_PARTITION
        described = await self.describe()
        assert described["epoch"] == described["target"]
        assert {epoch for epoch, _, _ in described["members"].values()} == {described["epoch"]}


#: Capital letters are static members. What follows the name is what the step is for.
LIFE = (
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
STEPS = [step.replace(",", "", 1) for step in LIFE]
#: 4.1.1 refuses a repetition, too: a static member that joins again has to wait until its session has ended, and a
#: member that reports more than it has left is fenced.
UNREPEATABLE = ("join C", "beat b who has revoked, and is told to revoke more")
REPEATABLE = [number for number, step in enumerate(STEPS) if not step.startswith(UNREPEATABLE)]


@pytest.mark.parametrize("is_dead", [True, False])
@pytest.mark.parametrize("number", range(len(STEPS)), ids=LIFE)
def test_group_continues_where_it_was_when_its_coordinator_goes_after(number: int, *, is_dead: bool) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number + 1)
        before = await life.describe()
        await life.fail_over(is_dead=is_dead)
        assert await life.describe() == before
        await live_on(life, number + 1)

    play(scene)


@pytest.mark.parametrize("number", REPEATABLE, ids=[LIFE[number] for number in REPEATABLE])
def test_group_continues_when_the_answer_is_lost_with_its_coordinator(number: int) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number)
        await life.lose_answer(STEPS[number])
        await live_on(life, number + 1)

    play(scene)


@pytest.mark.parametrize("number", range(len(STEPS)), ids=LIFE)
def test_group_continues_when_another_coordinator_takes_over_before_it_is_stored(number: int) -> None:
    async def scene(*brokers: MovedCoordinator) -> None:
        life = await lived(brokers, number)
        await life.fence(STEPS[number])
        await live_on(life, number + 1)

    play(scene)


async def lived(brokers: Sequence[MovedCoordinator], steps: int) -> Life:
    life = Life(brokers)
    await life.coordinator.leads(0)
    for step in STEPS[:steps]:
        await life.do(step)
    return life


async def live_on(life: Life, steps: int) -> None:
    for step in STEPS[steps:]:
        await life.do(step)
    await life.settle()
