"""A consumer of the `server` design behind the interface of all designs.

It wires the parts: one ZooKeeper session, one `Fetcher`, and one `MemberStream` for each stream, which is a member of
the group by itself. The coordinator tells the members what to stop and to start, and they obey in the background:
callbacks come between polls, `getmany` only hands out what is there.

What is committed when a member has to stop is everything that was handed out, as in the consumer of 0.8, since nobody
waits for the application to come back; a listener that wants it otherwise turns enable.auto.commit off and commits in
`on_revoked`. Between rounds commits are made in polls, when they are due: what an earlier poll handed out has been
dealt with by then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.fetcher import Fetcher
from coordinator.server.calls import ServerCalls
from coordinator.server.member_stream import MemberStream
from coordinator.server.member_surroundings import MemberSurroundings
from coordinator.subscription import TopicsSeen, by_name
from coordinator.surroundings import CurrentListener
from kernel.broker.client import ClusterClient
from kernel.clock import NS_PER_MS, Clock, SystemClock
from kernel.consumer import Capabilities, SilentListener
from kernel.errors import Unavailable, UserError
from kernel.values import CommitOutcome
from kernel.zookeeper.operations import SessionChange, SessionState
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.server.settings import ServerConsumerConfig
    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, TopicPartition

CAPABILITIES = Capabilities(
    streams=False,
    resubscribe=True,
    patterns=False,
    commit_single_partitions=True,
    rebalances_outside_poll=True,
    knows_loss=True,
)

_NOT_STARTED = "the consumer was not started: call start() first"


class ServerConsumer:
    """A consumer with one or more members of one group. `process` names it in messages and threads."""

    def __init__(
        self, config: ServerConsumerConfig, *, tracer: Tracer, process: str, clock: Clock | None = None
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
        self._listener = CurrentListener()
        self._subscribing = asyncio.Lock()
        self._streams: list[MemberStream] = []
        self._session: ZooKeeperSession | None = None
        self._surroundings: MemberSurroundings | None = None
        self._telling: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(stream.member.member_id for stream in self._streams if stream.member.registered)

    @property
    def session(self) -> ZooKeeperSession:
        """The ZooKeeper session; there is one after `start`."""
        if self._session is None:
            raise UserError(_NOT_STARTED)
        return self._session

    async def start(self) -> None:
        """Open the session and reach any broker. Raises `Unavailable` when one of them does not answer in time."""
        self._check_open()
        config = self._config
        session = await ZooKeeperSession.open(
            config.zookeeper_connect,
            session_timeout_ms=config.session_timeout_ms,
            tracer=self._tracer,
            process=self._process,
            name="members",
            connection_timeout_ms=config.connection_timeout_ms,
            retry_forever=True,
        )
        if self._closing is not None:  # meanwhile, and so without this session
            await session.close()
            self._check_open()
        self._session = session
        self._surroundings = MemberSurroundings(
            config=config,
            calls=ServerCalls(
                group=config.group_id,
                strategy=config.partition_assignment_strategy,
                wait_ms=config.command_wait_ms,
                patience_ms=min(config.request_timeout_ms, config.session_timeout_ms),
                request_timeout_ms=config.request_timeout_ms,
            ),
            client=self._client,
            fetcher=self._fetcher,
            session=session,
            listener=self._listener,
            listening=asyncio.Lock(),
            tracer=self._tracer,
            clock=self._clock,
            changed=self._changed.set,
        )
        self._telling = asyncio.create_task(self._tell_session(session.subscribe()), name=f"session of {self._process}")
        await self._reach_a_broker()

    async def _reach_a_broker(self) -> None:
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

    async def _tell_session(self, changes: asyncio.Queue[SessionChange]) -> None:
        while True:
            change = await changes.get()
            for stream in self._streams:
                stream.session_changed(change)

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """See `GroupConsumer.subscribe`; the members register at once, and are told what to start in the background.

        Stream n subscribes to the topics that have more than n streams.
        """
        self._check_open()
        if self._surroundings is None:
            raise UserError(_NOT_STARTED)
        subscription = by_name(topics)
        async with self._subscribing:
            await self._client.refresh(sorted(topics), create=True, timeout_ms=self._config.request_timeout_ms)
            self._check_open()
            self._listener.listener = listener or SilentListener()
            surplus = self._streams[subscription.streams :]
            del self._streams[subscription.streams :]
            for number in range(subscription.streams):
                mine = tuple(sorted(subscription.topics_of(number, TopicsSeen())))
                if number < len(self._streams):
                    self._streams[number].resubscribe(mine)
                else:
                    self._begin(MemberStream(number, mine, self._surroundings))
            _raise_first(await asyncio.gather(*(stream.close() for stream in surplus), return_exceptions=True))

    def _begin(self, stream: MemberStream) -> None:
        self._streams.append(stream)
        if self.session.state is SessionState.CONNECTED:  # otherwise it is told when it is
            stream.session_changed(SessionChange(SessionState.CONNECTED, self.session.session_id))

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """See `GroupConsumer.subscribe_pattern`: the coordinator assigns by name, and nobody watches the topics."""
        raise UserError(f"{self._process} subscribes by name: name the topics instead of {pattern!r}")

    async def unsubscribe(self) -> None:
        """See `GroupConsumer.unsubscribe`."""
        self._check_open()
        async with self._subscribing:
            leaving, self._streams = self._streams, []
            _raise_first(await asyncio.gather(*(stream.close() for stream in leaving), return_exceptions=True))

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """See `GroupConsumer.getmany`; at most max.poll.records come at once.

        Raises `GroupRefused` when the group refuses a member for good, `FetchFailed` when a partition cannot be
        read, and whatever the listener raised.
        """
        self._check_open()
        if not self._streams:
            raise UserError("subscribe before you poll")
        limit = min(max_records, self._config.max_poll_records)
        deadline = self._clock.monotonic_ns() + timeout_ms * NS_PER_MS
        await asyncio.sleep(0)  # polls that never have to wait must not starve the background
        while True:
            self._changed.clear()
            for stream in self._streams:
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

        A partition that no member of ours owns is committed by the first one, and refused: here the group fences
        owners too.
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

    def _share(self, stream: MemberStream, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        owners = {tp: other for other in reversed(self._streams) for tp in other.member.owned}
        return {tp: offset for tp, offset in offsets.items() if owners.get(tp, self._streams[0]) is stream}

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        return {stream.number: stream.member.owned for stream in self._streams}

    def position(self, partition: TopicPartition) -> int | None:
        return self._fetcher.position(partition)

    async def close(self) -> None:
        """Commit what was handed out (with auto-commit), revoke, take the ids away, end the session. Idempotent.

        Raises what the listener raised, after everything was closed.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._process}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            endings = await asyncio.gather(*(stream.close() for stream in self._streams), return_exceptions=True)
        finally:
            await self._fetcher.close()
            await self._client.close()
            if self._telling is not None:
                self._telling.cancel()
                await asyncio.wait({self._telling})
            if self._session is not None:
                await self._session.close()
        _raise_first(endings)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise UserError(f"{self._process} is closed")


def _raise_first(endings: Sequence[BaseException | None]) -> None:
    for ending in endings:
        if ending is not None:
            raise ending
