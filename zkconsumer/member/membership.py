"""A member's place in its group: registered, listening to what may change, and back again in a new session.

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
from zkconsumer.member.registration import register
from zkconsumer.member.subscription import SharedStreams
from zkconsumer.rebalance.effects import ChangeNotified, Disconnected, Reconnected, SessionRenewed
from zkconsumer.watching.topics import TopicWatching
from zkconsumer.watching.watcher import Listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from zkconsumer.member.executor import Executor
    from zkconsumer.member.subscription import Streams, Subscription
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watching

log = logging.getLogger(__name__)


class Membership:
    """Of one consumer, with one subscription. `demand(trigger, cause)` has a rebalance done: None, or why not."""

    def __init__(
        self,
        config: ZkConsumerConfig,
        consumer_id: str,
        subscription: Subscription,
        streams: Streams,
        *,
        watching: Watching,
        executor: Executor,
        demand: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        self._config = config
        self._consumer_id = consumer_id
        self._subscription = subscription
        self._streams = streams
        self._session = watching.session
        self._watching = watching
        self._executor = executor
        self._demand = demand
        self._topic_watching = TopicWatching.of(
            subscription.topic_filter,
            watching,
            lambda cause: self._with_matching_topics("topics", cause),
            exclude_internal=config.exclude_internal_topics,
        )

    async def look(self) -> None:
        """What the original does before it registers; nothing for a static member."""
        if self._topic_watching is not None:
            await self._topic_watching.look()

    async def register(self) -> None:
        """See `registration.register`."""
        await register(
            self._session,
            self._config.group_id,
            self._consumer_id,
            self._subscription,
            conflict_backoff_ms=self._config.session_timeout_ms,
            fail_on_conflict=self._config.registration_conflict == "fail",
        )

    async def begin(self) -> None:
        """Listen, then rebalance for the first time. Raises `RebalanceFailed`; what listens by then goes on."""
        if self._topic_watching is None:
            await self._listen_and_rebalance(self._subscription.wanted, "start")
        else:
            await self._with_matching_topics("start")
            await self._topic_watching.listen()

    async def renewed(self) -> None:
        """A new session stands: told before any listener. The registry is emptied at once, whatever is being done.

        What fails here is only logged, as on the original's event thread; the listeners are told all the same.
        """
        self._executor.tell(SessionRenewed())
        try:
            await self.register()
            error = await self._demand("session", "")
            if error is not None:
                log.error("%s: after a new session: %s", self._consumer_id, error)
        except SessionClosed:
            raise
        except RebalanceLabError:
            log.exception("%s: could not return in a new session", self._consumer_id)
        if self._topic_watching is not None:
            await self._topic_watching.renewed()

    async def tell_connection(self) -> None:
        """fix.stop.on.disconnect: what the session says goes straight to the machine, past the delivery of watches."""
        states = self._session.subscribe()
        while True:
            change = await states.get()
            if change.state is SessionState.SUSPENDED:
                self._executor.tell(Disconnected())
            elif change.state is SessionState.CONNECTED and not change.new_session:
                self._executor.tell(Reconnected())

    def stop_watching_topics(self) -> None:
        """The first of a wildcard member's shutdown, by which it stops listening to anything (unsubscribeAll)."""
        if self._topic_watching is not None:
            self._watching.forget_listeners()

    async def _with_matching_topics(self, trigger: str, cause: str = "") -> None:
        """Those that match now; those that matched before keep their streams and are still watched."""
        assert self._topic_watching is not None
        assert isinstance(self._streams, SharedStreams)
        for topic in await self._topic_watching.matching_now(cause=cause):
            self._streams.add(topic)
        await self._listen_and_rebalance(self._streams.topics, trigger, cause)

    async def _listen_and_rebalance(self, topics: Iterable[str], trigger: str, cause: str = "") -> None:
        executor, watching = self._executor, self._watching
        await watching.listen(
            paths.member_ids(self._config.group_id),
            Listening.CHILDREN,
            lambda cause: executor.tell(ChangeNotified("members", cause)),
        )
        for topic in topics:
            await watching.listen(
                paths.topic(topic), Listening.DATA, lambda cause: executor.tell(ChangeNotified("partitions", cause))
            )
        error = await self._demand(trigger, cause)
        if error is not None:
            raise RebalanceFailed(error)
