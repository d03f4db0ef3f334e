"""A wildcard member's look at /brokers/topics: which topics its pattern takes, and when that changes.

Source: ZookeeperTopicEventWatcher.scala and WildcardStreamsHandler of Kafka 0.8.2. A change is handled where it is
delivered: while the rebalance that it causes runs, with all its attempts, no other notification of this member is
answered and no other watch is armed again. Kept on purpose (KAFKA-1139 moved only the partition listener away).

The look is not taken up when the first rebalance fails: the member then never hears of a new topic by itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode, SessionClosed
from zkconsumer.watching.watcher import Listening
from zkconsumer.znodes.filters import matching

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from zkconsumer.watching.watcher import Watching
    from zkconsumer.znodes.filters import TopicFilter

log = logging.getLogger(__name__)


class TopicWatching:
    """Calls `changed(cause)` when another set of topics matches than the last time."""

    @classmethod
    def of(
        cls,
        topic_filter: TopicFilter | None,
        watching: Watching,
        changed: Callable[[str], Awaitable[None]],
        *,
        exclude_internal: bool,
    ) -> TopicWatching | None:
        """None without a filter."""
        if topic_filter is None:
            return None
        return cls(watching, topic_filter, changed, exclude_internal=exclude_internal)

    def __init__(
        self,
        watching: Watching,
        topic_filter: TopicFilter,
        changed: Callable[[str], Awaitable[None]],
        *,
        exclude_internal: bool,
    ) -> None:
        self._watching = watching
        self._filter = topic_filter
        self._changed = changed
        self._exclude_internal = exclude_internal
        self._matching: frozenset[str] = frozenset()
        self._listening = False
        self._one_at_a_time = asyncio.Lock()  # the look after the first rebalance, and what is delivered meanwhile

    async def matching_now(self, *, step: str = "subscribe", cause: str = "") -> tuple[str, ...]:
        """One getChildren; without /brokers/topics nothing matches."""
        try:
            topics = await self._watching.children(paths.BROKER_TOPICS, step=step, cause=cause)
        except NoNode:
            topics = []
        return matching(self._filter.kind, self._filter.pattern, topics, exclude_internal=self._exclude_internal)

    async def look(self) -> None:
        """Before the registration: what to compare the first event with."""
        self._matching = frozenset(await self.matching_now())

    async def listen(self) -> None:
        """After the first rebalance: make the folder where it is missing, listen to it, and look once more."""
        path = paths.BROKER_TOPICS
        self._listening = True
        if await self._watching.session.exists(path, step="subscribe") is None:
            await self._watching.session.ensure_path(path, step="subscribe")
        await self._watching.listen(path, Listening.CHILDREN, self._told)
        await self._told("")

    async def renewed(self) -> None:
        """In a new session: listens again; then all listeners are told, this one too."""
        if self._listening:
            await self._watching.listen(paths.BROKER_TOPICS, Listening.CHILDREN, self._told)

    async def _told(self, cause: str) -> None:
        try:
            async with self._one_at_a_time:
                now = frozenset(await self.matching_now(step="delivery", cause=cause))
                before, self._matching = self._matching, now
                if now != before:
                    log.info("topics to consume: new %s, gone %s", sorted(now - before), sorted(before - now))
                    await self._changed(cause)
        except SessionClosed:
            raise
        except RebalanceLabError:
            # As the original's listener: the pattern's next change may go better.
            log.exception("could not handle a change of the topics")
