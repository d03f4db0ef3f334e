"""Rolling restarts of the coordinator designs: what each change of a group costs.

A group forms; each member is restarted in turn, down for a while; one more joins, and leaves (a static member cannot
leave, it is only removed). A change is over when every partition has one owner, every member owns something, and
nothing has moved for a while. Members are ours, or librdkafka's as a peer on the same broker. The designs of KIP-848
also run on Kafka 4.1.1.

Counted for a change: generations of the group, in KIP-848 its epochs; partitions taken, even briefly, from members that
were not restarted (stopped); partitions that went to a member with another name (moved); seconds without an owner,
summed over partitions (unowned). Epochs come from ConsumerGroupDescribe, generations from our broker's trace, and
everything else from the assignments that members received.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.rolling_designs import JOIN, LEAVE, ROLLING
from bench.rolling_ledger import Ledger
from bench.rolling_members import KINDS, TOPIC, Membership
from kernel.client.client import ClusterClient
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from bench.rolling_designs import Design, Plan
    from bench.rolling_ledger import Cost
    from bench.rolling_members import Member

NEWCOMER = "m99"

#: Members that are down for longer than this are not waited for.
SETTLE_S = 60.0


@dataclass(frozen=True)
class Broker:
    """Where a group is. Only ours traces generations, so only KIP-848's designs run elsewhere."""

    name: str
    port: int
    trace: Path | None = None


@dataclass
class Course:
    """One group of one design from forming to its end; `costs` has the cost of each change."""

    kind: str
    design: Design
    plan: Plan
    broker: Broker
    seed: int = 1
    formed: int = 0  #: generations until the first members had settled
    costs: dict[str, Cost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.group = f"{self.kind}-{self.design.label}-{self.seed}".replace(" ", "-")
        self._ledger = Ledger(self.plan.partitions)
        self._members: dict[str, Member] = {}
        self._random = random.Random(self.seed)

    async def run(self) -> None:
        names = [f"m{n}" for n in range(self.plan.members)]
        try:
            await asyncio.gather(*(self._start(name) for name in names))
            await self._settled()
            self.formed = await self._generation()
            await self._change(ROLLING, lambda: self._restart_all(names))
            await self._change(JOIN, lambda: self._start(NEWCOMER))
            if not self.design.static:
                await self._change(LEAVE, lambda: self._stop(NEWCOMER))
        finally:
            await asyncio.gather(*(self._stop(name) for name in list(self._members)))

    async def _restart_all(self, names: list[str]) -> None:
        for name in names:
            await self._anywhere()
            await self._stop(name)
            await asyncio.sleep(self.plan.down_s)
            await self._start(name)
            await self._settled()

    async def _change(self, what: str, act: Callable[[], Awaitable[None]]) -> None:
        before = await self._generation()
        await self._anywhere()
        begin = time.monotonic()
        await act()
        end = await self._settled()
        self.costs[what] = self._ledger.cost(begin, end, await self._generation() - before)

    async def _anywhere(self) -> None:
        """Wait for a random part of a heartbeat interval, because heartbeats are in step after a rebalance."""
        await asyncio.sleep(self._random.uniform(0, self.plan.heartbeat_ms / 1000))

    async def _start(self, name: str) -> None:
        membership = Membership(name, self.group, self.broker.port, self.design, self.plan, self._ledger)
        self._members[name] = KINDS[self.kind](membership)
        await self._members[name].start()

    async def _stop(self, name: str) -> None:
        await self._members.pop(name).stop()

    async def _settled(self) -> float:
        return await until(
            lambda: self._ledger.settled_since(self._members, self.plan.quiet_s),
            SETTLE_S,
            f"{self.group} with {sorted(self._members)} to settle",
        )

    async def _generation(self) -> int:
        """The group's newest generation, or its epoch."""
        if self.design.reconciles:
            return await self._epoch()
        assert self.broker.trace is not None, f"{self.broker.name} does not trace generations"
        newest = 0
        for line in self.broker.trace.read_bytes().splitlines():
            event = json.loads(line)
            if event.get("kind") == "group_changed" and event["group"] == self.group:
                newest = max(newest, event["generation"])
        return newest

    async def _epoch(self) -> int:
        answer = await _ask(self.broker, Api.ConsumerGroupDescribe, {"group_ids": [self.group]})
        (group,) = answer.groups
        assert group.error_code is ErrorCode.none, (self.group, group.error_code)
        return int(group.group_epoch)


async def _ask(broker: Broker, api: Api, body: Mapping[str, Any]) -> Any:
    """Send one request on a connection of its own."""
    client = ClusterClient([("127.0.0.1", broker.port)], "rolling")
    try:
        connection = await client.any_connection()
        return await connection.call(api, body)
    finally:
        await client.close()


async def courses(kind: str, designs: Iterable[Design], plan: Plan, broker: Broker, seed: int = 1) -> list[Course]:
    """Run all designs at the same time, each in a group of its own."""
    wanted = {"name": TOPIC, "num_partitions": plan.partitions, "replication_factor": 1}
    await _ask(broker, Api.CreateTopics, {"topics": [wanted], "timeout": 10_000})
    made = [Course(kind, design, plan, broker, seed) for design in designs]
    await asyncio.gather(*(course.run() for course in made))
    return made
