"""Rolling restarts of the coordinator designs: what each change of a group costs.

A group forms; each member is restarted in turn, down for a while; one more joins, and leaves (a static member cannot
leave, it is only removed). A change is over when every partition has one owner, every member owns something, and
nothing has moved for a while. Members are ours, or librdkafka's as a peer on the same broker.

Counted for a change: generations of the group; partitions taken, even briefly, from members that were not restarted
(stopped); partitions that went to a member with another name (moved); seconds without an owner, summed over partitions
(unowned). Generations come from the broker's trace, everything else from the assignments that members received.
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
#: Members that are down for longer than this are not waited for.
SETTLE_S = 60.0


@dataclass(frozen=True)
class Counts:
    """Cost of one change; except for the seconds, independent of the machine."""

    generations: int
    stopped: int
    moved: int


@dataclass(frozen=True)
class Design:
    """Settings of the members, and the known costs of librdkafka's on Kafka 4.1.1 (5 members, 12 partitions)."""

    label: str
    strategy: str
    static: bool
    known: dict[str, Counts]
    known_unowned_s: float  #: of the rolling restart, median; heartbeats of 1 s, down for 1 s
    #: Moves in a rolling restart, if they depend on chance: Kafka's own assignor, and so ours, sorts by hashes of
    #: member ids, which are random; librdkafka's does not.
    moved_by_chance: range = range(0)

    def expects(self, kind: str, change: str, counts: Counts) -> bool:
        """Whether these costs are allowed for members of this kind, at the sizes of the known counts."""
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
    """Sizes and times; the known counts hold for the defaults of the first four."""

    members: int = 5
    partitions: int = 12
    heartbeat_ms: int = 1000
    down_s: float = 1.0
    session_ms: int = 10_000
    quiet_s: float = 1.5  #: more than a heartbeat, so that every member is up to date


@dataclass(frozen=True)
class Cost:
    """Counts of one change."""

    counts: Counts
    unowned_s: float
    doubly_owned_s: float


# -- who owns what ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A member gained or lost a partition. `leaving`: the member itself was stopped."""

    at: float
    member: str
    partition: int
    gained: bool
    leaving: bool = False


class Ledger:
    """What members own over time. Thread-safe."""

    def __init__(self, partitions: int) -> None:
        self.entries: list[Entry] = []
        self._owners: dict[int, set[str]] = {n: set() for n in range(partitions)}
        self._changed_at = time.monotonic()
        self._lock = threading.Lock()

    def gains(self, member: str, partitions: Iterable[int]) -> None:
        self._enter(member, partitions, gained=True)

    def loses(self, member: str, partitions: Iterable[int]) -> None:
        """Ignores partitions that the member no longer owns because it was stopped."""
        self._enter(member, [n for n in partitions if member in self._owners[n]], gained=False)

    def leaves(self, member: str) -> None:
        """The member was stopped and delivers nothing any more."""
        owned = [n for n, owners in self._owners.items() if member in owners]
        self._enter(member, owned, gained=False, leaving=True)

    def _enter(self, member: str, partitions: Iterable[int], *, gained: bool, leaving: bool = False) -> None:
        with self._lock:
            self._changed_at = at = time.monotonic()
            for n in partitions:
                (self._owners[n].add if gained else self._owners[n].discard)(member)
                self.entries.append(Entry(at, member, n, gained, leaving))

    def settled_since(self, members: Iterable[str], quiet_s: float) -> float | None:
        """Time of the last event, if every partition has one owner, every member owns some, and it is `quiet_s` ago."""
        with self._lock:
            one_each = all(len(owners) == 1 for owners in self._owners.values())
            everybody = {member for owners in self._owners.values() for member in owners} == set(members)
            is_quiet = time.monotonic() - self._changed_at > quiet_s
            return self._changed_at if one_each and everybody and is_quiet else None

    def cost(self, begin: float, end: float, generations: int) -> Cost:
        """Counts of what happened between two moments."""
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
    """A member that joins when started, and leaves in its client's own way when stopped."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass
class Membership:
    """What a member is created with."""

    name: str
    group: str
    port: int
    design: Design
    plan: Plan
    ledger: Ledger

    @property
    def settings(self) -> dict[str, str]:
        """Settings by Kafka's names, which both kinds of client understand."""
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
    """Our consumer, on this event loop."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        config, warnings = CoordinatorConsumerConfig.from_settings(membership.settings)
        assert not warnings, warnings
        self._consumer = CoordinatorConsumer(config, tracer=SilentTracer(), process=membership.name)
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._consumer.start()
        await self._consumer.subscribe({TOPIC: 1}, self)
        self._polling = asyncio.create_task(self._poll(), name=f"polls of {self._membership.name}")

    async def stop(self) -> None:
        self._membership.ledger.leaves(self._membership.name)
        if self._polling is not None:
            if not self._polling.done():
                self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=self._polling.cancelling() > 0)
        await self._consumer.close()

    async def _poll(self) -> None:
        while True:
            await self._consumer.getmany(timeout_ms=round(POLL_S * 1000))

    async def on_assigned(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.gains(self._membership.name, [tp.partition for tp in partitions])

    async def on_revoked(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.loses(self._membership.name, [tp.partition for tp in partitions])

    async def on_lost(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.loses(self._membership.name, [tp.partition for tp in partitions])


class Stock:
    """librdkafka's consumer, polled by a thread."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"polls of {membership.name}", daemon=True)

    async def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        from confluent_kafka import Consumer

        membership = self._membership
        consumer = Consumer({**membership.settings, "log_level": 3})
        lost = lambda _, gone: membership.ledger.loses(membership.name, [tp.partition for tp in gone])  # noqa: E731 - given twice
        consumer.subscribe(
            [TOPIC],
            on_assign=lambda _, come: membership.ledger.gains(membership.name, [tp.partition for tp in come]),
            on_revoke=lost,
            on_lost=lost,
        )
        while not self._stopping.is_set():
            consumer.poll(POLL_S)
        membership.ledger.leaves(membership.name)
        consumer.close()


KINDS: dict[str, Callable[[Membership], Member]] = {"ours": Ours, "librdkafka": Stock}


# -- the course -----------------------------------------------------------------------------------------------------


@dataclass
class Course:
    """One group of one design from forming to its end; `costs` has the cost of each change."""

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
        """Wait for a random part of a heartbeat interval, because heartbeats are in step after a rebalance."""
        await asyncio.sleep(self._random.uniform(0, self.plan.heartbeat_ms / 1000))

    async def _start(self, name: str) -> None:
        membership = Membership(name, self.group, self.port, self.design, self.plan, self._ledger)
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

    def _generation(self) -> int:
        """The group's newest generation, from the broker's trace."""
        newest = 0
        for line in self.trace.read_bytes().splitlines():
            event = json.loads(line)
            if event.get("kind") == "group_changed" and event["group"] == self.group:
                newest = max(newest, event["generation"])
        return newest


async def courses(
    kind: str, designs: Iterable[Design], plan: Plan, port: int, trace: Path, seed: int = 1
) -> list[Course]:
    """Run all designs at the same time, each in a group of its own."""
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
