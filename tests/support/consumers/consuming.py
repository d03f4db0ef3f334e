"""Consumers that run during a test: a task polls each of them, and they keep the records they receive."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.consumer import GroupConsumer
from kernel.serials import numbered_value
from kernel.values import CommitOutcome, Record, TopicPartition
from kernel.waiting import until
from tests.support.trace.tracers import ListTracer

Owned = frozenset[TopicPartition]


class Listener:
    """Records its calls in order, as (what, stream, partitions)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, Owned]] = []

    async def on_assigned(self, stream: int, partitions: Owned) -> None:
        self.heard.append(("assigned", stream, partitions))

    async def on_revoked(self, stream: int, partitions: Owned) -> None:
        self.heard.append(("revoked", stream, partitions))

    async def on_lost(self, stream: int, partitions: Owned) -> None:
        self.heard.append(("lost", stream, partitions))

    def of(self, what: str) -> list[Owned]:
        return [partitions for said, _, partitions in self.heard if said == what]

    @property
    def has(self) -> Owned:
        """The partitions that the listener has now."""
        held: Owned = frozenset()
        for what, _, partitions in self.heard:
            held = held | partitions if what == "assigned" else held - partitions
        return held


class Running:
    """One consumer, polled until it is paused or closed. `failure` holds what a poll raised."""

    def __init__(self, consumer: GroupConsumer, tracer: ListTracer) -> None:
        self.consumer = consumer
        self.tracer = tracer
        self.listener = Listener()
        self.records: list[Record] = []
        self._task: asyncio.Task[None] | None = None

    async def begin(self, topics: Mapping[str, int]) -> Running:
        await self.consumer.start()
        await self.consumer.subscribe(topics, self.listener)
        self.resume()
        return self

    async def begin_pattern(self, pattern: str) -> Running:
        await self.consumer.start()
        await self.consumer.subscribe_pattern(pattern, listener=self.listener)
        self.resume()
        return self

    async def resubscribe(self, wanted: Mapping[str, int] | str) -> None:
        """Subscribe to other topics, by name or by pattern, between two polls."""
        await self.pause()
        if isinstance(wanted, str):
            await self.consumer.subscribe_pattern(wanted, listener=self.listener)
        else:
            await self.consumer.subscribe(wanted, self.listener)
        self.resume()

    async def unsubscribe(self) -> None:
        """Unsubscribe, and stop polling until `resubscribe`."""
        await self.pause()
        await self.consumer.unsubscribe()

    def resume(self) -> None:
        self._task = asyncio.create_task(self._poll())

    async def pause(self) -> None:
        """Stop polling; raises what a poll has raised."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return

    async def _poll(self) -> None:
        while True:
            for batch in await self.consumer.getmany(timeout_ms=100):
                self.records += batch.records

    @property
    def failure(self) -> BaseException | None:
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    @property
    def owned(self) -> Owned:
        """What it believes it owns, over all streams."""
        return frozenset().union(*self.consumer.assignment().values())

    def values(self) -> list[bytes]:
        return [record.value or b"" for record in self.records]

    async def close(self) -> None:
        await self.pause()
        await self.consumer.close()


_numbers = itertools.count(1)


def running(consumer: Callable[..., GroupConsumer], config: Any, settings: Mapping[str, str]) -> Running:
    """A consumer with these settings, not started, and under a name of its own; `config` is the class of them."""
    process = f"ours-{next(_numbers)}"
    parsed, warnings = config.from_settings({"client.id": process, **settings})
    assert not warnings, warnings
    tracer = ListTracer(process=process)
    return Running(consumer(parsed, tracer=tracer, process=process), tracer)


async def shared_out(members: Sequence[Running], partitions: Owned, *, timeout_s: float = 60) -> None:
    """Wait until the members together own all of `partitions`, each at least one if there are enough, and their
    listeners have been notified, which happens a moment later.
    """

    def done() -> bool:
        for member in members:
            if member.failure is not None:
                raise AssertionError("a poll failed") from member.failure
        owned = [member.owned for member in members]
        each = min(map(len, owned)) > 0 or len(partitions) < len(members)
        notified = [member.listener.has for member in members] == owned
        return notified and each and sum(map(len, owned)) == len(partitions) and frozenset().union(*owned) == partitions

    await until(
        done,
        timeout_s,
        lambda: f"members to share {len(partitions)} partitions: {[sorted(member.owned) for member in members]}",
    )


def partitions_of(topic: str, number: int) -> Owned:
    return frozenset(TopicPartition(topic, n) for n in range(number))


@asynccontextmanager
async def producing(bootstrap: str) -> AsyncIterator[NumberedProducer]:
    """A producer whose values are numbered in each partition."""
    addresses = [(host, int(port)) for host, _, port in (part.rpartition(":") for part in bootstrap.split(","))]
    client = ClusterClient(addresses, "producer")
    producer = Producer(client)
    try:
        yield NumberedProducer(client, producer)
    finally:
        await producer.close()
        await client.close()


class NumberedProducer:
    """Sends records to each partition, numbered consecutively over all calls."""

    def __init__(self, client: ClusterClient, producer: Producer) -> None:
        self._client = client
        self._producer = producer
        self._next: dict[TopicPartition, int] = {}

    async def send_values(self, topic: str, values: Callable[[int], Sequence[bytes]]) -> None:
        """Send to each partition the values that `values` returns for its number."""
        await self._client.refresh([topic])
        partitions = self._client.metadata.partitions_of(topic)
        await asyncio.gather(*(self._producer.send(TopicPartition(topic, n), v) for n in partitions for v in values(n)))

    async def send(self, topic: str, number: int) -> None:
        await self._client.refresh([topic])
        sends = []
        for n in self._client.metadata.partitions_of(topic):
            tp = TopicPartition(topic, n)
            first = self._next.get(tp, 0)
            self._next[tp] = first + number
            sends += [self._producer.send(tp, numbered_value(first + i)) for i in range(number)]
        await asyncio.gather(*sends)


async def committed_all(member: Running) -> CommitOutcome:
    """Commit everything returned so far; every partition must be accepted."""
    outcome = await member.consumer.commit()
    assert not outcome.refused, outcome
    return outcome
