"""What the streams of one consumer share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from coordinator.client.configuration import PollingConfig
from kernel.consumer import SilentListener

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from coordinator.client.calls import CommitCalls
    from coordinator.client.fetcher import Fetcher
    from kernel.client.client import ClusterClient
    from kernel.consumer import RebalanceListener
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition


class CurrentListener:
    """Forwards to the current subscription's listener, if it has one."""

    def __init__(self) -> None:
        self.listener: RebalanceListener = SilentListener()

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await self.listener.on_assigned(stream, partitions)

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await self.listener.on_revoked(stream, partitions)

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await self.listener.on_lost(stream, partitions)


G = TypeVar("G", bound=PollingConfig, covariant=True)
A = TypeVar("A", bound="CommitCalls", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerContext(Generic[G, A]):
    """Settings, connections and callbacks that the streams of one consumer share.

    G is the design's configuration, A has its requests.
    """

    config: G
    calls: A
    client: ClusterClient
    fetcher: Fetcher
    listener: RebalanceListener
    listening: asyncio.Lock  #: held during a callback: only one stream calls the listener at a time
    tracer: Tracer
    runtime: Runtime
    changed: Callable[[], None]  #: wakes a waiting poll


AnyContext = ConsumerContext[PollingConfig, "CommitCalls"]
