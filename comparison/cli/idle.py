"""What `consume` and `produce` say on standard error when nothing happens: why, once for each reason."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, TypeVar

import click

from comparison.group_readers.cluster import open_client
from comparison.group_readers.coordinator import CoordinatorReader
from comparison.group_readers.idle_reasons import GroupFacts, Idle, Saying, blocked, reasons, unsent
from comparison.group_readers.zookeeper import ZooKeeperReader
from comparison.screen.counted import counted
from comparison.screen.printable import printable
from kernel.client.bootstrap import addresses
from kernel.designs import DESIGNS
from kernel.errors import RebalanceLabError, Unavailable
from kernel.tasks import cancel_and_wait
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from comparison.consumers import ConsumerRequest
    from comparison.group_readers.columns import Subscribed
    from kernel.client.client import ClusterClient
    from kernel.consumer import GroupConsumer

T = TypeVar("T")

#: How long nothing may happen before it is explained, and how often the reasons are asked for again.
PATIENCE_S, AGAIN_S = 4.0, 2.0
_LOOK_S = 0.25


async def explained(work: Coroutine[object, object, T], find: Callable[[], Awaitable[Sequence[str]]], over: str) -> T:
    """Do the work; say why it takes long, and when that is over."""
    saying = Saying(PATIENCE_S)
    explaining = asyncio.create_task(_say_reasons(saying, lambda: True, find))
    try:
        done = await work
    finally:
        await cancel_and_wait(explaining)
    if saying.over():
        _say(f"over: {over}")
    return done


async def _say_reasons(
    saying: Saying, is_idle: Callable[[], bool], find: Callable[[], Awaitable[Sequence[str]]]
) -> None:
    """Say each reason while it is idle for too long; returns when it no longer is."""
    while is_idle():
        if saying.is_due(time.monotonic(), idle=True):
            found = await find()
            for reason in saying.new(found) if is_idle() else ():
                _say(f"waiting: {reason}")
            await asyncio.sleep(AGAIN_S)
        await asyncio.sleep(_LOOK_S)


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


async def unsent_reasons(client: ClusterClient, topic: str) -> Sequence[str]:
    """Why records for this topic are not stored."""
    error = client.metadata.errors.get(topic, "")
    try:
        metadata = await client.refresh()
    except Unavailable as unavailable:
        return (str(unavailable),)
    numbers = metadata.partitions_of(topic)
    leaderless = [number for number in numbers if client.leader_of(TopicPartition(topic, number)) is None]
    return (unsent(topic, error, metadata.sizes(), leaderless),)


class IdleConsumer:
    """Explains why streams of one consumer own nothing or have no coordinator.

    It asks with connections of its own, opened when they are needed.
    """

    def __init__(self, consumer: GroupConsumer, design: str, request: ConsumerRequest, subscribed: Subscribed) -> None:
        self._consumer = consumer
        self._design = design
        self._request = request
        self._subscribed = subscribed
        self._facts: Callable[[], Awaitable[GroupFacts]] | None = None
        self._stack = contextlib.AsyncExitStack()

    async def explain(self) -> None:
        """Without an end; close the connections when cancelled."""
        saying = Saying(PATIENCE_S)
        async with self._stack:
            while True:
                await _say_reasons(saying, self._is_waiting, self._reasons)
                saying.is_due(time.monotonic(), idle=False)
                if saying.over():
                    _say(self._owned())
                await asyncio.sleep(_LOOK_S)

    def _idle(self) -> int:
        """How many streams own nothing; one while there is none yet."""
        owned = self._consumer.assignment()
        return sum(not partitions for partitions in owned.values()) if owned else 1

    def _is_waiting(self) -> bool:
        places = self._consumer.places().values() if DESIGNS[self._design].coordinator else ()
        return self._idle() > 0 or any(not place.coordinator for place in places)

    def _owned(self) -> str:
        count = len(frozenset().union(*self._consumer.assignment().values()))
        return f"over: this consumer owns {counted(count, 'partition')}"

    async def _reasons(self) -> Sequence[str]:
        try:
            if self._facts is None:
                self._facts = await self._open()
            facts = await self._facts()
        except RebalanceLabError as error:
            facts = GroupFacts(group=self._request.group, unreachable=str(error))
        if not self._idle():
            return blocked(facts)
        streams = max(1, len(self._consumer.assignment()))
        return reasons(Idle(subscribed=self._subscribed, idle=self._idle(), streams=streams), facts, self._design)

    async def _open(self) -> Callable[[], Awaitable[GroupFacts]]:
        """Raises `Unavailable`."""
        request = self._request
        if not DESIGNS[self._design].coordinator:
            reader = await ZooKeeperReader.open(request.zookeeper, request.group)
            self._stack.push_async_callback(reader.close)
            return reader.facts
        client = await open_client(addresses(request.bootstrap))
        self._stack.push_async_callback(client.close)
        return CoordinatorReader(client, request.group).facts
