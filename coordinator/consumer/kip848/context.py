"""What the streams of one KIP-848 consumer share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from coordinator.consumer.fetcher import Fetcher
    from coordinator.consumer.kip848.calls import Kip848Calls
    from coordinator.consumer.kip848.settings import Kip848ConsumerConfig
    from kernel.client.client import ClusterClient
    from kernel.consumer import RebalanceListener
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip848Context:
    """Settings, connections and callbacks that the streams of one consumer share."""

    config: Kip848ConsumerConfig
    calls: Kip848Calls
    client: ClusterClient
    fetcher: Fetcher
    listener: RebalanceListener
    listening: asyncio.Lock  #: held during a callback: only one stream calls the listener at a time
    tracer: Tracer
    runtime: Runtime
    changed: Callable[[], None]  #: wakes a waiting poll
