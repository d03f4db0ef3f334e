"""A broker's membership in its cluster: one ZooKeeper session and everything that depends on it.

`Cluster` composes the registration, the observer, the controller's candidacy and the leaderships. It has two tasks. One
follows the state of the session: losing it ends the registration and all leaderships immediately; a new session
registers again. The other turns dirty watches into observations, updates leaderships and `until`, and runs the
controller. A lost connection changes neither registration nor leadership: until the session expires, no other broker
can be elected because of it, and the storage's fence covers the moments in between.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from kernel.broker.cluster.cluster_view import ClusterSnapshot
from kernel.broker.cluster.controlling import Controller
from kernel.broker.cluster.data_folder import OtherFolder
from kernel.broker.cluster.leading import Leading
from kernel.broker.cluster.observing import Observer
from kernel.broker.cluster.registration import allocate_block, ensure_cluster, register
from kernel.broker.cluster.topics import TopicWriter
from kernel.broker.cluster.znodes import MalformedNode
from kernel.broker.storage.errors import StorageError
from kernel.broker.storage.internal_errors import log_stopped
from kernel.errors import EnvironmentFault, RebalanceLabError, Retriable
from kernel.runtime import REAL, Runtime
from kernel.tasks import cancel_and_wait
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.end_session import SessionCredentials
from kernel.zookeeper.errors import SessionClosed, ZooKeeperError
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from uuid import UUID

    from kernel.broker.cluster.cluster_view import Leadership, LeadershipListener, TopicView
    from kernel.broker.cluster.data_folder import DataFolder
    from kernel.broker.cluster.observing import Observation
    from kernel.broker.cluster.znodes import ProducerIdBlock
    from kernel.trace.writer import Tracer
    from kernel.values import BrokerAddress, TopicPartition
    from kernel.zookeeper.operations import SessionChange

log = logging.getLogger(__name__)

#: A controller that was overtaken retries after this long, or sooner if a watch fires.
_RACE_RETRY_S = 0.1
#: The delay after an error of ZooKeeper, or malformed data in it.
_ERROR_RETRY_S = 1.0
#: A previous incarnation's registration expires within its session timeout and a tick or two.
_REGISTRATION_GRACE_MS = 5_000
#: How long a broker that stops waits for ZooKeeper to record that it has left its data folder.
_LEAVING_S = 1.0
#: Sessions tried for one start, if their connections are lost before it completes.
_START_ATTEMPTS = 3


class Cluster:
    """Started and stopped by `broker.py`; handlers and the coordinator call what stands under "for handlers"."""

    def __init__(
        self,
        zookeeper: str,
        address: BrokerAddress,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        tracer: Tracer,
        process: str = "",
        runtime: Runtime = REAL,
    ) -> None:
        self._zookeeper = zookeeper
        self._address = address
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._tracer = tracer
        self._process = process
        self._runtime = runtime
        #: Called with each session before anything is registered in it, on a thread. May raise OSError.
        self.keep_session: Callable[[SessionCredentials], None] | None = None
        #: Called before this broker registers in another session, and when it has stopped writing.
        self.data_folder: DataFolder | None = None
        #: See `Controller`.
        self.kept_topic_id: Callable[[str], Awaitable[UUID | None]] | None = None
        self.deletes_topics = True
        self._leading = Leading(address.node_id, tracer)
        self.snapshot = ClusterSnapshot()
        self._changed = asyncio.Event()
        self._registered_in = 0  # the session; 0: not registered
        self._doomed: set[str] = set()
        self._on_deleted: list[Callable[[UUID], Awaitable[None]]] = []
        #: Called when an internal error keeps this broker from following the cluster; its session is closed then.
        self.on_failed: Callable[[RebalanceLabError], None] | None = None
        self._block: ProducerIdBlock | None = None
        self._next_producer_id = 0
        self._block_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Future[None] | None = None
        self._session: ZooKeeperSession | None = None
        self._observer: Observer | None = None
        self._controller: Controller | None = None
        self._topics: TopicWriter | None = None

    # -- lifecycle ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the cluster; on return the view is complete and leaderships follow. Subscribe before.

        Raises Unavailable (no ZooKeeper), BrokerIdTaken.
        """
        for attempt in range(1, _START_ATTEMPTS + 1):
            session = await self._open()
            try:
                await self._join(session)
            except BaseException as error:
                self._session = None
                await session.close()
                # A connection lost before any leadership only makes the start slower.
                if not isinstance(error, Retriable) or attempt == _START_ATTEMPTS:
                    raise
            else:
                break
        self._spawn(self._follow_session(session), "session")
        self._spawn(self._follow_view(session), "view")
        self._spawn(session.raise_failure(), "zookeeper")

    async def _open(self) -> ZooKeeperSession:
        return await ZooKeeperSession.open(
            self._zookeeper,
            session_timeout_ms=self._session_timeout_ms,
            connection_timeout_ms=self._connection_timeout_ms,
            tracer=self._tracer,
            process=self._process,
            name=f"broker-{self.node_id}",
            bridge=self._runtime.edge(Bridge),
        )

    async def _join(self, session: ZooKeeperSession) -> None:
        """Register in this session, and read the cluster's state."""
        self._session = session
        await self._keep(session)
        cluster_id = await ensure_cluster(session, self._runtime.random)
        patience_ms = session.negotiated_timeout_ms + _REGISTRATION_GRACE_MS
        session_id = session.session_id
        await register(session, self._address, self._runtime.clock, patience_ms=patience_ms)
        self._registered_in = session_id
        self._observer = Observer(session, cluster_id)
        self._controller = Controller(session, self.node_id, self._runtime)
        self._controller.kept_topic_id, self._controller.deletes_topics = self.kept_topic_id, self.deletes_topics
        self._topics = TopicWriter(session, self._runtime.random)
        self._publish(await self._observer.refresh())

    async def _keep(self, session: ZooKeeperSession) -> None:
        """Save the session, so that a successor of this process does not have to wait for its timeout after a kill."""
        if self.keep_session is None:
            return
        try:
            await self._runtime.threads.run(self.keep_session, SessionCredentials(*session.credentials))
        except OSError as error:
            log.warning(
                "broker %d: a start after kill -9 will have to wait for the session's timeout: %s", self.node_id, error
            )

    async def stop(self) -> None:
        """Resign every leadership, then close the session, which notifies the other brokers. Idempotent."""
        session, self._session = self._session, None
        if session is None:
            return
        self._registered_in = 0
        await cancel_and_wait(*self._tasks)
        self._leading.want({}, self.snapshot)
        await self._leading.settled()
        await self._leave_folder(session)
        await session.close()

    async def _leave_folder(self, session: ZooKeeperSession) -> None:
        """Without it the folder may not be copied: so a ZooKeeper that does not answer is not waited for."""
        if self.data_folder is None:
            return
        try:
            async with asyncio.timeout(_LEAVING_S):
                await self.data_folder.leave(session)
        except (TimeoutError, RebalanceLabError) as error:
            log.warning(
                "broker %d could not record that it has left its data folder: start and stop a broker there before you"
                " copy the folder (%s)",
                self.node_id,
                error or "ZooKeeper does not answer",
            )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def on_topic_deleted(self, callback: Callable[[UUID], Awaitable[None]]) -> None:
        """Call back when a topic has been deleted; its partitions have been resigned by then."""
        self._on_deleted.append(callback)

    def lost(self, tp: TopicPartition, error: StorageError) -> None:
        """For `Storage.on_closed`: the storage may notice a lost leadership before the view does."""
        self._leading.lost(tp, error)

    @property
    def session(self) -> ZooKeeperSession:
        assert self._session is not None, "the cluster is joined by start()"
        return self._session

    # -- for handlers ------------------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        return self._address.node_id

    def leads(self, tp: TopicPartition) -> Leadership | None:
        """What this broker leads now; set only after `on_lead` of every listener has returned."""
        return self._leading.led(tp)

    def subscribe(self, listener: LeadershipListener, *, topics: Callable[[str], bool]) -> None:
        """Notify `listener` of the topics for which `topics(name)` is true."""
        assert self._session is None, "subscribe before start()"
        self._leading.subscribe(listener, topics)

    async def until(self, condition: Callable[[ClusterSnapshot], bool], timeout_ms: int) -> bool:
        """Wait until the snapshot fulfils `condition`. False after `timeout_ms`."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not condition(self.snapshot):
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> TopicView:
        """See `TopicWriter.create`; leaders follow once the controller has seen it (see `until`)."""
        assert self._topics is not None, "the cluster is joined by start()"
        return await self._topics.create(
            self.snapshot,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=config,
            assignment=assignment,
            validate_only=validate_only,
        )

    async def grow_topic(
        self,
        name: str,
        *,
        partitions: int,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> TopicView:
        """See `TopicWriter.grow`."""
        assert self._topics is not None, "the cluster is joined by start()"
        return await self._topics.grow(
            self.snapshot, name, partitions=partitions, assignment=assignment, validate_only=validate_only
        )

    async def delete_topic(self, name: str) -> None:
        """See `TopicWriter.delete`."""
        assert self._topics is not None, "the cluster is joined by start()"
        await self._topics.delete(name)

    async def allocate_producer_id(self) -> int:
        """A producer id that no broker of the cluster has handed out or will (blocks of 1000 in ZooKeeper)."""
        async with self._block_lock:
            if self._block is None or self._next_producer_id > self._block.last:
                self._block = await allocate_block(self.session, self.node_id)
                self._next_producer_id = self._block.first
            self._next_producer_id += 1
            return self._next_producer_id - 1

    # -- following ---------------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[None, None, None], what: str) -> None:
        task = asyncio.create_task(work, name=f"broker-{self.node_id}-{what}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bug. A broker that cannot follow must not lead: closing the session hands its partitions to the others.
            failure = log_stopped(f"broker {self.node_id}: {task.get_name()}", error)
            if self._session is not None:
                self._closing = asyncio.ensure_future(self._session.close())
            if self.on_failed is not None:
                self.on_failed(failure)

    async def _follow_session(self, session: ZooKeeperSession) -> None:
        while True:
            change = await session.states.get()
            if change.state in (SessionState.LOST, SessionState.CLOSED):
                log.warning("broker %d has lost its ZooKeeper session, and with it all leaderships", self.node_id)
                self._registered_in = 0
                self._update_leadership()
            if change.state is SessionState.CLOSED:
                return
            if change.state is SessionState.CONNECTED and change.session_id != self._registered_in:
                await self._register_again(session, change)

    async def _register_again(self, session: ZooKeeperSession, change: SessionChange) -> None:
        while session.session_id == change.session_id:
            try:
                await session.wait_connected()
                if self.data_folder is not None:
                    await self.data_folder.check(session)
                await self._keep(session)
                await register(session, self._address, self._runtime.clock, patience_ms=None)
            except SessionClosed:
                return
            except OtherFolder as error:
                log.error("broker %d does not register again: %s", self.node_id, error)  # noqa: TRY400 - says all
                if self.on_failed is not None:
                    self.on_failed(error)
                return
            except Retriable as error:
                log.info("broker %d could not register again yet: %s", self.node_id, error)
            except (ZooKeeperError, EnvironmentFault) as error:
                log.error("broker %d cannot register again: %s", self.node_id, error)  # noqa: TRY400 - no fault here
                await asyncio.sleep(_ERROR_RETRY_S)
            else:
                break
        if session.session_id == change.session_id:
            self._registered_in = change.session_id
            self._leading.forget_refusals()
            assert self._observer is not None
            self._observer.invalidate()

    async def _follow_view(self, session: ZooKeeperSession) -> None:
        assert self._observer is not None
        assert self._controller is not None
        while True:
            retry_s: float | None = None
            try:
                await session.wait_connected()
                observed = await self._observer.refresh()
                self._publish(observed)
                if self._registered_in == session.session_id and not await self._controller.step(observed):
                    retry_s = _RACE_RETRY_S
            except SessionClosed:
                return
            except Retriable as error:
                log.info("broker %d could not follow ZooKeeper: %s", self.node_id, error)
                continue
            except (ZooKeeperError, MalformedNode) as error:
                log.error("broker %d cannot follow ZooKeeper: %s", self.node_id, error)  # noqa: TRY400 - no fault here
                retry_s = _ERROR_RETRY_S
            try:
                async with asyncio.timeout(retry_s):
                    await self._observer.dirty.wait()
            except TimeoutError:
                continue
            if retry_s == _ERROR_RETRY_S:
                await asyncio.sleep(_ERROR_RETRY_S)  # unread paths are still dirty

    def _publish(self, observed: Observation) -> None:
        before, self.snapshot = self.snapshot, observed.snapshot
        self._doomed.update(observed.deletions)
        self._update_leadership()
        for name in [name for name in self._doomed if name in before.topics]:
            topic_id = before.topics[name].topic_id
            if topic_id not in observed.snapshot.topic_names:
                self._doomed.discard(name)
                self._spawn(self._forget(topic_id), f"forget-{name}")
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _update_leadership(self) -> None:
        if self._registered_in:
            self._leading.follow(self.snapshot)
        else:
            self._leading.want({}, self.snapshot)

    async def _forget(self, topic_id: UUID) -> None:
        await self._leading.settled()
        for callback in self._on_deleted:
            try:
                await callback(topic_id)
            except StorageError as failure:
                log.error("cannot remove the data of deleted topic %s: %s", topic_id, failure)  # noqa: TRY400
