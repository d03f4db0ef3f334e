"""Refreshes topic metadata and acts on changes; `membership.topic_changes` decides.

A task refreshes the metadata when it is due, inside and between polls. A change takes effect only in polls, like
everything that concerns the application. Metadata that others fetched counts as well (a fetcher that lost a leader, a
group leader that looked up topics).
"""

from __future__ import annotations

import asyncio
import operator
from typing import TYPE_CHECKING, Protocol

from coordinator.membership.subscription import TopicsSeen
from coordinator.membership.topic_changes import (
    METADATA_CHANGED,
    Rejoin,
    Resubscribe,
    WatchedTopics,
    names_wanted,
    topic_reaction,
    wait_ms,
)
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.tasks import cancel_and_wait
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from coordinator.client.configuration import SubscribingConfig
    from coordinator.membership.subscription import Subscription
    from kernel.client.client import ClusterClient, ClusterMetadata
    from kernel.clock import Clock


class SubscribedMember(Protocol):
    """What the watcher needs of a member: its subscription."""

    @property
    def topics(self) -> frozenset[str] | None: ...


class WatchedStream(Protocol):
    """What the watcher needs of a member's runner."""

    number: int

    @property
    def member(self) -> SubscribedMember: ...

    @property
    def assigned_sizes(self) -> Mapping[str, int] | None:
        """How many partitions each of the group's topics had when this member assigned them; None: it did not."""

    @property
    def about_to_join(self) -> bool:
        """Whether the next poll joins."""

    @property
    def settled(self) -> bool:
        """Whether it is done with a rebalance, or nearly; before, the leader may not have assigned yet."""

    def resubscribe(self, topics: Collection[str]) -> None: ...

    def want_rejoin(self, trigger: str) -> None: ...


class TopicWatcher:
    """The watcher of one consumer; `streams` is the consumer's own, changing list."""

    def __init__(
        self,
        client: ClusterClient,
        config: SubscribingConfig,
        clock: Clock,
        streams: Sequence[WatchedStream],
        changed: Callable[[], None],
    ) -> None:
        self._client = client
        self._config = config
        self._clock = clock
        self._streams = streams
        self._changed = changed
        self._subscription: Subscription | None = None
        self._metadata: ClusterMetadata | None = None  #: what `_seen` was made from
        self._seen = TopicsSeen()
        self._handled: dict[int, tuple[object, ...]] = {}  #: by stream: the inputs of the last finished check
        self._asked_ns = 0
        self._unanswered = False
        self._asking: asyncio.Task[None] | None = None
        self._awaited: asyncio.Task[None] | None = None  #: the refresh that streams about to join wait for
        self._await_until_ns = 0
        self._watching: asyncio.Task[None] | None = None
        self._reconsider = asyncio.Event()

    async def ask(self, subscription: Subscription) -> TopicsSeen:
        """Fetch the topics for a new subscription. Raises `Unavailable` and `ProtocolError`."""
        await self._refresh(subscription)
        return self.seen()

    def begin(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._handled.clear()
        self._reconsider.set()
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="watch topics")
            self._watching.add_done_callback(_raise_internal_error)

    async def end(self) -> None:
        """Stop watching. Idempotent."""
        self._subscription = None
        tasks = [task for task in (self._watching, self._asking) if task is not None]
        self._watching = self._asking = self._awaited = None
        await cancel_and_wait(*tasks)

    def seen(self) -> TopicsSeen:
        metadata = self._client.metadata
        if metadata is not self._metadata:
            self._metadata = metadata
            self._seen = TopicsSeen(metadata.sizes(), metadata.internal)
        return self._seen

    def check_topics(self) -> None:
        """Make each stream rejoin if its topics changed; called in a poll, before the streams are polled."""
        if self._subscription is None:
            return
        seen = self.seen()
        for stream in self._streams:
            inputs = (seen, stream.assigned_sizes, stream.member.topics)
            before = self._handled.get(stream.number, ())
            if before and all(map(operator.is_, before, inputs)):
                continue
            watched = WatchedTopics(stream.number, stream.member.topics or frozenset(), stream.assigned_sizes)
            match topic_reaction(watched, self._subscription, seen):
                case Resubscribe(topics):
                    stream.resubscribe(topics)
                case Rejoin() if stream.settled:
                    stream.want_rejoin(METADATA_CHANGED)
                case Rejoin():
                    continue  # the leader is about to assign again, or no longer leads
            self._handled[stream.number] = inputs
            self._reconsider.set()

    async def refresh_before_join(self, timeout_s: float) -> None:
        """Refresh before a member with a pattern rejoins, so that a new topic costs one rebalance, not one per member.

        Returns after the refresh or after `timeout_s`; then `holds_back` says which streams wait for a later poll.
        Source: ConsumerCoordinator.poll of kafka-clients 4.1.1.
        """
        if self._awaited is None and self._must_refresh_first():
            self._awaited = self._asked()
            # A stream that is held back does not count as polled.
            self._await_until_ns = self._clock.monotonic_ns() + self._config.max_poll_interval_ms // 2 * NS_PER_MS
        if self._awaited is not None:
            await asyncio.wait({self._awaited}, timeout=max(0.0, timeout_s))
            if self._awaited is None or self._awaited.done() or self._clock.monotonic_ns() >= self._await_until_ns:
                self._awaited = None

    def holds_back(self, stream: WatchedStream) -> bool:
        """Return whether to skip a stream in this poll, since it would join with topics that may be stale."""
        return self._awaited is not None and stream.about_to_join

    def _must_refresh_first(self) -> bool:
        if self._subscription is None or self._subscription.names is not None or not self._may_ask():
            return False
        return any(stream.about_to_join for stream in self._streams)

    def _may_ask(self) -> bool:
        age_ns = self._clock.monotonic_ns() - self._asked_ns
        return self._asking is not None or age_ns >= self._config.retry_backoff_ms * NS_PER_MS

    def _asked(self) -> asyncio.Task[None]:
        """Return the running refresh, or start one; it raises nothing."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_quietly(), name="refresh metadata")
            self._asking.add_done_callback(self._answered)
        return self._asking

    def _answered(self, task: asyncio.Task[None]) -> None:
        if self._asking is task:
            self._asking = None
        _raise_internal_error(task)
        self._changed()

    async def _ask_quietly(self) -> None:
        if self._subscription is not None:
            try:
                await self._refresh(self._subscription)
            except (Unavailable, ProtocolError):
                return  # retried after the backoff

    async def _refresh(self, subscription: Subscription) -> None:
        names = names_wanted(subscription, [stream.assigned_sizes for stream in self._streams])
        try:
            await self._client.refresh(
                None if names is None else sorted(names),
                create=self._config.allow_auto_create_topics,
                timeout_ms=self._config.request_timeout_ms,
            )
        except (Unavailable, ProtocolError):
            self._unanswered = True
            raise
        finally:
            self._asked_ns = self._clock.monotonic_ns()
        self._unanswered = False

    async def _watch(self) -> None:
        failed_refreshes = 0
        while True:
            self._reconsider.clear()
            missing = self._unanswered or self._missing()
            failed_refreshes = failed_refreshes if missing else 0
            wait = wait_ms(
                missing=missing,
                failed_refreshes=failed_refreshes,
                max_age_ms=self._config.metadata_max_age_ms,
                backoff_ms=self._config.retry_backoff_ms,
            )
            if await self._due(wait):
                await asyncio.wait({self._asked()})
                failed_refreshes += 1

    def _missing(self) -> bool:
        assert self._subscription is not None
        names = names_wanted(self._subscription, [stream.assigned_sizes for stream in self._streams])
        return names is not None and not names <= self.seen().sizes.keys()

    async def _due(self, wait: int) -> bool:
        """Wait until the metadata is `wait` ms old; return False if the wait has to be reconsidered."""
        while (left_ns := self._asked_ns + wait * NS_PER_MS - self._clock.monotonic_ns()) > 0:
            try:
                async with asyncio.timeout(left_ns / 1e9):
                    await self._reconsider.wait()
            except TimeoutError:
                continue
            return False
        return True


def _raise_internal_error(task: asyncio.Task[None]) -> None:
    """Raise what the task raised: it handles all expected errors, so this one is a bug."""
    if not task.cancelled():
        task.result()
