"""Rolling restarts of the coordinator designs: what each change of a group costs, counted from what members were told.

A group forms; each member is restarted in turn, away for a while; one more joins; it leaves (a static one has no such
end: it is only removed). A change is over when every partition has one owner, every member owns something, and nothing
has moved for a while. Members are ours, or librdkafka's as a peer on the same broker.

Counted for a change: generations of the group; partitions that were taken, even for a moment, from members that were
not restarted (stopped); partitions that came to a member of another name (moved); seconds without an owner, summed over
partitions (unowned). Generations are the broker's, from its trace; everything else is what members were told.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from coordinator.consumer.consumer import CoordinatorConsumer
from coordinator.consumer.settings import CoordinatorConsumerConfig
from kernel.client.client import ClusterClient
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from kernel.values import TopicPartition

TOPIC = "rolling"
NEWCOMER = "m99"
ROLLING, JOIN, LEAVE = "rolling restart", "one joins", "one leaves"

POLL_S = 0.05
#: One that is away for longer than this is not waited for.
SETTLE_S = 60.0


@dataclass(frozen=True)
class Counts:
    """What one change cost; seconds apart, these do not depend on the machine."""

    generations: int
    stopped: int
    moved: int


@dataclass(frozen=True)
class Design:
    """How its members are configured, and what librdkafka's cost on Kafka 4.1.1 (5 members, 12 partitions)."""

    label: str
    strategy: str
    static: bool
    known: dict[str, Counts]
    known_unowned_s: float  #: of the rolling restart, median; heartbeats of 1 s, away for 1 s
    #: Moved in a rolling restart, where that is left to chance: Kafka's own assignor, and so ours, goes by the hashes
    #: of member ids, which are random; librdkafka's does not.
    moved_by_chance: range = range(0)

    def expects(self, kind: str, change: str, counts: Counts) -> bool:
        """Whether members of this kind may have cost so much, with the sizes that the known counts are for."""
        known = self.known[change]
        if kind == "ours" and change == ROLLING and counts.moved in self.moved_by_chance:
            known = replace(known, moved=counts.moved)
        return counts == known


EAGER_JOIN, EAGER_LEAVE = Counts(1, 12, 9), Counts(1, 10, 9)
COOPERATIVE_JOIN = Counts(2, 2, 2)
DESIGNS = (
    Design("eager range", "range", False, {ROLLING: Counts(10, 108, 46), JOIN: EAGER_JOIN, LEAVE: EAGER_LEAVE}, 13.9),
    Design(
        "eager roundrobin",
        "roundrobin",
        False,
        {ROLLING: Counts(10, 108, 100), JOIN: Counts(1, 12, 7), LEAVE: Counts(1, 10, 7)},
        7.7,
    ),
    Design(
        "cooperative-sticky",
        "cooperative-sticky",
        False,
        {ROLLING: Counts(15, 10, 23), JOIN: COOPERATIVE_JOIN, LEAVE: Counts(1, 0, 2)},
        17.6,
        range(21, 26),
    ),
    Design("static range", "range", True, {ROLLING: Counts(0, 0, 0), JOIN: EAGER_JOIN}, 13.0),
    Design("static cooperative", "cooperative-sticky", True, {ROLLING: Counts(0, 0, 0), JOIN: COOPERATIVE_JOIN}, 13.0),
)


@dataclass(frozen=True)
class Plan:
    """Sizes and times; the known counts are for the first four's defaults."""

    members: int = 5
    partitions: int = 12
    heartbeat_ms: int = 1000
    down_s: float = 1.0
    session_ms: int = 10_000
    quiet_s: float = 1.5  #: more than a heartbeat: nobody has anything left to hear of


@dataclass(frozen=True)
class Cost:
    """Of one change."""

    counts: Counts
    unowned_s: float
    doubly_owned_s: float


# -- who owns what ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A partition came to a member or went from it. `leaving`: the member itself was stopped."""

    at: float
    member: str
    partition: int
    gained: bool
    leaving: bool = False


class Ledger:
    """What members were told they own, over time. Safe to tell from any thread."""

    def __init__(self, partitions: int) -> None:
        self.entries: list[Entry] = []
        self._owners: dict[int, set[str]] = {n: set() for n in range(partitions)}
        self._changed_at = time.monotonic()
        self._lock = threading.Lock()

    def gains(self, member: str, partitions: Iterable[int]) -> None:
        self._enter(member, partitions, gained=True)

    def loses(self, member: str, partitions: Iterable[int]) -> None:
        """What it does not own, since it was stopped, is passed over."""
        self._enter(member, [n for n in partitions if member in self._owners[n]], gained=False)

    def leaves(self, member: str) -> None:
        """It was told to stop, and delivers nothing any more."""
        owned = [n for n, owners in self._owners.items() if member in owners]
        self._enter(member, owned, gained=False, leaving=True)

    def _enter(self, member: str, partitions: Iterable[int], *, gained: bool, leaving: bool = False) -> None:
        with self._lock:
            self._changed_at = at = time.monotonic()
            for n in partitions:
                (self._owners[n].add if gained else self._owners[n].discard)(member)
                self.entries.append(Entry(at, member, n, gained, leaving))

    def settled_since(self, members: Iterable[str], quiet_s: float) -> float | None:
        """When the last thing happened, if everything has one owner, everybody something, and it is `quiet_s` ago."""
        with self._lock:
            one_each = all(len(owners) == 1 for owners in self._owners.values())
            everybody = {member for owners in self._owners.values() for member in owners} == set(members)
            is_quiet = time.monotonic() - self._changed_at > quiet_s
            return self._changed_at if one_each and everybody and is_quiet else None

    def cost(self, begin: float, end: float, generations: int) -> Cost:
        """Of what happened between two moments."""
        owners: dict[int, set[str]] = {n: set() for n in self._owners}
        last: dict[int, str] = {}
        stopped = moved = 0
        unowned_s = doubly_owned_s = 0.0
        now = begin
        for entry in [*(e for e in self.entries if e.at <= end), Entry(end, "", -1, gained=False)]:
            if entry.at > now:
                unowned_s += (entry.at - now) * sum(not who for who in owners.values())
                doubly_owned_s += (entry.at - now) * sum(len(who) - 1 for who in owners.values() if who)
                now = entry.at
            if entry.partition < 0:
                continue
            if entry.gained:
                moved += entry.at > begin and last.get(entry.partition, entry.member) != entry.member
                last[entry.partition] = entry.member
                owners[entry.partition].add(entry.member)
            else:
                stopped += entry.at > begin and not entry.leaving
                owners[entry.partition].discard(entry.member)
        return Cost(Counts(generations, stopped, moved), unowned_s, doubly_owned_s)


# -- members -----------------------------------------------------------------------------------------------------------


class Member(Protocol):
    """One that joins when it is started, and leaves in its client's own order when it is stopped."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass
class Membership:
    """What a member is told."""

    name: str
    group: str
    port: int
    design: Design
    plan: Plan
    ledger: Ledger

    @property
    def settings(self) -> dict[str, str]:
        """Kafka's names, which both kinds of client understand."""
        given = {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "group.id": self.group,
            "client.id": self.name,
            "session.timeout.ms": str(self.plan.session_ms),
            "heartbeat.interval.ms": str(self.plan.heartbeat_ms),
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": self.design.strategy,
        }
        return given | ({"group.instance.id": self.name} if self.design.static else {})


class Ours:
    """A consumer of ours, on this event loop."""

    def __init__(self, told: Membership) -> None:
        self._told = told
        config, warnings = CoordinatorConsumerConfig.from_settings(told.settings)
        assert not warnings, warnings
        self._consumer = CoordinatorConsumer(config, tracer=SilentTracer(), process=told.name)
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._consumer.start()
        await self._consumer.subscribe({TOPIC: 1}, self)
        self._polling = asyncio.create_task(self._poll(), name=f"polls of {self._told.name}")

    async def stop(self) -> None:
        self._told.ledger.leaves(self._told.name)
        if self._polling is not None:
            if not self._polling.done():
                self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=self._polling.cancelling() > 0)
        await self._consumer.close()

    async def _poll(self) -> None:
        while True:
            await self._consumer.getmany(timeout_ms=round(POLL_S * 1000))

    async def on_assigned(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._told.ledger.gains(self._told.name, [tp.partition for tp in partitions])

    async def on_revoked(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._told.ledger.loses(self._told.name, [tp.partition for tp in partitions])

    async def on_lost(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._told.ledger.loses(self._told.name, [tp.partition for tp in partitions])


class Stock:
    """librdkafka's consumer, polled by a thread."""

    def __init__(self, told: Membership) -> None:
        self._told = told
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"polls of {told.name}", daemon=True)

    async def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        from confluent_kafka import Consumer

        told = self._told
        consumer = Consumer({**told.settings, "log_level": 3})
        lost = lambda _, gone: told.ledger.loses(told.name, [tp.partition for tp in gone])  # noqa: E731 - given twice
        consumer.subscribe(
            [TOPIC],
            on_assign=lambda _, come: told.ledger.gains(told.name, [tp.partition for tp in come]),
            on_revoke=lost,
            on_lost=lost,
        )
        while not self._stopping.is_set():
            consumer.poll(POLL_S)
        told.ledger.leaves(told.name)
        consumer.close()


KINDS: dict[str, Callable[[Membership], Member]] = {"ours": Ours, "librdkafka": Stock}


# -- the course -----------------------------------------------------------------------------------------------------


@dataclass
class Course:
    """One group of one design from its forming to its end; what each change cost is in `costs`."""

    kind: str
    design: Design
    plan: Plan
    port: int
    trace: Path  #: the broker's
    seed: int = 1
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
        before = self._generation()
        await self._anywhere()
        begin = time.monotonic()
        await act()
        end = await self._settled()
        self.costs[what] = self._ledger.cost(begin, end, self._generation() - before)

    async def _anywhere(self) -> None:
        """Members send heartbeats in step after a rebalance: begin anywhere between two of them."""
        await asyncio.sleep(self._random.uniform(0, self.plan.heartbeat_ms / 1000))

    async def _start(self, name: str) -> None:
        told = Membership(name, self.group, self.port, self.design, self.plan, self._ledger)
        self._members[name] = KINDS[self.kind](told)
        await self._members[name].start()

    async def _stop(self, name: str) -> None:
        await self._members.pop(name).stop()

    async def _settled(self) -> float:
        return await until(
            lambda: self._ledger.settled_since(self._members, self.plan.quiet_s),
            SETTLE_S,
            f"{self.group} with {sorted(self._members)} to settle",
        )

    def _generation(self) -> int:
        """The group's newest generation, as the broker tells its trace."""
        newest = 0
        for line in self.trace.read_bytes().splitlines():
            event = json.loads(line)
            if event.get("kind") == "group_changed" and event["group"] == self.group:
                newest = max(newest, event["generation"])
        return newest


async def courses(
    kind: str, designs: Iterable[Design], plan: Plan, port: int, trace: Path, seed: int = 1
) -> list[Course]:
    """All designs at the same time, each in a group of its own."""
    client = ClusterClient([("127.0.0.1", port)], "rolling")
    try:
        connection = await client.any_connection()
        wanted = {"name": TOPIC, "num_partitions": plan.partitions, "replication_factor": 1}
        await connection.call(Api.CreateTopics, {"topics": [wanted], "timeout": 10_000})
    finally:
        await client.close()
    made = [Course(kind, design, plan, port, trace, seed) for design in designs]
    await asyncio.gather(*(course.run() for course in made))
    return made
