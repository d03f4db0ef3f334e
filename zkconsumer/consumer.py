"""The high-level consumer of Kafka 0.8.2 (ZookeeperConsumerConnector) behind the interface of all designs.

It puts the parts together; `rebalance/machine.py` decides what happens in which order. The tasks are the executor
(rebalances), the delivery of watches (`watching/watcher.py`), the commit timer, the leader finder and the fetchers. All
run on one event loop; kazoo's thread is confined to the session.

Kept from the original, because this design is here to show it, unless an option `fix.*` removes it:

- `subscribe` runs the first rebalance and raises `RebalanceFailed` if every attempt failed; registration, watches
  and timer stay in place, and the next change of the group triggers another rebalance.
- With a pattern the topics are those that match now; a change is handled, as in the original, on the task that
  delivers all other changes too (`watching/topics.py`).
- Rebalances run in the background. `getmany` hands out queued records and never waits for a rebalance.
- A lost connection or an expired session stops nothing; the next rebalance does.
- A commit to ZooKeeper writes all changed positions, without a fence.

Where we differ: without an answer from ZooKeeper a shutdown ends after a session timeout (the original waits forever),
calls come from one event loop instead of one thread per stream, and a member whose executor fails leaves its group.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.consumer import Capabilities, MemberPlace, SilentListener
from kernel.errors import StreamsExist, UserError
from kernel.runtime import REAL, Runtime
from kernel.tasks import cancel_and_wait
from kernel.zookeeper.errors import SessionClosed
from zkconsumer.member import log_lines
from zkconsumer.member.executor import Executor, Parts
from zkconsumer.member.membership import Membership
from zkconsumer.member.registration import new_consumer_id, open_session
from zkconsumer.member.subscription import Subscription
from zkconsumer.offsets.commits import Offsets
from zkconsumer.rebalance.config import rebalance_config
from zkconsumer.rebalance.effects import CloseDemanded
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.records.delivery import Delivery
from zkconsumer.records.iterators import StreamIterator
from zkconsumer.records.leaders import FetcherManager
from zkconsumer.records.streams import Registry, Stream
from zkconsumer.watching.watcher import Watcher
from zkconsumer.znodes.filters import TopicFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping, Sequence

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, CommitOutcome, TopicPartition
    from kernel.zookeeper.session import ZooKeeperSession
    from kernel.zookeeper.stepping import StepGate
    from zkconsumer.member.subscription import Streams
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)

_NOT_STARTED = "the consumer is not started: call start() first"

CAPABILITIES = Capabilities(
    streams=True, resubscribe=False, patterns=True, commit_single_partitions=False, seek=False, pause=False
)


class ZooKeeperConsumer:
    """One member of a group. `process` names it in traces and threads."""

    def __init__(
        self,
        config: ZkConsumerConfig,
        *,
        tracer: Tracer,
        process: str,
        gate: StepGate | None = None,
        runtime: Runtime = REAL,
    ) -> None:
        self._config = config
        self._tracer = tracer
        self._process = process
        self._runtime = runtime
        self._gate = gate  #: in front of all its ZooKeeper operations
        self._consumer_id = new_consumer_id(config.group_id, config.consumer_id, runtime)
        self._log_prefix = log_lines.prefix(self._consumer_id)
        self._membership: Membership | None = None
        self._streams: tuple[Stream, ...] = ()
        self._iterators: tuple[StreamIterator, ...] = ()
        self._filled = asyncio.Event()
        self._registry = Registry()
        self._registered = False
        self._session: ZooKeeperSession | None = None
        self._offsets: Offsets | None = None
        self._watcher: Watcher | None = None
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

    def places(self) -> Mapping[int, MemberPlace]:
        place = MemberPlace(member_id=self._consumer_id if self._registered else "")
        return {stream.number: place for stream in self._streams}

    @property
    def session(self) -> ZooKeeperSession:
        """The ZooKeeper session. Raises `UserError` before `start`."""
        if self._session is None:
            raise UserError(_NOT_STARTED)
        return self._session

    # -- lifecycle ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Raises `Unavailable` without ZooKeeper, `UserError` if the consumer is closed."""
        self._refuse_closed()
        config = self._config
        log.info(log_lines.CONNECTING, self._log_prefix, config.zookeeper_connect)
        session = await open_session(config, self._consumer_id, self._process, self._tracer, self._runtime)
        if self._closing is not None:  # closed meanwhile, without this session
            await session.close()
            self._refuse_closed()
        self._session = session
        self._tasks["session"] = self._spawn(session.raise_failure())
        session.member = self._consumer_id
        if self._gate is not None:
            session.step_through(self._gate)
        self._watcher = Watcher(session, self._session_renewed, one_read=config.one_read_watches)
        self._offsets = Offsets(
            session, self._watcher, self._registry, config, self._tracer, closing=lambda: self._closing is not None
        )
        self._fetchers = FetcherManager(self._watcher, config, self._tracer, self._consumer_id, self._spawn)
        await self._offsets.open()
        if config.auto_commit_enable:
            log.info(log_lines.AUTO_COMMITTER, self._log_prefix, config.auto_commit_interval_ms)
            self._tasks["auto-commit"] = self._spawn(self._offsets.commit_by_timer())

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """Register, watch, and rebalance once, in this order, so that the rebalance sees members that join meanwhile.

        Raises `RebalanceFailed` (see above), `IdTaken` with registration.conflict=fail, `SessionClosed` if the consumer
        is closed meanwhile.
        """
        await self._subscribe(Subscription.by_name(topics), listener)

    async def subscribe_pattern(
        self, pattern: str | TopicFilter, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """As `subscribe`, for all topics that match a filter, now and later; they share the `streams`.

        A string is a white list. The member listens for new topics once its first rebalance has succeeded.
        """
        topic_filter = TopicFilter.white(pattern) if isinstance(pattern, str) else pattern
        await self._subscribe(Subscription.by_pattern(topic_filter, streams), listener)

    async def unsubscribe(self) -> None:
        """Refused: a member of 0.8 keeps its subscription until it is shut down."""
        raise UserError("the 0.8 consumer cannot unsubscribe: close() it and create another one")

    async def close(self) -> None:
        """Shut down in the original's order. A call from a listener, for which the rebalance waits, does not wait."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        if asyncio.current_task() is not self._tasks.get("executor"):
            await asyncio.shield(self._closing)

    # -- records and positions -----------------------------------------------------------------------------------

    def streams(self) -> Sequence[StreamIterator]:
        """After `subscribe`: one iterator for each stream, by topic and thread, the same ones at every call.

        They replace `getmany`, which raises from then on (see `records/iterators.py`).
        """
        if self._executor is None:
            raise UserError("there are no streams yet. Call subscribe() first")
        if not self._iterators:
            timeout_ms = self._config.consumer_timeout_ms
            self._iterators = tuple(
                StreamIterator(stream, timeout_ms=timeout_ms, handed_out=self._delivery.emit, check=self._raise_crash)
                for stream in self._streams
            )
        return self._iterators

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """Take records from all streams.

        Raises once for a stream that cannot go on (`MessageSizeTooLarge`, `CorruptRecords`); the others go on.
        """
        if self._iterators:
            raise UserError("streams() was called: read from its iterators, or use getmany() without calling streams()")
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            self._raise_crash()
            self._filled.clear()
            # Before anything is taken: records that are taken count as consumed, and raising would lose them.
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
        """Write every changed position. `offsets` is refused, since 0.8 commits all positions or none."""
        if offsets is not None:
            raise UserError("the 0.8 consumer commits all its positions. Call commit() without offsets")
        self._raise_crash()
        if self._offsets is None:
            raise UserError(_NOT_STARTED)
        return await self._offsets.commit(explicit=True, step="commit")

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        delivering = {} if self._executor is None else self._executor.machine.delivering
        return {stream.number: delivering.get(stream.number, frozenset()) for stream in self._streams}

    def position(self, partition: TopicPartition) -> int | None:
        return self._registry.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Refused: a member of 0.8 begins at the group's offsets, and reads on."""
        raise UserError(f"the 0.8 consumer cannot seek {partition} to {offset}: it begins at the group's offsets")

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Refused: an application of 0.8 stops reading from a stream, whose queue then fills."""
        raise UserError("the 0.8 consumer cannot pause partitions: stop reading from the iterator of their stream")

    resume = pause

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset()

    async def _subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        """Streams, executor, registration, the task that delivers changes, and the first rebalance."""
        if self._watcher is None:
            raise UserError(_NOT_STARTED)
        if self._membership is not None:
            raise StreamsExist("the streams of this consumer exist already. Create another consumer")
        self._refuse_closed()
        config, filled = self._config, self._filled
        by_thread = subscription.new_streams(
            self._consumer_id, lambda thread: Stream(thread, config.queued_max_message_chunks, filled)
        )
        self._streams = tuple(dict.fromkeys(by_thread.values()))
        executor = self._executor = self._new_executor(by_thread, listener or SilentListener(), self._watcher)
        membership = self._membership = Membership(
            config,
            self._consumer_id,
            subscription,
            by_thread,
            clock=self._runtime.clock,
            tracer=self._tracer,
            watcher=self._watcher,
            executor=executor,
            demand=lambda trigger, cause: self._or_crash(executor.demand(trigger, cause)),
        )
        self._tasks["executor"] = self._spawn(executor.run())
        log.info(log_lines.EXECUTOR_STARTED, self._log_prefix, self._consumer_id)
        if config.fixes.stop_on_disconnect:
            self._tasks["connection"] = self._spawn(membership.forward_connection_changes())
        await membership.remember_topics()
        self._watcher.begin()
        await self._register(membership)
        most = subscription.most_streams
        self._tracer.emit("member_started", member=self._consumer_id, group=config.group_id, streams=most)
        self._tasks["delivery"] = self._spawn(self._watcher.deliver())
        await membership.begin()

    def _refuse_closed(self) -> None:
        if self._closing is not None:
            raise UserError("the consumer is closed. Create another one")

    async def _register(self, membership: Membership) -> None:
        """Register in a separate task, which a close cancels: it may wait forever for another session to end."""
        log.info(log_lines.REGISTERING, self._log_prefix, self._consumer_id)
        registering = self._tasks["registering"] = asyncio.create_task(membership.register())
        try:
            await asyncio.wait({registering})
        finally:
            registering.cancel()
        if registering.cancelled():
            raise SessionClosed("the consumer was closed before it was registered")
        registering.result()
        self._registered = True
        log.info(log_lines.REGISTERED, self._log_prefix, self._consumer_id)

    def _new_executor(self, by_thread: Streams, listener: RebalanceListener, watcher: Watcher) -> Executor:
        assert self._fetchers is not None
        assert self._offsets is not None
        parts = Parts(
            session=self.session,
            watcher=watcher,
            fetchers=self._fetchers,
            offsets=self._offsets,
            registry=self._registry,
            streams=by_thread,
            listener=listener,
            tracer=self._tracer,
            stop_auto_commit=self._stop_auto_commit,
            one_by_one=self._config.one_by_one,
        )
        return Executor(Rebalance(config=rebalance_config(self._config, self._consumer_id)), parts)

    async def _session_renewed(self) -> None:
        assert self._membership is not None
        await self._membership.renewed()

    async def _stop_auto_commit(self) -> None:
        """The first step of a shutdown; a wildcard member stops listening before it."""
        assert self._offsets is not None
        if self._membership is not None:
            self._membership.stop_listening()
        async with self._offsets.between_commits():  # as the original does, waiting for a commit that is under way
            await self._end("auto-commit")

    # -- tasks -------------------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a task; if it fails, the application's next call raises its exception."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None or self._crash is not None:
            return
        self._crash = task.exception()
        self._tracer.emit("member_failed", member=self._consumer_id, error=repr(self._crash))
        self._filled.set()
        if task in map(self._tasks.get, ("executor", "session")) and self._closing is None:
            self._closing = asyncio.ensure_future(self._close())  # its nodes would fail all others' claims

    def _raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash

    async def _or_crash(self, demanded: Coroutine[object, object, str | None]) -> str | None:
        """The outcome of a demand; raises the executor's exception if the executor fails first."""
        outcome = asyncio.ensure_future(demanded)
        await asyncio.wait({outcome, self._tasks["executor"]}, return_when=asyncio.FIRST_COMPLETED)
        if not outcome.done():
            outcome.cancel()
            self._raise_crash()
            return None
        return await outcome

    async def _end(self, name: str) -> None:
        await cancel_and_wait(self._tasks.pop(name, None))

    async def _close(self) -> None:
        log.info(log_lines.SHUTTING_DOWN, self._log_prefix)
        began_s = asyncio.get_running_loop().time()
        if self._executor is not None and not self._tasks["executor"].done():
            self._executor.post(CloseDemanded())
            await self._wait_closed(self._tasks["executor"])
        for name in list(self._tasks):
            await self._end(name)
        if self._fetchers is not None:
            await self._fetchers.close()
        if self._executor is not None and self._executor.machine.state is not RebalanceState.CLOSED:
            for stream in self._streams:
                stream.clear()
                stream.end()
            self._executor.abandon()
        if self._session is not None:
            await self._session.close()
        if self._offsets is not None:
            await self._offsets.close()
        self._filled.set()
        log.info(log_lines.SHUT_DOWN, self._log_prefix, (asyncio.get_running_loop().time() - began_s) * 1000)

    async def _wait_closed(self, executor: asyncio.Task[None]) -> None:
        """Wait for the executor as long as ZooKeeper answers, and at most one session timeout without it."""
        while not executor.done():
            was_connected = self.session.connected
            await asyncio.wait({executor}, timeout=self._config.session_timeout_ms / 1000)
            if not executor.done() and not was_connected and not self.session.connected:
                log.warning(
                    "%s: ZooKeeper does not answer: closing without it, the session ends by its timeout",
                    self._consumer_id,
                )
                return
