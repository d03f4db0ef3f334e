"""The part of a consumer that subscribes by name or by pattern: what the classic designs and KIP-848 share.

A `TopicWatcher` follows topics that are created, grow, or are deleted. A pattern is not sent to the group: each member
sends the topics that match.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from coordinator.client import log_lines
from coordinator.client.configuration import SubscribingConfig
from coordinator.client.polling import PollingConsumer, Stream, raise_first
from coordinator.client.topic_watcher import TopicWatcher, WatchedStream
from coordinator.membership.subscription import by_name, by_pattern
from kernel.consumer import Capabilities, SilentListener
from kernel.runtime import REAL, Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coordinator.membership.subscription import Subscription
    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition

log = logging.getLogger(__name__)

CAPABILITIES = Capabilities(
    streams=False,
    resubscribe=True,
    patterns=True,
    commit_single_partitions=True,
    seek=True,
    pause=True,
)


class SubscribingMember(Protocol):
    """What the consumer shows of a member."""

    @property
    def member_id(self) -> str: ...

    @property
    def topics(self) -> frozenset[str] | None: ...

    @property
    def owned(self) -> frozenset[TopicPartition]: ...


class SubscribingStream(Stream, WatchedStream, Protocol):
    """What the consumer needs of a member's runner."""

    @property
    def member(self) -> SubscribingMember: ...

    def resubscribe(self, topics: Iterable[str]) -> None: ...

    async def unsubscribe(self) -> None: ...


S = TypeVar("S", bound=SubscribingStream)
C = TypeVar("C", bound=SubscribingConfig)


class SubscribingConsumer(PollingConsumer[S, C], Generic[S, C]):
    """See the module. `process` names it in messages; S is the design's stream, C its configuration."""

    def __init__(self, config: C, *, tracer: Tracer, process: str, runtime: Runtime = REAL) -> None:
        super().__init__(config, tracer=tracer, process=process, runtime=runtime)
        self._subscription: Subscription | None = None
        self._watcher = TopicWatcher(self._client, config, self._clock, self._streams, self._changed.set)
        self._log_prefix = log_lines.prefix(config.client_id, config.group_id, config.group_instance_id)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def start(self) -> None:
        """Connect to any broker. Raises `Unavailable` when none answers within socket.connection.setup.timeout.ms."""
        self._check_open()
        await self._reach_a_broker()

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """See `GroupConsumer.subscribe`; the next `getmany` joins, or rejoins.

        Stream n subscribes to the topics that have more than n streams. Raises `Unavailable`, and changes nothing,
        when no broker answers.
        """
        await self._subscribe(by_name(topics), listener)
        log.info(log_lines.SUBSCRIBED, self._log_prefix, ", ".join(sorted(topics)))

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """See `GroupConsumer.subscribe_pattern`. Raises as `subscribe`.

        Kafka's consumer does not switch from names to a pattern, or back, without an `unsubscribe`; here the new
        subscription simply replaces the old one.
        """
        exclude_internal = self._config.exclude_internal_topics
        await self._subscribe(by_pattern(pattern, streams, exclude_internal=exclude_internal), listener)
        log.info(log_lines.SUBSCRIBED_BY_PATTERN, self._log_prefix, pattern)

    async def _subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        self._check_open()
        async with self._subscribing:
            seen = await self._watcher.ask(subscription)
            self._check_open()
            self._subscription = subscription
            self._listener.listener = listener or SilentListener()
            surplus = self._spread(subscription, seen)
            self._watcher.begin(subscription)
            raise_first(await asyncio.gather(*(stream.close() for stream in surplus), return_exceptions=True))

    async def unsubscribe(self) -> None:
        """See `GroupConsumer.unsubscribe`. A static member stays in the group, as when it closes."""
        self._check_open()
        async with self._subscribing:
            self._subscription = None
            await self._watcher.end()
            raise_first(
                await asyncio.gather(*(stream.unsubscribe() for stream in self._streams), return_exceptions=True)
            )

    @property
    def _subscribed(self) -> bool:
        return self._subscription is not None

    async def _poll_streams(self, deadline_ns: int) -> None:
        await self._watcher.refresh_before_join((deadline_ns - self._clock.monotonic_ns()) / 1e9)
        self._watcher.check_topics()
        for stream in self._streams:
            if not self._watcher.holds_back(stream):
                stream.poll()

    async def _leave_group(self) -> Sequence[BaseException | None]:
        await self._watcher.end()
        return await super()._leave_group()
