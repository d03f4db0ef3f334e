"""The members of `rolling`: ours, and librdkafka's as a peer. Both report to a ledger what they own."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from coordinator.client.classic.consumer import CoordinatorConsumer
from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.trace.writer import SilentTracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.rolling_designs import Design, Plan
    from bench.rolling_ledger import Ledger
    from kernel.values import TopicPartition

TOPIC = "rolling"
_POLL_S = 0.05


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
            "auto.offset.reset": "earliest",
            **(self._of_kip848 if self.design.reconciles else self._classic),
        }
        return given | ({"group.instance.id": self.name} if self.design.static else {})

    @property
    def _classic(self) -> dict[str, str]:
        return {
            "session.timeout.ms": str(self.plan.session_ms),
            "heartbeat.interval.ms": str(self.plan.heartbeat_ms),
            "partition.assignment.strategy": self.design.strategy,
        }

    @property
    def _of_kip848(self) -> dict[str, str]:
        return {"group.protocol": "consumer", "group.remote.assignor": self.design.strategy}


class Ours:
    """Our consumer, on this event loop."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._consumer = _consumer(membership)
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
            await self._consumer.getmany(timeout_ms=round(_POLL_S * 1000))

    async def on_assigned(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.gains(self._membership.name, [tp.partition for tp in partitions])

    async def on_revoked(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.loses(self._membership.name, [tp.partition for tp in partitions])

    async def on_lost(self, _stream: int, partitions: frozenset[TopicPartition]) -> None:
        self._membership.ledger.loses(self._membership.name, [tp.partition for tp in partitions])


def _consumer(membership: Membership) -> CoordinatorConsumer | Kip848Consumer:
    tracer, process = SilentTracer(), membership.name
    if membership.design.reconciles:
        reconciling, warnings = Kip848ConsumerConfig.from_settings(membership.settings)
        assert not warnings, warnings
        return Kip848Consumer(reconciling, tracer=tracer, process=process)
    classic, warnings = CoordinatorConsumerConfig.from_settings(membership.settings)
    assert not warnings, warnings
    return CoordinatorConsumer(classic, tracer=tracer, process=process)


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
            consumer.poll(_POLL_S)
        membership.ledger.leaves(membership.name)
        consumer.close()


KINDS: dict[str, Callable[[Membership], Member]] = {"ours": Ours, "librdkafka": Stock}
