"""The part of a consumer that all designs with a coordinator share: its streams are members of one group.

It has one `Fetcher` for all streams, and polls them. Everything runs on one event loop; responses and timers only feed
a member and wake the poll. A design adds its kind of stream (`_begin`), how to subscribe, what else a poll checks
(`_poll_streams`), and what else to close (`_leave_group`, `_disconnect`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from coordinator.client.configuration import PollingConfig
from coordinator.client.context import ConsumerContext, CurrentListener
from coordinator.client.fetcher import Fetcher
from kernel.client.client import ClusterClient
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable, UserError
from kernel.runtime import REAL, Runtime
from kernel.values import CommitOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from coordinator.client.calls import CommitCalls
    from coordinator.membership.subscription import Subscription, TopicsSeen
    from kernel.consumer import MemberPlace
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, TopicPartition


class Owning(Protocol):
    """What the consumer shows of a member: the partitions that it believes it owns."""

    @property
    def owned(self) -> frozenset[TopicPartition]: ...


class Stream(Protocol):
    """What the consumer needs of a member's runner."""

    number: int

    @property
    def member(self) -> Owning: ...

    def poll(self) -> None: ...

    def place(self) -> MemberPlace: ...

    def resubscribe(self, topics: tuple[str, ...]) -> None: ...

    async def commit(self, offsets: Mapping[TopicPartition, int], *, explicit: bool) -> CommitOutcome: ...

    async def close(self) -> None: ...


S = TypeVar("S", bound=Stream)
C = TypeVar("C", bound=PollingConfig)
A = TypeVar("A", bound="CommitCalls")


class PollingConsumer(ABC, Generic[S, C]):
    """See the module. `process` names it in messages; S is the design's stream, C its configuration."""

    def __init__(self, config: C, *, tracer: Tracer, process: str, runtime: Runtime = REAL) -> None:
        self._config = config
        self._tracer = tracer
        self._process = process
        self._runtime = runtime
        self._clock = runtime.clock
        self._changed = asyncio.Event()
        self._has_waited = False  #: the last poll has waited, and let others run
        self._client = ClusterClient(
            config.bootstrap_servers,
            config.client_id,
            tracer,
            connect_timeout_ms=config.socket_connection_setup_timeout_ms,
        )
        self._fetcher = Fetcher(self._client, config, tracer, self._changed.set)
        self._listener = CurrentListener()
        self._subscribing = asyncio.Lock()
        self._streams: list[S] = []
        self._closing: asyncio.Task[None] | None = None

    def _context_of(self, calls: A) -> ConsumerContext[C, A]:
        """What its streams share; `calls` are the design's requests."""
        return ConsumerContext(
            config=self._config,
            calls=calls,
            client=self._client,
            fetcher=self._fetcher,
            listener=self._listener,
            listening=asyncio.Lock(),
            tracer=self._tracer,
            runtime=self._runtime,
            changed=self._changed.set,
        )

    async def _reach_a_broker(self) -> None:
        """Connect to any broker. Raises `Unavailable` when none answers within socket.connection.setup.timeout.ms."""
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

    # -- streams ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        """Add a stream of the design with these topics."""

    def _spread(self, subscription: Subscription, seen: TopicsSeen) -> list[S]:
        """Give the subscription as many streams as it asks for; return surplus ones for the caller to close."""
        surplus = self._streams[subscription.streams :]
        del self._streams[subscription.streams :]
        for number in range(subscription.streams):
            mine = tuple(sorted(subscription.topics_of(number, seen)))
            if number < len(self._streams):
                self._streams[number].resubscribe(mine)
            else:
                self._begin(number, mine)
        return surplus

    # -- polling ------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _subscribed(self) -> bool:
        """Whether the consumer is subscribed."""

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """See `GroupConsumer.getmany`; returns at most max.poll.records.

        Raises `GroupRefused` after a fatal error of the group, `FetchFailed` when a partition cannot be read, and
        whatever the listener raised.
        """
        self._check_open()
        if not self._subscribed:
            raise UserError("subscribe before you poll")
        limit = min(max_records, self._config.max_poll_records)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000  # by the clock that fires the timer: it never comes too soon
        deadline_ns = self._clock.monotonic_ns() + timeout_ms * NS_PER_MS
        if not self._has_waited:
            await asyncio.sleep(0)  # polls that never wait must not starve heartbeats and other tasks
        self._has_waited = False
        while True:
            self._changed.clear()
            await self._poll_streams(deadline_ns)
            batches = self._fetcher.take(limit)
            if batches or loop.time() >= deadline_s:
                return batches  # no await since `take`: a cancelled poll loses no records
            timer = loop.call_at(deadline_s, self._changed.set)
            try:
                self._has_waited = not self._changed.is_set()
                await self._changed.wait()
            finally:
                timer.cancel()

    async def _poll_streams(self, deadline_ns: int) -> None:
        """Poll each stream; an override may wait before that, until `deadline_ns` at most."""
        for stream in self._streams:
            stream.poll()

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """See `GroupConsumer.commit`. The member that owns a partition commits its offset.

        The first member commits partitions that none of ours owns. A classic group accepts that, since it fences
        members and generations, not owners; the `server` design fences owners too, and rejects it. A listener may
        commit while the consumer closes.
        """
        if self._closing is None or self._closing.done():
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

    def _share(self, stream: S, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        owners = {tp: other for other in reversed(self._streams) for tp in other.member.owned}
        return {tp: offset for tp, offset in offsets.items() if owners.get(tp, self._streams[0]) is stream}

    def places(self) -> Mapping[int, MemberPlace]:
        return {stream.number: stream.place() for stream in self._streams}

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        return {stream.number: stream.member.owned for stream in self._streams}

    def position(self, partition: TopicPartition) -> int | None:
        return self._fetcher.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See `GroupConsumer.seek`. An offset that does not exist is reset by auto.offset.reset."""
        self._check_open()
        if offset < 0:
            raise UserError(f"{partition} has no offset {offset}: offsets begin at 0")
        self._fetcher.seek(self._owner(partition, "seek").number, partition, offset)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """See `GroupConsumer.pause`."""
        self._check_open()
        for stream, tps in self._by_owner(partitions, "pause"):
            self._fetcher.pause(stream.number, stream.place().member_id, tps)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """See `GroupConsumer.resume`."""
        self._check_open()
        for stream, tps in self._by_owner(partitions, "resume"):
            self._fetcher.resume(stream.number, tps)

    def paused(self) -> frozenset[TopicPartition]:
        return self._fetcher.paused()

    def _owner(self, partition: TopicPartition, doing: str) -> S:
        owner = next((stream for stream in self._streams if partition in stream.member.owned), None)
        if owner is None:
            raise UserError(f"{partition} is not assigned to {self._process}: {doing} in on_assigned, or later")
        return owner

    def _by_owner(self, partitions: Collection[TopicPartition], doing: str) -> list[tuple[S, list[TopicPartition]]]:
        owners = {tp: self._owner(tp, doing) for tp in partitions}
        return [(stream, [tp for tp in owners if owners[tp] is stream]) for stream in self._streams]

    # -- the end ------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Commit what was delivered (with auto-commit), revoke, leave the group, disconnect. Idempotent.

        Raises what the listener raised, after everything is closed.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._process}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            endings = await self._leave_group()
        finally:
            await self._disconnect()
        raise_first(endings)

    async def _leave_group(self) -> Sequence[BaseException | None]:
        """Close every stream; return what each one raised, or None."""
        return await asyncio.gather(*(stream.close() for stream in self._streams), return_exceptions=True)

    async def _disconnect(self) -> None:
        await self._fetcher.close()
        await self._client.close()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise UserError(f"{self._process} is closed")


def raise_first(endings: Sequence[BaseException | None]) -> None:
    """Raise the first exception among the results of `gather`, if any."""
    for ending in endings:
        if ending is not None:
            raise ending
