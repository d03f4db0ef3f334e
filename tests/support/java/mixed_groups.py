"""One group of our members and original consumers, behind one proxy that sees every request to ZooKeeper.

    async with mixed_group(broker, "g", {"t": 4}) as group:      # topics of a real broker, created if missing
        group.load()                                              # numbered records into every partition, all the time
        ours = await group.join_ours("c1", {"t": 1})
        theirs = await group.join_original(host, "c2", Pattern("white_list", "t|u"))
        await group.settled()                                     # the owner nodes follow from the registered ids
        await ours.leave(), await theirs.kill(), ...
        await group.drained()                                     # everything has been delivered; the load has ended
        group.verify()

`verify` checks all ownerships (a claim, and the records that the member then delivered from the partition): each begins
at the committed offset that its member read and has no gaps, and together they cover the log. So only uncommitted
records are delivered twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.platform.processes import start_child
from kernel.serials import numbered_value
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from tests.support.consumers.zookeeper import SETTINGS, Member, new_member, owners
from tests.support.java.originals import PROPERTIES
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session, opened
from zkconsumer.znodes.filters import TopicFilter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from comparison.originals.brokers import RealBroker
    from comparison.originals.hosts import OriginalHost, OriginalMember, Pattern
    from kernel.zookeeper.session import ZooKeeperSession
    from tests.support.zookeeper.proxy import Op

    #: {topic: thread ids of the whole group}, {topic: partitions} -> {partition: thread id}
    Rule = Callable[[Mapping[str, list[str]], Mapping[str, int]], dict[TopicPartition, str]]

#: Longer than any pause of a busy machine; tests end sessions explicitly.
SESSION_MS = 30_000
COMMIT_MS = 500


class Delivery(NamedTuple):
    """One record that a member has delivered."""

    partition: TopicPartition
    offset: int
    at: float  #: time.monotonic()


class Party(Protocol):
    """A member of either kind."""

    consumer_id: str

    def deliveries(self) -> list[Delivery]: ...
    async def leave(self) -> None: ...
    async def end(self) -> None:
        """End what is left of it. Idempotent."""


def by_range(threads: Mapping[str, list[str]], partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """Topic by topic: threads in string order; the first ones get one more partition."""
    owned = {}
    for topic, unordered in threads.items():
        each, more = divmod(partitions.get(topic, 0), len(unordered))
        turns = [thread for i, thread in enumerate(sorted(unordered)) for _ in range(each + (i < more))]
        owned |= {TopicPartition(topic, number): thread for number, thread in enumerate(turns)}
    return owned


def delivered_by(events: list[dict[str, object]]) -> list[Delivery]:
    """The deliveries in our `records_delivered` events."""
    return [
        Delivery(TopicPartition(str(e["topic"]), int(str(e["partition"]))), offset, int(str(e["ns"])) / 1e9)
        for e in events
        if e["kind"] == "records_delivered"
        for offset in range(int(str(e["first"])), int(str(e["last"])) + 1)
    ]


def was_in_hand(offsets: list[int], last: int, begins_at: frozenset[int | None]) -> bool:
    """Whether the first of these offsets belongs to the previous ownership, which ended with `last`.

    An application may still process a record during the rebalance and finish after the next claim. It was not
    committed, so it is delivered again.
    """
    if not offsets or offsets[0] != last + 1:
        return False
    starts = {0 if start is None else start for start in begins_at}
    return offsets[0] not in starts or (len(offsets) > 1 and offsets[1] in starts and offsets[1] != offsets[0] + 1)


class Ours:
    """One of our members in this process, with a task that polls."""

    def __init__(self, member: Member, consumer_id: str) -> None:
        self.member = member
        self.consumer_id = consumer_id
        self._polling: asyncio.Task[None] | None = None

    async def join(self, topics: Mapping[str, int] | TopicFilter, streams: int = 1) -> None:
        consumer = self.member.consumer
        await consumer.start()
        if isinstance(topics, TopicFilter):
            await consumer.subscribe_pattern(topics, streams, self.member)
        else:
            await consumer.subscribe(topics, self.member)
        self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            await self.member.consumer.getmany(timeout_ms=100)

    def deliveries(self) -> list[Delivery]:
        return delivered_by(self.member.tracer.events)

    async def commit(self) -> None:
        await self.member.consumer.commit()

    async def leave(self) -> None:
        await self.end()

    async def end(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling
            self._polling = None
        await self.member.consumer.close()


class OursAsProcess:
    """One of our members in a separate process, which can be killed."""

    def __init__(self, config: Mapping[str, object], log: Path) -> None:
        self.consumer_id = f"{config['group']}_{config['process']}"
        self._events: list[dict[str, object]] = []
        with log.open("ab") as errors:
            self._child = start_child(
                [sys.executable, "-m", "comparison.scenarios.processes.member_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._say(config)

    def _say(self, line: Mapping[str, object]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(line).encode() + b"\n")
        self._child.stdin.flush()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._events.append(json.loads(line))

    def deliveries(self) -> list[Delivery]:
        return delivered_by(list(self._events))

    async def leave(self) -> None:
        self._say({"command": "leave"})
        assert await asyncio.to_thread(self._child.wait, 20) == 0
        await self.end()

    async def kill(self) -> None:
        """SIGKILL: its nodes stay until its session expires."""
        self._child.kill()
        await self.end()

    async def end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
        await asyncio.to_thread(self._child.wait)
        self._reader.join()
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Theirs:
    """An original consumer."""

    def __init__(self, original: OriginalMember) -> None:
        self.original = original
        self.consumer_id = original.consumer_id
        self._left = False

    def deliveries(self) -> list[Delivery]:
        return [Delivery(TopicPartition(m.topic, m.partition), m.offset, m.at) for m in list(self.original.messages)]

    async def commit(self) -> None:
        await self.original.commit()

    async def leave(self) -> None:
        self._left = True
        await self.original.leave()

    async def kill(self) -> None:
        """SIGKILL its host, which it must not share."""
        self._left = True
        await asyncio.to_thread(self.original.host.kill)

    async def end(self) -> None:
        if not self._left:
            await self.leave()


@dataclass
class Ownership:
    """What a member delivered from a partition between a claim and its next claim of it."""

    member: str
    partition: TopicPartition
    begins_at: frozenset[int | None]  #: the committed offset that it read; two values if a commit was in flight
    offsets: list[int]

    def faults(self) -> list[str]:
        who = f"{self.member}'s ownership of {self.partition}"
        found = []
        if self.offsets and self.offsets[0] not in {0 if start is None else start for start in self.begins_at}:
            found.append(f"{who} begins at {self.offsets[0]}, but {set(self.begins_at)} was committed")
        found += [f"{who} jumps from {a} to {b}" for a, b in pairwise(self.offsets) if b != a + 1]
        return found


@dataclass
class MixedGroup:
    """Created by `mixed_group`."""

    name: str
    broker: RealBroker
    session: ZooKeeperSession  #: bypasses the proxy
    proxy: ZooKeeperProxy
    folder: Path
    topics: dict[str, int]
    settings: dict[str, str] = field(default_factory=dict)  #: of every member, by Kafka's names
    members: dict[str, Party] = field(default_factory=dict)  #: those that should be registered, by consumer id
    everyone: list[Party] = field(default_factory=list)
    produced: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))
    _loading: asyncio.Task[None] | None = None
    _enough: bool = False

    # -- members -----------------------------------------------------------------------------------------------------

    async def join_ours(
        self, name: str, topics: Mapping[str, int] | TopicFilter, streams: int = 1, **settings: str
    ) -> Ours:
        """A member in this process that subscribes by name, or by a pattern with `streams` streams."""
        given = {key.replace(".", "_"): value for key, value in self._given(settings).items()}
        made = Ours(new_member(self.proxy.connect_string, name, group=self.name, **given), f"{self.name}_{name}")
        self._enter(made)
        await made.join(topics, streams)
        return made

    async def join_ours_as_process(self, name: str, topics: Mapping[str, int], **settings: str) -> OursAsProcess:
        """A member in a separate process; it may still be joining when this returns."""
        config = {
            "process": name,
            "design": "zookeeper",
            "run": "run",
            "scenario": "mixed",
            "seed": 0,
            "trace": str(self.folder / f"{name}.jsonl"),
            "group": self.name,
            "topics": dict(topics),
            "zookeeper": self.proxy.connect_string,
            "bootstrap": self.broker.bootstrap,
            "settings": {**SETTINGS, **self._given(settings), "consumer.id": name},
        }
        made = OursAsProcess(config, self.folder / f"{name}.log")
        self._enter(made)
        return made

    async def join_original(
        self, host: OriginalHost, name: str, topics: Mapping[str, int] | Pattern, **settings: str
    ) -> Theirs:
        made = Theirs(
            host.member(
                name,
                zookeeper=self.proxy.connect_string,
                group=self.name,
                topics=topics,
                properties={**PROPERTIES, **self._given(settings)},
            )
        )
        self._enter(made)
        await made.original.join()
        return made

    def _given(self, settings: Mapping[str, str]) -> dict[str, str]:
        own = {key.replace("_", "."): value for key, value in settings.items()}
        timers = {"zookeeper.session.timeout.ms": str(SESSION_MS), "auto.commit.interval.ms": str(COMMIT_MS)}
        return {**timers, **self.settings, **own}

    def _enter(self, party: Party) -> None:
        self.members[party.consumer_id] = party
        self.everyone.append(party)

    async def leaves(self, party: Party) -> None:
        del self.members[party.consumer_id]
        await party.leave()

    async def dies(self, party: Theirs | OursAsProcess) -> None:
        del self.members[party.consumer_id]
        await party.kill()
        await self._end_session(party)

    async def _end_session(self, party: Party) -> None:
        """End its session, as its timeout would."""
        zookeeper = self.broker.zookeeper
        assert zookeeper is not None
        await asyncio.to_thread(end_session, zookeeper, self.proxy.credentials(party.consumer_id))

    # -- the group in ZooKeeper --------------------------------------------------------------------------------------

    async def registrations(self) -> dict[str, dict[str, object]]:
        """{consumer id: its payload} in ZooKeeper."""
        found = {}
        try:
            names = await self.session.children(paths.member_ids(self.name))
        except NoNode:
            return {}
        for name in names:
            with contextlib.suppress(NoNode):
                found[name] = json.loads((await self.session.get(paths.member_id(self.name, name)))[0])
        return found

    async def threads(self) -> dict[str, list[str]]:
        """{topic: thread ids} of the registered ids."""
        every = await self.session.children(paths.BROKER_TOPICS)
        found: dict[str, list[str]] = defaultdict(list)
        for name, payload in (await self.registrations()).items():
            subscription = payload["subscription"]
            assert isinstance(subscription, dict)
            for topic, streams in subscription.items():
                kind = payload["pattern"]
                if kind == "static":
                    meant = [topic]
                else:
                    meant = [t for t in every if bool(re.fullmatch(topic, t)) == (kind == "white_list")]
                for each in meant:
                    found[each] += [f"{name}-{i}" for i in range(streams)]
        return found

    async def settled(self, rule: Rule = by_range, *, timeout_s: float = 30) -> dict[TopicPartition, str]:
        """Wait until exactly our members are registered and the owner nodes follow the rule."""
        seen: dict[str, object] = {}
        actual: dict[TopicPartition, str] = {}

        async def as_it_should_be() -> bool:
            nonlocal actual
            registered = sorted(await self.registrations())
            expected = rule(await self.threads(), self.topics)
            actual = await owners(self.session, self.name)
            seen.update(registered=registered, expected=expected, owners=actual)
            return registered == sorted(self.members) and actual == expected

        await until(as_it_should_be, timeout_s, lambda: f"{sorted(self.members)} to settle; {seen}", every_s=0.05)
        return actual

    async def expire(self, party: Party) -> None:
        """Expire its session, and let it return."""
        path = paths.member_id(self.name, party.consumer_id)
        (_, before) = await self.session.get(path)
        self.proxy.refuse(True, party.consumer_id)
        self.proxy.cut(party.consumer_id)
        await self._end_session(party)

        async def expired() -> bool:
            found = await self.session.exists(path)
            return found is None or found.ephemeral_owner != before.ephemeral_owner

        await until(expired, 60, f"{path} to expire")
        self.proxy.refuse(False, party.consumer_id)

    # -- records -----------------------------------------------------------------------------------------------------

    async def create_topic(self, topic: str, partitions: int) -> None:
        self.topics[topic] = partitions
        await asyncio.to_thread(self.broker.create_topic, topic, partitions)

    def load(self, *, every_s: float = 0.02) -> None:
        """From now on, send a record to each partition of each existing topic every `every_s`."""
        self._loading = asyncio.create_task(self._load(every_s))

    async def _load(self, every_s: float) -> None:
        client = ClusterClient([("127.0.0.1", self.broker.port)], "load")
        producer = Producer(client)
        try:
            while not self._enough:
                every = [TopicPartition(t, p) for t, n in self.topics.items() for p in range(n)]
                sent = [producer.enqueue(tp, numbered_value(self.produced[tp])) for tp in every]
                for tp, offset in zip(every, await asyncio.gather(*sent), strict=True):
                    assert offset == self.produced[tp]
                    self.produced[tp] += 1
                await asyncio.sleep(every_s)
        finally:
            await producer.close()
            await client.close()

    async def drained(self, *, timeout_s: float = 20) -> None:
        """End the load, and wait until every record has been delivered at least once."""
        await self.end_load()
        await until(lambda: not self._missing(), timeout_s, lambda: f"delivery of {self._missing()}", every_s=0.05)

    async def end_load(self) -> None:
        self._enough = True
        if self._loading is not None:
            await self._loading
            self._loading = None

    def _missing(self) -> dict[TopicPartition, int]:
        """{partition: number of its records that no member has delivered}."""
        seen: dict[TopicPartition, set[int]] = defaultdict(set)
        for party in self.everyone:
            for delivery in party.deliveries():
                seen[delivery.partition].add(delivery.offset)
        return {tp: count - len(seen[tp]) for tp, count in self.produced.items() if count > len(seen[tp])}

    # -- checks ------------------------------------------------------------------------------------------------------

    def ownerships(self) -> list[Ownership]:
        operations = self.proxy.operations()
        deliveries = {party.consumer_id: party.deliveries() for party in self.everyone}
        claims: dict[tuple[str, TopicPartition], list[Op]] = defaultdict(list)
        for op in operations:
            owned = paths.parse_owner(op.path)
            if owned and owned.group == self.name and op.op == "create" and op.result == "ok":
                claims[op.connection, TopicPartition(owned.topic, owned.partition)].append(op)
        found = []
        for (member, tp), made in claims.items():
            ends = [op.at for op in made[1:]] + [float("inf")]
            goes_on: set[int] = set()  # offsets at which the member's previous ownership would have gone on
            for claim, end in zip(made, ends, strict=True):
                offsets = [d.offset for d in deliveries[member] if d.partition == tp and claim.at <= d.at < end]
                begins_at = self._committed_for(claim, operations)
                if any(was_in_hand(offsets, next_offset - 1, begins_at) for next_offset in goes_on):
                    offsets = offsets[1:]
                found.append(Ownership(member, tp, begins_at, offsets))
                goes_on = {offsets[-1] + 1} if offsets else goes_on
                if len(offsets) < 2:  # its first record may still be in hand; a single one may have been in hand before
                    goes_on |= {0 if start is None else start for start in begins_at}
        return found

    def _committed_for(self, claim: Op, operations: list[Op]) -> frozenset[int | None]:
        """The offsets that the claimer may have read from the partition's offset node before its claim."""
        owned = paths.parse_owner(claim.path)
        assert owned is not None
        path = paths.offset(owned.group, owned.topic, owned.partition)
        of_node = [op for op in operations if op.path == path]
        read = [op for op in of_node if op.op == "getData" and op.connection == claim.connection and op.at <= claim.at][
            -1
        ]
        assert read.answered_at is not None
        done: int | None = None
        under_way: set[int | None] = set()
        for op in of_node:
            if op.op in ("create", "setData") and op.result in ("ok", None) and op.data and op.at < read.answered_at:
                if op.answered_at is not None and op.answered_at <= read.at:
                    done = int(op.data)
                else:
                    under_way.add(int(op.data))
        return frozenset({done, *under_way})

    def verify(self) -> None:
        """Check that no record is lost, and that every ownership begins at the committed offset and has no gaps."""
        assert not self._missing()
        assert self.produced
        ownerships = self.ownerships()
        faults = [fault for ownership in ownerships for fault in ownership.faults()]
        of_them = {(each.member, each.partition) for each in ownerships if each.faults()}
        seen = [str(each) for each in ownerships if (each.member, each.partition) in of_them]
        assert not faults, "\n".join([*faults, *seen])


@asynccontextmanager
async def mixed_group(
    broker: RealBroker, name: str, topics: Mapping[str, int], folder: Path, **settings: str
) -> AsyncIterator[MixedGroup]:
    """An empty group; members, load and proxy end with it. `settings` apply to every member."""
    assert broker.zookeeper is not None
    with ZooKeeperProxy(broker.zookeeper) as proxy:
        async with opened(broker.zookeeper) as session:
            given = {key.replace("_", "."): value for key, value in settings.items()}
            group = MixedGroup(name, broker, session, proxy, folder, {}, given)
            for topic, partitions in topics.items():
                await group.create_topic(topic, partitions)
            try:
                yield group
            finally:
                await group.end_load()
                await asyncio.gather(*(party.end() for party in group.everyone))
