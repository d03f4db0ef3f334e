"""What the streams of one consumer of the `server` design share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from coordinator.consumer.fetcher import Fetcher
    from coordinator.consumer.server.calls import ServerCalls
    from coordinator.consumer.server.settings import ServerConsumerConfig
    from kernel.client.client import ClusterClient
    from kernel.consumer import RebalanceListener
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.session import ZooKeeperSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConsumerContext:
    """Settings, connections and callbacks that the streams of one consumer share."""

    config: ServerConsumerConfig
    calls: ServerCalls
    client: ClusterClient
    fetcher: Fetcher
    session: ZooKeeperSession
    listener: RebalanceListener
    listening: asyncio.Lock  #: held during a callback: only one stream calls the listener at a time
    tracer: Tracer
    runtime: Runtime
    changed: Callable[[], None]  #: wakes a waiting poll
