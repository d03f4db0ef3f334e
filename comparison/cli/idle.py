"""What `consume` and `produce` say on standard error when nothing happens: why, once for each reason."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import click

from comparison.group_readers.cluster import open_client
from comparison.group_readers.coordinator import CoordinatorReader
from comparison.group_readers.zookeeper import ZooKeeperReader
from comparison.idle_reasons import GroupFacts, Idle, Saying, reasons
from comparison.printable import printable
from comparison.scenarios.testbed.cluster_access import addresses
from kernel.designs import DESIGNS
from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from comparison.consumers import ConsumerRequest
    from comparison.group_columns import Subscribed
    from kernel.consumer import GroupConsumer

#: How long nothing may happen before it is explained, and how often the reasons are asked for again.
PATIENCE_S, AGAIN_S = 4.0, 2.0
_LOOK_S = 0.25


async def say_while(
    is_idle: Callable[[], bool], find: Callable[[], Awaitable[Sequence[str]]], over: Callable[[], str]
) -> None:
    """Say each reason once while something is idle for too long, and what is so when that is over; without an end."""
    saying, asked_s = Saying(PATIENCE_S), 0.0
    while True:
        await asyncio.sleep(_LOOK_S)
        now_s = time.monotonic()
        if not is_idle():
            saying.is_due(now_s, idle=False)
            if saying.over():
                _say(over())
        elif saying.is_due(now_s, idle=True) and now_s - asked_s >= AGAIN_S:
            found = await find()
            asked_s = time.monotonic()
            for reason in saying.new(found) if is_idle() else ():
                _say(f"waiting: {reason}")


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


class IdleConsumer:
    """Explains why streams of one consumer own nothing, with connections of its own, opened when they are needed."""

    def __init__(self, consumer: GroupConsumer, design: str, request: ConsumerRequest, subscribed: Subscribed) -> None:
        self._consumer = consumer
        self._design = design
        self._request = request
        self._subscribed = subscribed
        self._facts: Callable[[], Awaitable[GroupFacts]] | None = None
        self._stack = contextlib.AsyncExitStack()

    async def explain(self) -> None:
        """Without an end; close the connections when cancelled."""
        async with self._stack:
            await say_while(lambda: self._idle() > 0, self._reasons, self._owned)

    def _idle(self) -> int:
        """How many streams own nothing; one while there is none yet."""
        owned = self._consumer.assignment()
        return sum(not partitions for partitions in owned.values()) if owned else 1

    def _owned(self) -> str:
        count = len(frozenset().union(*self._consumer.assignment().values()))
        return f"over: this consumer owns {count} partition{'' if count == 1 else 's'}"

    async def _reasons(self) -> Sequence[str]:
        try:
            if self._facts is None:
                self._facts = await self._open()
            facts = await self._facts()
        except RebalanceLabError as error:
            facts = GroupFacts(group=self._request.group, unreachable=str(error))
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
