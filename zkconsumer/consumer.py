"""The high-level consumer of Kafka 0.8.2 (ZookeeperConsumerConnector) behind the interface of all designs.

It puts the parts together; what happens in which order is decided in `machine.py`. Tasks: the executor
(rebalances), the delivery of watches (`watching/watcher.py`), the commit timer, the leader finder and the fetchers. All
of them live on one event loop; kazoo's thread ends in the session.

Kept from the original, because this design is here to show it, unless an option `fix.*` removes it:

- `subscribe` runs the first rebalance and raises `RebalanceFailed` when every attempt failed; registration,
  watches and timer then stay, and the next change of the group helps the member.
- With a pattern the topics are those that match now; a change of them is handled as the original does, on the task
  that delivers every other change too (`watching/topics.py`).
- Rebalances run in the background. `getmany` hands out what is queued and never waits for one.
- Nothing stops on a lost connection or an expired session before the next rebalance does.
- A commit to ZooKeeper writes all positions that changed, and nothing fences it.

Where we differ: a shutdown that ZooKeeper does not answer ends after a session timeout (the original waits for
ever), and calls come from one event loop instead of one thread a stream.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.consumer import Capabilities, SilentListener
from kernel.errors import RebalanceLabError, StreamsExist, UserError
from kernel.zookeeper.errors import SessionClosed
from kernel.zookeeper.session import ZooKeeperSession
from zkconsumer.member.executor import Executor, Parts
from zkconsumer.member.membership import Membership
from zkconsumer.member.registration import new_consumer_id
from zkconsumer.member.subscription import Subscription
from zkconsumer.offsets.commits import BY_TIMER, Offsets
from zkconsumer.rebalance.config import rules_of
from zkconsumer.rebalance.effects import CloseDemanded
from zkconsumer.rebalance.state import Rebalance, State
from zkconsumer.records.delivery import Delivery
from zkconsumer.records.iterators import StreamIterator
from zkconsumer.records.leaders import FetcherManager
from zkconsumer.records.streams import Registry, Stream
from zkconsumer.watching.watcher import Watching
from zkconsumer.znodes.filters import TopicFilter

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, CommitOutcome, TopicPartition
    from zkconsumer.member.subscription import Streams
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)

_NOT_STARTED = "the consumer was not started: call start() first"

CAPABILITIES = Capabilities(
    streams=True,
    resubscribe=False,
    patterns=True,
    commit_single_partitions=False,
    rebalances_outside_poll=True,
    knows_loss=False,
)


class ZooKeeperConsumer:
    """One member of a group. `process` names it in traces and threads."""

    def __init__(self, config: ZkConsumerConfig, *, tracer: Tracer, process: str) -> None:
        self._config = config
        self._tracer = tracer
        self._process = process
        self._consumer_id = new_consumer_id(config.group_id, config.consumer_id)
        self._membership: Membership | None = None
        self._streams: tuple[Stream, ...] = ()
        self._iterators: tuple[StreamIterator, ...] = ()
        self._filled = asyncio.Event()
        self._registry = Registry()
        self._registered = False
        self._session: ZooKeeperSession | None = None
        self._offsets: Offsets | None = None
        self._watching: Watching | None = None
        self._fetchers: FetcherManager | None = None
        self._executor: Executor | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._crash: BaseException | None = None
        self._delivery = Delivery(tracer, self._consumer_id)
        self._closing: asyncio.Future[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def member_ids(self) -> tuple[str, ...]:
        return (self._consumer_id,) if self._registered else ()

    @property
    def session(self) -> ZooKeeperSession:
        """The ZooKeeper session; there is one after `start`."""
        if self._session is None:
            raise UserError(_NOT_STARTED)
        return self._session

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Raises `Unavailable` without ZooKeeper, `UserError` when the consumer was closed."""
        self._refuse_closed()
        config = self._config
        session = await ZooKeeperSession.open(
            config.zookeeper_connect,
            session_timeout_ms=config.session_timeout_ms,
            tracer=self._tracer,
            process=self._process,
            name=self._consumer_id,
            connection_timeout_ms=config.connection_timeout_ms,
            retry_forever=True,
        )
        if self._closing is not None:  # meanwhile, and so without this session
            await session.close()
            self._refuse_closed()
        self._session = session
        session.member = self._consumer_id
        self._watching = Watching(session, self._session_renewed, one_read=config.one_read_watches)
        self._offsets = Offsets(
            session, self._watching, self._registry, config, self._tracer, closing=lambda: self._closing is not None
        )
        self._fetchers = FetcherManager(self._watching, config, self._tracer, self._consumer_id, self._spawn)
        await self._offsets.open()
        if config.auto_commit_enable:
            self._tasks["auto-commit"] = self._spawn(self._auto_commit())

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """Register, watch, and rebalance once, in this order: so what joins in between is seen by the rebalance.

        Raises `RebalanceFailed` (see above), `IdTaken` with registration.conflict=fail, `SessionClosed` when the
        consumer is closed meanwhile.
        """
        await self._subscribe(Subscription.by_name(topics), listener)

    async def subscribe_pattern(
        self, pattern: str | TopicFilter, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """As `subscribe`, for all topics that a filter takes, now and later; they share the `streams`.

        A text is a white list. New topics are found by a look at /brokers/topics that begins after the first
        rebalance, if that succeeds.
        """
        topic_filter = TopicFilter.white(pattern) if isinstance(pattern, str) else pattern
        await self._subscribe(Subscription.by_pattern(topic_filter, streams), listener)

    async def unsubscribe(self) -> None:
        """Refused: a member of 0.8 has what it asked for until it is shut down."""
        raise UserError("the 0.8 consumer cannot unsubscribe: close() it, and make another one")

    async def close(self) -> None:
        """In the original's order; a listener, which a rebalance waits for, is not made to wait for the end."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        if asyncio.current_task() is self._tasks.get("executor"):
            return
        await asyncio.shield(self._closing)

    # -- records and positions -----------------------------------------------------------------------------------

    def streams(self) -> Sequence[StreamIterator]:
        """After `subscribe`: one iterator for each stream, by topic and thread, the same ones at every call.

        They take the place of `getmany`, which refuses from then on (see `records/iterators.py`).
        """
        if self._executor is None:
            raise UserError("there are no streams yet: call subscribe() first")
        if not self._iterators:
            timeout_ms = self._config.consumer_timeout_ms
            self._iterators = tuple(
                StreamIterator(stream, timeout_ms=timeout_ms, handed_out=self._delivery.tell, check=self._raise_crash)
                for stream in self._streams
            )
        return self._iterators

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """From all streams. One that cannot go on (`MessageSizeTooLarge`, `CorruptRecords`) is told of by raising,
        once; the others go on.
        """
        if self._iterators:
            raise UserError("streams() has handed the streams out: read from those iterators, or do not call it")
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            self._raise_crash()
            self._filled.clear()
            # Before anything is taken: what is handed out counts as consumed and must not get lost by raising.
            self._delivery.raise_failures(self._streams)
            if batches := self._delivery.take(self._streams, max_records):
                return batches
            self._delivery.raise_failures(self._streams)
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self._closing is not None:
                return ()
            try:
                async with asyncio.timeout(left):
                    await self._filled.wait()
            except TimeoutError:
                return ()

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """Writes every position that changed; `offsets` is refused, since 0.8 commits all or nothing."""
        if offsets is not None:
            raise UserError("the 0.8 consumer commits all its positions: call commit() without offsets")
        self._raise_crash()
        if self._offsets is None:
            raise UserError(_NOT_STARTED)
        return await self._offsets.commit(explicit=True, step="commit")

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        delivering = {} if self._executor is None else self._executor.machine.delivering
        return {stream.number: delivering.get(stream.number, frozenset()) for stream in self._streams}

    def position(self, partition: TopicPartition) -> int | None:
        return self._registry.position(partition)

    # -- inside ------------------------------------------------------------------------------------------------

    async def _subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        """Streams, executor, registration, the task that delivers changes, and the first rebalance."""
        if self._watching is None:
            raise UserError(_NOT_STARTED)
        if self._membership is not None:
            raise StreamsExist("the streams of this consumer exist already: make another consumer")
        self._refuse_closed()
        config, filled = self._config, self._filled
        by_thread = subscription.new_streams(
            self._consumer_id, lambda thread: Stream(thread, config.queued_max_message_chunks, filled)
        )
        self._streams = tuple(dict.fromkeys(by_thread.values()))
        executor = self._executor = self._new_executor(by_thread, listener or SilentListener())
        membership = self._membership = Membership(
            config,
            self._consumer_id,
            subscription,
            by_thread,
            watching=self._watching,
            executor=executor,
            demand=lambda trigger, cause: self._or_crash(executor.demand(trigger, cause)),
        )
        self._tasks["executor"] = self._spawn(executor.run())
        if config.fixes.stop_on_disconnect:
            self._tasks["connection"] = self._spawn(membership.tell_connection())
        await membership.look()
        self._watching.begin()
        await self._register(membership)
        most = subscription.most_streams
        self._tracer.emit("member_started", member=self._consumer_id, group=config.group_id, streams=most)
        self._tasks["delivery"] = self._spawn(self._watching.deliver())
        await membership.begin()

    def _refuse_closed(self) -> None:
        if self._closing is not None:
            raise UserError("the consumer was closed: make another one")

    async def _register(self, membership: Membership) -> None:
        """In a task of its own, which a close ends: it may wait for another session's end for ever."""
        registering = self._tasks["registering"] = asyncio.create_task(membership.register())
        try:
            await asyncio.wait({registering})
        finally:
            registering.cancel()
        if registering.cancelled():
            raise SessionClosed("the consumer was closed before it was registered")
        registering.result()
        self._registered = True

    def _new_executor(self, by_thread: Streams, listener: RebalanceListener) -> Executor:
        assert self._watching is not None
        assert self._fetchers is not None
        assert self._offsets is not None
        parts = Parts(
            session=self.session,
            watching=self._watching,
            fetchers=self._fetchers,
            offsets=self._offsets,
            registry=self._registry,
            streams=by_thread,
            listener=listener,
            tracer=self._tracer,
            stop_auto_commit=self._stop_auto_commit,
        )
        return Executor(Rebalance(rules=rules_of(self._config, self._consumer_id)), parts)

    async def _session_renewed(self) -> None:
        assert self._membership is not None
        await self._membership.renewed()

    async def _auto_commit(self) -> None:
        assert self._offsets is not None
        while True:
            await asyncio.sleep(self._config.auto_commit_interval_ms / 1000)
            try:
                await self._offsets.commit(explicit=False, step=BY_TIMER)
            except RebalanceLabError:
                log.exception("%s: the commit by the timer failed", self._consumer_id)

    async def _stop_auto_commit(self) -> None:
        """What a shutdown does first; a wildcard member stops listening before it."""
        assert self._offsets is not None
        if self._membership is not None:
            self._membership.stop_watching_topics()
        async with self._offsets.between_commits():  # as the original, which waits for one that is under way
            await self._end("auto-commit")

    # -- tasks -------------------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A task whose unexpected end the application hears of at its next call."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None or self._crash is not None:
            return
        self._crash = task.exception()
        self._tracer.emit("member_failed", member=self._consumer_id, error=repr(self._crash))
        self._filled.set()

    def _raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash

    async def _or_crash(self, demanded: Coroutine[object, object, str | None]) -> str | None:
        """The outcome, or the executor's own end if that comes first."""
        outcome = asyncio.ensure_future(demanded)
        await asyncio.wait({outcome, self._tasks["executor"]}, return_when=asyncio.FIRST_COMPLETED)
        if not outcome.done():
            outcome.cancel()
            self._raise_crash()
            return None
        return await outcome

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _close(self) -> None:
        if self._executor is not None and not self._tasks["executor"].done():
            self._executor.tell(CloseDemanded())
            await self._wait_closed(self._tasks["executor"])
        for name in list(self._tasks):
            await self._end(name)
        if self._fetchers is not None:
            await self._fetchers.close()
        if self._executor is not None and self._executor.machine.state is not State.CLOSED:
            for stream in self._streams:
                stream.clear()
                stream.end()
            self._executor.abandon()
        if self._session is not None:
            await self._session.close()
        if self._offsets is not None:
            await self._offsets.close()
        self._filled.set()

    async def _wait_closed(self, executor: asyncio.Task[None]) -> None:
        """As long as ZooKeeper answers; without it no longer than a session lives."""
        while not executor.done():
            was_connected = self.session.connected
            await asyncio.wait({executor}, timeout=self._config.session_timeout_ms / 1000)
            if not executor.done() and not was_connected and not self.session.connected:
                log.warning("%s: ZooKeeper does not answer: the session is left to its timeout", self._consumer_id)
                return
