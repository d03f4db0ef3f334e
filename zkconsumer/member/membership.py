"""A member's place in its group: it registers, listens for changes, and returns in a new session.

Source: registerConsumerInZK, reinitializeConsumer and ZKSessionExpireListener of ZookeeperConsumerConnector, and
WildcardStreamsHandler, Kafka 0.8.2.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.errors import RebalanceFailed, RebalanceLabError
from kernel.zookeeper import paths
from kernel.zookeeper.errors import SessionClosed
from kernel.zookeeper.operations import SessionState
from zkconsumer.member.registration import IdTaken, register
from zkconsumer.member.subscription import SharedStreams
from zkconsumer.rebalance.effects import ChangeNotified, Disconnected, Reconnected, SessionRenewed
from zkconsumer.watching.topics import MatchingTopics
from zkconsumer.watching.watcher import Listening
from zkconsumer.znodes.payloads import registration_payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kernel.clock import Clock
    from kernel.trace.writer import Tracer
    from zkconsumer.member.executor import Executor
    from zkconsumer.member.subscription import Streams, Subscription
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watcher

log = logging.getLogger(__name__)


class Membership:
    """One consumer with one subscription. `demand(trigger, cause)` runs a rebalance: None, or why it failed."""

    def __init__(  # noqa: PLR0913 - the parts of one consumer
        self,
        config: ZkConsumerConfig,
        consumer_id: str,
        subscription: Subscription,
        streams: Streams,
        *,
        clock: Clock,
        tracer: Tracer,
        watcher: Watcher,
        executor: Executor,
        demand: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        self._config = config
        self._consumer_id = consumer_id
        self._subscription = subscription
        self._streams = streams
        self._clock = clock
        self._tracer = tracer
        self._session = watcher.session
        self._watcher = watcher
        self._executor = executor
        self._demand = demand
        self._matching_topics = MatchingTopics.of(
            subscription.topic_filter,
            watcher,
            lambda cause: self._with_matching_topics("topics", cause),
            exclude_internal=config.exclude_internal_topics,
        )

    async def remember_topics(self) -> None:
        """Read which topics match, as the original does before it registers. Nothing for a static member."""
        if self._matching_topics is not None:
            await self._matching_topics.remember()

    async def register(self) -> None:
        """See `registration.register`."""
        subscription, group, consumer_id = self._subscription, self._config.group_id, self._consumer_id
        try:
            await register(
                self._session,
                group,
                consumer_id,
                registration_payload(
                    subscription.wanted, self._clock.wall_ms(), subscription.pattern, release=self._config.release
                ),
                conflict_backoff_ms=self._config.session_timeout_ms,
                fail_on_conflict=self._config.registration_conflict == "fail",
                release=self._config.release,
            )
        except IdTaken:
            self._tracer.emit("member_refused", member=consumer_id, group=group, api="create", error="NodeExists")
            raise

    async def begin(self) -> None:
        """Listen, then rebalance for the first time. Raises `RebalanceFailed`; listeners stay in place."""
        if self._matching_topics is None:
            await self._listen_and_rebalance(self._subscription.wanted, "start")
        else:
            await self._with_matching_topics("start")
            await self._matching_topics.listen()

    async def renewed(self) -> None:
        """Return in a new session, before any listener is notified. The registry is emptied at once, even in a batch.

        Failures are only logged, as on the original's event thread; the listeners are notified anyway.
        """
        self._executor.post(SessionRenewed())
        try:
            await self.register()
            error = await self._demand("session", "")
            if error is not None:
                log.error("%s: the rebalance in a new session failed: %s", self._consumer_id, error)
        except SessionClosed:
            raise
        except RebalanceLabError:
            log.exception("%s: could not rejoin the group in a new session", self._consumer_id)
        if self._matching_topics is not None:
            await self._matching_topics.renewed()

    async def forward_connection_changes(self) -> None:
        """fix.stop.on.disconnect: post lost and restored connections at once, ahead of queued watch events."""
        states = self._session.subscribe()
        while True:
            change = await states.get()
            if change.state is SessionState.SUSPENDED:
                self._executor.post(Disconnected())
            elif change.state is SessionState.CONNECTED and not change.new_session:
                self._executor.post(Reconnected())

    def stop_listening(self) -> None:
        """The first step of a wildcard member's shutdown: remove all listeners (unsubscribeAll)."""
        if self._matching_topics is not None:
            self._watcher.forget_listeners()

    async def _with_matching_topics(self, trigger: str, cause: str = "") -> None:
        """Add the topics that match now. Topics that matched before keep their streams and listeners."""
        assert self._matching_topics is not None
        assert isinstance(self._streams, SharedStreams)
        for topic in await self._matching_topics.matching_now(cause=cause):
            self._streams.add(topic)
        await self._listen_and_rebalance(self._streams.topics, trigger, cause)

    async def _listen_and_rebalance(self, topics: Iterable[str], trigger: str, cause: str = "") -> None:
        executor, watcher = self._executor, self._watcher
        await watcher.listen(
            paths.member_ids(self._config.group_id),
            Listening.CHILDREN,
            lambda cause: executor.post(ChangeNotified("members", cause)),
        )
        for topic in topics:
            await watcher.listen(
                paths.topic(topic), Listening.DATA, lambda cause: executor.post(ChangeNotified("partitions", cause))
            )
        error = await self._demand(trigger, cause)
        if error is not None:
            raise RebalanceFailed(error)
