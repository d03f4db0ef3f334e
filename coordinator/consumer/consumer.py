"""The consumer of the classic designs; its settings decide which one (`eager`, `static`, `cooperative`, `delayed`).

`polling` has what it shares with the `server` design. Each stream is a `GroupStream`, a separate group member.
Rebalances begin and end inside `getmany`, as in Kafka's consumer: a member that has to rejoin keeps its partitions
until the next poll, then commits, revokes all of them (a cooperative one only what it must), joins, and takes over its
assignment. A `TopicWatcher` follows topics that are created, grow, or are deleted.

Positions are committed in a poll when auto-commit is due, before a rebalance and on close: always after the application
has polled again, so nothing is committed that it may not have processed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from coordinator.consumer import log_lines
from coordinator.consumer.calls import GroupCalls
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.polling import PollingConsumer, raise_first
from coordinator.consumer.settings import CoordinatorConsumerConfig
from coordinator.consumer.stream import GroupStream
from coordinator.consumer.topic_watcher import TopicWatcher
from coordinator.membership.subscription import by_name, by_pattern
from kernel.consumer import Capabilities, SilentListener

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.membership.subscription import Subscription
    from kernel.clock import Clock
    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

CAPABILITIES = Capabilities(
    streams=False,
    resubscribe=True,
    patterns=True,
    commit_single_partitions=True,
    seek=True,
)


class CoordinatorConsumer(PollingConsumer[GroupStream, CoordinatorConsumerConfig]):
    """A consumer with one or more members of one group. `process` names it in messages."""

    def __init__(
        self, config: CoordinatorConsumerConfig, *, tracer: Tracer, process: str, clock: Clock | None = None
    ) -> None:
        super().__init__(config, tracer=tracer, process=process, clock=clock)
        self._subscription: Subscription | None = None
        self._watcher = TopicWatcher(self._client, config, self._clock, self._streams, self._changed.set)
        self._context = self._new_context()
        self._log_prefix = log_lines.prefix(config.client_id, config.group_id, config.group_instance_id)

    def _new_context(self) -> ConsumerContext:
        config = self._config
        return ConsumerContext(
            config=config,
            calls=GroupCalls(
                group=config.group_id,
                session_timeout_ms=config.session_timeout_ms,
                rebalance_timeout_ms=config.max_poll_interval_ms,
                request_timeout_ms=config.request_timeout_ms,
            ),
            client=self._client,
            fetcher=self._fetcher,
            listener=self._listener,
            listening=asyncio.Lock(),
            tracer=self._tracer,
            clock=self._clock,
            changed=self._changed.set,
        )

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(stream.member.member_id for stream in self._streams if stream.member.member_id)

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

    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        self._streams.append(GroupStream(number, topics, self._context))

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
