"""The topics that match a wildcard member's pattern, from /brokers/topics, and when that set changes.

Source: ZookeeperTopicEventWatcher.scala and WildcardStreamsHandler of Kafka 0.8.2. A change is handled in its delivery:
while the rebalance that it causes runs, with all its attempts, no other notification of this member is handled and no
other watch is registered again. Kept on purpose (KAFKA-1139 moved only the partition listener away).

If the first rebalance fails, the member never starts to listen, and does not notice new topics by itself.
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

    from zkconsumer.watching.watcher import Watcher
    from zkconsumer.znodes.filters import TopicFilter

log = logging.getLogger(__name__)


class MatchingTopics:
    """Calls `changed(cause)` when the set of matching topics has changed."""

    @classmethod
    def of(
        cls,
        topic_filter: TopicFilter | None,
        watcher: Watcher,
        changed: Callable[[str], Awaitable[None]],
        *,
        exclude_internal: bool,
    ) -> MatchingTopics | None:
        """Watch for topics that match a filter; None if there is no filter."""
        if topic_filter is None:
            return None
        return cls(watcher, topic_filter, changed, exclude_internal=exclude_internal)

    def __init__(
        self,
        watcher: Watcher,
        topic_filter: TopicFilter,
        changed: Callable[[str], Awaitable[None]],
        *,
        exclude_internal: bool,
    ) -> None:
        self._watcher = watcher
        self._filter = topic_filter
        self._changed = changed
        self._exclude_internal = exclude_internal
        self._matching: frozenset[str] = frozenset()
        self._listening = False
        self._lock = asyncio.Lock()  # the check after the first rebalance against deliveries

    async def matching_now(self, *, step: str = "subscribe", cause: str = "") -> tuple[str, ...]:
        """Read and match the topics: one getChildren. Without /brokers/topics nothing matches."""
        try:
            topics = await self._watcher.children(paths.BROKER_TOPICS, step=step, cause=cause)
        except NoNode:
            topics = []
        return matching(self._filter.kind, self._filter.pattern, topics, exclude_internal=self._exclude_internal)

    async def remember(self) -> None:
        """Before the registration: remember what matches, to compare the first event with."""
        self._matching = frozenset(await self.matching_now())

    async def listen(self) -> None:
        """After the first rebalance: create /brokers/topics if missing, listen to it, and check once more."""
        path = paths.BROKER_TOPICS
        self._listening = True
        if await self._watcher.session.exists(path, step="subscribe") is None:
            await self._watcher.session.ensure_path(path, step="subscribe")
        await self._watcher.listen(path, Listening.CHILDREN, self._on_change)
        await self._on_change("")

    async def renewed(self) -> None:
        """Listen again in a new session; then all listeners are notified, this one too."""
        if self._listening:
            await self._watcher.listen(paths.BROKER_TOPICS, Listening.CHILDREN, self._on_change)

    async def _on_change(self, cause: str) -> None:
        try:
            async with self._lock:
                now = frozenset(await self.matching_now(step="delivery", cause=cause))
                before, self._matching = self._matching, now
                if now != before:
                    log.info("topics to consume: added %s, removed %s", sorted(now - before), sorted(before - now))
                    await self._changed(cause)
        except SessionClosed:
            raise
        except RebalanceLabError:
            # As the original's listener does; the next change may succeed.
            log.exception("could not handle a change of the matching topics")
