"""The life of a group that migrates: from the classic protocol to `consumer` and back.

An eager and a cooperative classic member live in a consumer group with two of its own, one of which subscribes by a
regular expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernel.wire.versions import Api
from tests.coordinator.failover.consumer_lives import Client, Description, Life, Party
from tests.coordinator.failover.moving import GROUP, JOIN, TOPIC_PARTITIONS, MovedCoordinator
from tests.support.groups.mixed import assigned, assignment, subscription


@dataclass
class ClassicClient:
    """A member of the classic protocol. It rejoins when a heartbeat tells it to."""

    is_eager: bool
    id: str = ""
    generation: int = -1
    owned: frozenset[int] = frozenset()
    is_leader: bool = False  #: of a classic group
    must_rejoin: bool = False

    async def ask(self, at: MovedCoordinator, what: str) -> Any:
        match what:
            case "join" | "rejoin":
                return await self._join(at)
            case "sync":
                answer = await self._sync(at)
                if self.is_leader and answer.error_code.name == "illegal_generation":
                    # A classic group stores a generation when its leader syncs; a successor does not know this one.
                    self.take("rejoin", await self._join(at))
                    answer = await self._sync(at)
                return answer
            case "beat":
                return await at.ask(Api.Heartbeat, 3, **self._me())
            case _:
                return await at.ask(Api.LeaveGroup, 3, group_id=GROUP, members=[{"member_id": self.id}])

    def _me(self) -> dict[str, Any]:
        return {"group_id": GROUP, "member_id": self.id, "generation_id": self.generation}

    async def _sync(self, at: MovedCoordinator) -> Any:
        everything = {"member_id": self.id, "assignment": assignment(t=range(TOPIC_PARTITIONS))}
        return await at.ask(Api.SyncGroup, 3, **self._me(), assignments=[everything] if self.is_leader else [])

    async def _join(self, at: MovedCoordinator) -> Any:
        if self.is_eager:
            self.owned = frozenset()
        metadata = subscription("t", owned={"t": self.owned} if self.owned else None)
        body = {**JOIN, "protocols": [{"name": "range", "metadata": metadata}]}
        if not self.id:
            answer = await at.ask(Api.JoinGroup, 5, **body)
            assert answer.error_code.name == "member_id_required"
            self.id = answer.member_id
        return await at.ask(Api.JoinGroup, 5, **body, member_id=self.id)

    def take(self, what: str, answer: Any) -> None:
        error = answer.error_code.name
        self.must_rejoin = what == "beat" and error == "rebalance_in_progress"
        assert error == "none" or self.must_rejoin, (self, answer)
        if what in ("join", "rejoin"):
            assert answer.generation_id >= self.generation
            self.generation, self.is_leader = answer.generation_id, answer.leader == self.id
        elif what == "sync":
            self.owned = frozenset(assigned(answer.assignment).get("t", ()))
        elif what == "leave":
            assert [member.error_code.name for member in answer.members] == ["none"]

    def miss(self) -> None: ...

    async def live(self, at: MovedCoordinator) -> None:
        self.take("beat", await self.ask(at, "beat"))
        if self.must_rejoin:
            for what in ("rejoin", "sync"):
                self.take(what, await self.ask(at, what))


class MigratingLife(Life):
    """It begins with a Stable classic group of `a`, who has everything."""

    STEPS = (
        "join m, with whom the group becomes a consumer group",
        "beat a, who is told to rejoin",
        "rejoin a, who gives everything up",
        "sync a, who gets its part",
        "beat m, who takes the other",
        "join b, while the group is Stable",
        "sync b, who has to wait",
        "beat a, who is told to rejoin",
        "rejoin a, who gives everything up",
        "sync a, who gets its part",
        "beat m, who is told to revoke",
        "beat m, who has revoked",
        "beat b, who is told to rejoin",
        "rejoin b, whose part is free",
        "sync b, who takes it",
        "join r, whose expression is searched for",
        "beat r, who has a target and has to wait",
        "beat b, who is told to rejoin",
        "rejoin b, who is going to revoke",
        "sync b, who revokes",
        "beat b, who is told to rejoin",
        "rejoin b, who has revoked",
        "sync b, who has less",
        "beat r, who takes a part",
        "leave r, who has partitions",
        "beat m, who finds a new target",
        "beat b, who is told to rejoin",
        "leave b, who has partitions",
        "beat a, who is told to rejoin",
        "rejoin a, who gives everything up",
        "sync a, who gets its part",
        "leave m, with whom the consumer group ends",
        "rejoin a, who leads a classic group",
        "sync a, who gets everything",
    )

    async def begin(self) -> None:
        await super().begin()
        for step in ("join a", "sync a"):
            await self.do(step)
        assert len(self.clients["a"].owned) == TOPIC_PARTITIONS

    def new(self, name: str) -> Party:
        if name in "ab":
            return ClassicClient(is_eager=name == "a")
        return Client(name, regex="t|none" if name == "r" else None)

    async def do(self, step: str) -> None:
        await super().do(step)
        if step.endswith("told to rejoin"):
            (client,) = (one for one in self.clients.values() if isinstance(one, ClassicClient) and one.must_rejoin)
            assert client is self.of(step)[1]

    async def describe(self) -> Description:
        answer = await self.coordinator.ask(Api.ConsumerGroupDescribe, 1, group_ids=(GROUP,))
        if answer.groups[0].error_code.name == "none":
            return await super().describe()
        assert answer.groups[0].error_code.name == "group_id_not_found"
        _, members = await self.coordinator.describe()
        return {"type": "classic", "members": sorted(members)}
