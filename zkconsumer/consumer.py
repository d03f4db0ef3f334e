"""The high-level consumer of Kafka 0.8.2 (ZookeeperConsumerConnector) behind the interface of all designs.

It wires the parts and performs; what happens in which order is decided in `rebalance.py`. Tasks: the executor
(rebalances), the delivery of watches (`watching.py`), the commit timer, the leader finder and the fetchers. All of
them live on one event loop; kazoo's thread ends in the session.

Kept from the original, because this design is here to show it:

- `subscribe` runs the first rebalance and raises `RebalanceFailed` when every attempt failed; registration,
  watches and timer then stay, and the next change of the group helps the member.
- Rebalances run in the background. `getmany` hands out what is queued and never waits for one.
- Nothing stops on a lost connection or an expired session before the next rebalance does.
- A commit writes all positions that changed, and nothing fences it.

Where we differ: a shutdown that ZooKeeper does not answer ends after a session timeout (the original waits for
ever), and calls come from one event loop instead of one thread a stream.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.consumer import Capabilities, SilentListener
from kernel.errors import RebalanceFailed, RebalanceLabError, StreamsExist, UserError
from kernel.serials import serial_of
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from zkconsumer.effects import ChangeNotified, CloseDemanded, SessionRenewed
from zkconsumer.executor import Executor, Parts
from zkconsumer.leaders import FetcherManager
from zkconsumer.offsets import BY_TIMER, Offsets
from zkconsumer.payloads import thread_ids
from zkconsumer.registration import new_consumer_id, register
from zkconsumer.state import Rebalance, Rules, State
from zkconsumer.streams import Registry, Stream
from zkconsumer.watching import Listening, Watching

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.values import Batch, CommitOutcome, TopicPartition
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)

CAPABILITIES = Capabilities(
    streams=True,
    resubscribe=False,
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
        self._topics: dict[str, int] = {}
        self._streams: dict[tuple[str, str], Stream] = {}
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
        self._turn = 0  # which stream is served first
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
            raise UserError("the consumer was not started: call start() first")
        return self._session

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        config = self._config
        session = self._session = await ZooKeeperSession.open(
            config.zookeeper_connect,
            session_timeout_ms=config.session_timeout_ms,
            tracer=self._tracer,
            process=self._process,
            name=self._consumer_id,
            connection_timeout_ms=config.connection_timeout_ms,
            retry_forever=True,
        )
        session.member = self._consumer_id
        self._watching = Watching(session, self._session_renewed)
        self._offsets = Offsets(
            session, self._watching, self._registry, config, self._tracer, closing=lambda: self._closing is not None
        )
        self._fetchers = FetcherManager(self._watching, config, self._tracer, self._consumer_id, self._spawn)
        await self._offsets.open()
        if config.auto_commit_enable:
            self._tasks["auto-commit"] = self._spawn(self._auto_commit())

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """Register, watch, and rebalance once, in this order: so what joins in between is seen by the rebalance."""
        if self._executor is not None:
            raise StreamsExist("the streams of this consumer exist already: make another consumer")
        for topic, streams in topics.items():
            if streams < 1:
                raise UserError(f"{topic}:{streams}: a topic needs at least one stream")
        session = self.session
        self._topics = dict(topics)
        self._streams = self._new_streams()
        executor = self._executor = self._new_executor(listener or SilentListener())
        self._tasks["executor"] = self._spawn(executor.run())
        await self._register(session)
        self._registered = True
        most = max(topics.values(), default=0)
        self._tracer.emit("member_started", member=self._consumer_id, group=self._config.group_id, streams=most)
        assert self._watching is not None
        self._tasks["delivery"] = self._spawn(self._watching.deliver())
        await self._watching.listen(
            paths.member_ids(self._config.group_id),
            Listening.CHILDREN,
            lambda cause: executor.tell(ChangeNotified("members", cause)),
        )
        for topic in topics:
            await self._watching.listen(
                paths.topic(topic), Listening.DATA, lambda cause: executor.tell(ChangeNotified("partitions", cause))
            )
        error = await self._or_crash(executor.demand("start"))
        if error is not None:
            raise RebalanceFailed(error)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    # -- records and positions -----------------------------------------------------------------------------------

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            self._raise_crash()
            self._filled.clear()
            if batches := self._take(max_records):
                return batches
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
            raise UserError("the consumer was not started: call start() first")
        return await self._offsets.commit(explicit=True, step="commit")

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        delivering = {} if self._executor is None else self._executor.machine.delivering
        return {stream.number: delivering.get(stream.number, frozenset()) for stream in self._streams.values()}

    def position(self, partition: TopicPartition) -> int | None:
        return self._registry.position(partition)

    # -- inside ------------------------------------------------------------------------------------------------

    def _new_streams(self) -> dict[tuple[str, str], Stream]:
        chunks_max = self._config.queued_max_message_chunks
        return {
            (topic, thread): Stream(thread, chunks_max, self._filled)
            for topic, count in self._topics.items()
            for thread in thread_ids(self._consumer_id, count)
        }

    def _new_executor(self, listener: RebalanceListener) -> Executor:
        config = self._config
        assert self._watching is not None
        assert self._fetchers is not None
        assert self._offsets is not None
        rules = Rules(
            group=config.group_id,
            consumer_id=self._consumer_id,
            max_retries=config.rebalance_max_retries,
            backoff_ms=config.rebalance_backoff_ms,
            auto_commit=config.auto_commit_enable,
            retry_while_closing=config.retry_while_closing,
            offsets_from=config.offsets_from,
            fence_epochs=config.fixes.commit_fence == "epoch",
        )
        parts = Parts(
            session=self.session,
            watching=self._watching,
            fetchers=self._fetchers,
            offsets=self._offsets,
            registry=self._registry,
            streams=self._streams,
            listener=listener,
            tracer=self._tracer,
            stop_auto_commit=self._stop_auto_commit,
        )
        return Executor(Rebalance(rules=rules), parts)

    async def _register(self, session: ZooKeeperSession) -> None:
        config = self._config
        await register(session, config.group_id, self._consumer_id, self._topics, config.session_timeout_ms)

    async def _session_renewed(self) -> None:
        """Told before any listener: the registry is emptied at once, whatever the executor is doing."""
        assert self._executor is not None
        self._executor.tell(SessionRenewed())
        await self._register(self.session)
        error = await self._executor.demand("session")
        if error is not None:
            log.error("%s: after a new session: %s", self._consumer_id, error)

    async def _auto_commit(self) -> None:
        assert self._offsets is not None
        while True:
            await asyncio.sleep(self._config.auto_commit_interval_ms / 1000)
            try:
                await self._offsets.commit(explicit=False, step=BY_TIMER)
            except RebalanceLabError:
                log.exception("%s: the commit by the timer failed", self._consumer_id)

    async def _stop_auto_commit(self) -> None:
        assert self._offsets is not None
        async with self._offsets.between_commits():  # as the original, which waits for one that is under way
            await self._end("auto-commit")

    def _take(self, max_records: int) -> list[Batch]:
        """From each stream in turn, another one first each time."""
        streams = list(self._streams.values())
        self._turn += 1
        batches: list[Batch] = []
        left = max_records
        for position in range(len(streams)):
            stream = streams[(position + self._turn) % len(streams)]
            while left > 0 and (batch := stream.take(left)) is not None:
                left -= len(batch.records)
                batches.append(batch)
                self._tell_delivered(batch)
        return batches

    def _tell_delivered(self, batch: Batch) -> None:
        """One event for each run of consecutive offsets with consecutive serials."""
        records = batch.records
        serials = [serial_of(record.value) for record in records]
        first = 0
        for i in range(1, len(records) + 1):
            if i < len(records) and records[i].offset == records[i - 1].offset + 1:
                before, serial = serials[i - 1], serials[i]
                if (serial is None) == (before is None) and (serial is None or before is None or serial == before + 1):
                    continue
            self._tracer.emit(
                "records_delivered",
                member=self._consumer_id,
                stream=batch.stream,
                topic=batch.topic_partition.topic,
                partition=batch.topic_partition.partition,
                first=records[first].offset,
                last=records[i - 1].offset,
                serial_first=serials[first],
                serial_last=serials[i - 1],
            )
            first = i

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
            for stream in self._streams.values():
                stream.clear()
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
