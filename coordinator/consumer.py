"""A consumer of the coordinator designs behind the interface of all designs; which one it is say the settings.

It wires the parts: one `Fetcher`, and one `GroupStream` for each stream, which is a member of the group by itself.
All of it lives on one event loop, and what comes from elsewhere (answers, timers) only feeds a member and wakes the
poll. Rebalances begin and end inside `getmany`, as in Kafka's consumer: a member that is told to rejoin keeps its
partitions until it polls, then commits, revokes all of them (a cooperative one only what it has to), joins, and takes
over what it was given. A `TopicWatcher` sees to topics that come, grow and go.

Positions are committed when auto-commit is due in a poll, before a rebalance and at the end: that is, after the
application has come back for more, so nothing is committed that it may not have dealt with.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.calls import GroupCalls
from coordinator.fetcher import Fetcher
from coordinator.stream import GroupStream
from coordinator.subscription import by_name, by_pattern
from coordinator.surroundings import CurrentListener, Surroundings
from coordinator.topic_watcher import TopicWatcher
from kernel.broker.client import ClusterClient
from kernel.clock import NS_PER_MS, Clock, SystemClock
from kernel.consumer import Capabilities, SilentListener
from kernel.errors import Unavailable, UserError
from kernel.values import CommitOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coordinator.settings import CoordinatorConsumerConfig
    from coordinator.subscription import Subscription
    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, TopicPartition

CAPABILITIES = Capabilities(
    streams=False,
    resubscribe=True,
    patterns=True,
    commit_single_partitions=True,
    rebalances_outside_poll=False,
    knows_loss=True,
)


class CoordinatorConsumer:
    """A consumer with one or more members of one group. `process` names it in messages."""

    def __init__(
        self, config: CoordinatorConsumerConfig, *, tracer: Tracer, process: str, clock: Clock | None = None
    ) -> None:
        self._config = config
        self._tracer = tracer
        self._process = process
        self._clock = clock or SystemClock()
        self._changed = asyncio.Event()
        self._client = ClusterClient(
            config.bootstrap_servers,
            config.client_id,
            tracer,
            connect_timeout_ms=config.socket_connection_setup_timeout_ms,
        )
        self._fetcher = Fetcher(self._client, config, tracer, self._changed.set)
        self._streams: list[GroupStream] = []
        self._subscription: Subscription | None = None
        self._subscribing = asyncio.Lock()
        self._listener = CurrentListener()
        self._watcher = TopicWatcher(self._client, config, self._clock, self._streams, self._changed.set)
        self._surroundings = self._new_surroundings()
        self._closing: asyncio.Task[None] | None = None

    def _new_surroundings(self) -> Surroundings:
        config = self._config
        return Surroundings(
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
        """Reach any broker. Raises `Unavailable` when none answers within socket.connection.setup.timeout.ms."""
        self._check_open()
        deadline = self._clock.monotonic_ns() + self._config.socket_connection_setup_timeout_ms * NS_PER_MS
        while True:
            try:
                await self._client.refresh([], timeout_ms=self._config.request_timeout_ms)
            except Unavailable:
                if self._clock.monotonic_ns() >= deadline:
                    raise
                await asyncio.sleep(self._config.retry_backoff_ms / 1000)
            else:
                return

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """See `GroupConsumer.subscribe`; the next `getmany` joins, or rejoins.

        Stream n subscribes to the topics that have more than n streams. Raises `Unavailable`, and changes nothing,
        when no broker answers.
        """
        await self._subscribe(by_name(topics), listener)

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """See `GroupConsumer.subscribe_pattern`. Raises as `subscribe`.

        Kafka's consumer refuses to go from names to a pattern, or back, without `unsubscribe` in between; here as
        always the new subscription takes the place of the old one.
        """
        exclude_internal = self._config.exclude_internal_topics
        await self._subscribe(by_pattern(pattern, streams, exclude_internal=exclude_internal), listener)

    async def _subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        self._check_open()
        async with self._subscribing:
            seen = await self._watcher.ask(subscription)
            self._check_open()
            self._subscription = subscription
            self._listener.listener = listener or SilentListener()
            surplus = self._streams[subscription.streams :]
            del self._streams[subscription.streams :]
            for number in range(subscription.streams):
                mine = subscription.topics_of(number, seen)
                if number < len(self._streams):
                    self._streams[number].resubscribe(mine)
                else:
                    self._streams.append(GroupStream(number, tuple(mine), self._surroundings))
            self._watcher.begin(subscription)
            _raise_first(await asyncio.gather(*(stream.close() for stream in surplus), return_exceptions=True))

    async def unsubscribe(self) -> None:
        """See `GroupConsumer.unsubscribe`. A static member keeps its place in the group, as when it closes."""
        self._check_open()
        async with self._subscribing:
            self._subscription = None
            await self._watcher.end()
            _raise_first(
                await asyncio.gather(*(stream.unsubscribe() for stream in self._streams), return_exceptions=True)
            )

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """See `GroupConsumer.getmany`; at most max.poll.records come at once.

        Raises `GroupRefused` when the group refuses a member for good, `FetchFailed` when a partition cannot be
        read, and whatever the listener raised.
        """
        self._check_open()
        if self._subscription is None:
            raise UserError("subscribe before you poll")
        limit = min(max_records, self._config.max_poll_records)
        deadline = self._clock.monotonic_ns() + timeout_ms * NS_PER_MS
        await asyncio.sleep(0)  # polls that never have to wait must not starve the heartbeats
        while True:
            self._changed.clear()
            await self._watcher.freshen((deadline - self._clock.monotonic_ns()) / 1e9)
            self._watcher.look()
            for stream in self._streams:
                if not self._watcher.holds_back(stream):
                    stream.poll()
            batches = self._fetcher.take(limit)
            remaining_ns = deadline - self._clock.monotonic_ns()
            if batches or remaining_ns <= 0:
                return batches  # nothing is awaited in between: a cancelled poll has handed out nothing
            try:
                async with asyncio.timeout(remaining_ns / 1e9):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """See `GroupConsumer.commit`. Given offsets are committed by the member that owns the partition.

        A partition that no member of ours owns is committed by the first one: the group fences members and
        generations, not owners.
        """
        self._check_open()
        outcome = CommitOutcome()
        requests = []
        for stream in self._streams:
            mine = self._fetcher.positions(stream.number) if offsets is None else self._share(stream, offsets)
            if mine:
                requests.append(stream.commit(mine, explicit=True))
        for part in await asyncio.gather(*requests):
            outcome.accepted.update(part.accepted)
            outcome.refused.update(part.refused)
        return outcome

    def _share(self, stream: GroupStream, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        owners = {tp: other for other in reversed(self._streams) for tp in other.member.owned}
        return {tp: offset for tp, offset in offsets.items() if owners.get(tp, self._streams[0]) is stream}

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        return {stream.number: stream.member.owned for stream in self._streams}

    def position(self, partition: TopicPartition) -> int | None:
        return self._fetcher.position(partition)

    async def close(self) -> None:
        """Commit what was handed out (with auto-commit), revoke, leave the group, disconnect. Idempotent.

        Raises what the listener raised, after everything was closed.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._process}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._watcher.end()
            endings = await asyncio.gather(*(stream.close() for stream in self._streams), return_exceptions=True)
        finally:
            await self._fetcher.close()
            await self._client.close()
        _raise_first(endings)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise UserError(f"{self._process} is closed")


def _raise_first(endings: Iterable[BaseException | None]) -> None:
    for ending in endings:
        if ending is not None:
            raise ending
