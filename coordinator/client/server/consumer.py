"""The consumer of the `server` design.

`coordinator.client.polling` has what it shares with the classic designs. The consumer has one ZooKeeper session, and
each stream is a `MemberStream`, a separate group member. The coordinator commands the members to stop and start, and
they obey in the background: callbacks run between polls, `getmany` only returns buffered records.

On a stop, a member commits everything that was delivered, as the 0.8 consumer does, since a stop does not wait for the
application. A listener that wants otherwise sets enable.auto.commit=false and commits in `on_revoked`. Between rounds,
commits are made in polls when they are due: the application has processed what earlier polls returned.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Never

from coordinator.client.polling import PollingConsumer, raise_first
from coordinator.client.server.calls import ServerCalls
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.client.server.stream import MemberStream, ServerContext
from coordinator.membership.subscription import TopicsSeen, by_name
from kernel.consumer import Capabilities, SilentListener
from kernel.errors import UserError
from kernel.runtime import REAL, Runtime
from kernel.tasks import cancel_and_wait
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.operations import SessionChange, SessionState
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer

CAPABILITIES = Capabilities(
    streams=False,
    resubscribe=True,
    patterns=False,
    commit_single_partitions=True,
    seek=True,
    pause=True,
)

_NOT_STARTED = "the consumer is not started: call start() first"


class ServerConsumer(PollingConsumer[MemberStream, ServerConsumerConfig]):
    """A consumer with one or more members of one group. `process` names it in messages and threads."""

    def __init__(self, config: ServerConsumerConfig, *, tracer: Tracer, process: str, runtime: Runtime = REAL) -> None:
        super().__init__(config, tracer=tracer, process=process, runtime=runtime)
        self._session: ZooKeeperSession | None = None
        self._context: ServerContext | None = None
        self._session_tasks: tuple[asyncio.Task[None], ...] = ()
        self._session_failure: asyncio.Task[Never] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(stream.member.member_id for stream in self._streams if stream.member.registered)

    @property
    def session(self) -> ZooKeeperSession:
        """The ZooKeeper session. Raises `UserError` before `start`."""
        if self._session is None:
            raise UserError(_NOT_STARTED)
        return self._session

    async def start(self) -> None:
        """Open the session and connect to any broker. Raises `Unavailable` when either does not answer in time."""
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
            bridge=self._runtime.edge(Bridge),
        )
        if self._closing is not None:  # closed meanwhile, so `close` does not know this session
            await session.close()
            self._check_open()
        self._session = session
        calls = ServerCalls(
            group=config.group_id,
            strategy=config.partition_assignment_strategy,
            wait_ms=config.command_wait_ms,
            patience_ms=config.patience_ms,
            request_timeout_ms=config.request_timeout_ms,
        )
        self._context = self._context_of(calls)
        self._session_failure = asyncio.create_task(session.raise_failure(), name=f"failure of {self._process}")
        self._session_failure.add_done_callback(lambda _: self._changed.set())
        changes = self._forward_session_changes(session.subscribe())
        self._session_tasks = (asyncio.create_task(changes, name=f"session of {self._process}"), self._session_failure)
        await self._reach_a_broker()

    async def _forward_session_changes(self, changes: asyncio.Queue[SessionChange]) -> None:
        while True:
            change = await changes.get()
            for stream in self._streams:
                stream.session_changed(change)

    async def _poll_streams(self, deadline_ns: int) -> None:
        if self._session_failure is not None and self._session_failure.done():
            self._session_failure.result()  # raises it: the members have lost their session, and get no other
        await super()._poll_streams(deadline_ns)

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """See `GroupConsumer.subscribe`; the members register at once, and are started in the background.

        Stream n subscribes to the topics that have more than n streams.
        """
        self._check_open()
        if self._context is None:
            raise UserError(_NOT_STARTED)
        subscription = by_name(topics)
        async with self._subscribing:
            await self._client.refresh(sorted(topics), create=True, timeout_ms=self._config.request_timeout_ms)
            self._check_open()
            self._listener.listener = listener or SilentListener()
            surplus = self._spread(subscription, TopicsSeen())
            raise_first(await asyncio.gather(*(stream.close() for stream in surplus), return_exceptions=True))

    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        assert self._context is not None, "subscribe checks it"
        stream = MemberStream(number, topics, self._context, self.session)
        self._streams.append(stream)
        if self.session.state is SessionState.CONNECTED:  # otherwise the change will come
            stream.session_changed(SessionChange(SessionState.CONNECTED, self.session.session_id))

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """Not supported: the coordinator of this design assigns topics by name. Raises `UserError`."""
        raise UserError(f"{self._process} cannot subscribe to the pattern {pattern!r}. Name the topics")

    async def unsubscribe(self) -> None:
        """See `GroupConsumer.unsubscribe`."""
        self._check_open()
        async with self._subscribing:
            leaving, self._streams = self._streams, []
            raise_first(await asyncio.gather(*(stream.close() for stream in leaving), return_exceptions=True))

    @property
    def _subscribed(self) -> bool:
        return bool(self._streams)

    async def _disconnect(self) -> None:
        """Close the session last: it deletes the ids of members that could not unregister."""
        await super()._disconnect()
        await cancel_and_wait(*self._session_tasks)
        if self._session is not None:
            await self._session.close()
