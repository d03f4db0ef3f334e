"""One broker: server, storage and cluster, and parts mounted on it, such as the coordinator.

Order of the start: bind the port, become a broker of the data folder (`identity.py`), end the session that its last
process may have left, open the storage, let the mounted parts subscribe, join the cluster (register in ZooKeeper),
accept connections. A stop reverses this order. A start that fails leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Self

from kernel.broker.apis.cluster import ClusterHandlers
from kernel.broker.apis.configs import ConfigHandlers
from kernel.broker.apis.fetch import FetchHandlers
from kernel.broker.apis.loop import LoopHandlers
from kernel.broker.apis.metadata import MetadataHandlers
from kernel.broker.apis.offsets import OffsetHandlers
from kernel.broker.apis.produce import ProduceHandlers
from kernel.broker.apis.records import RecordHandlers
from kernel.broker.apis.topics import TopicHandlers
from kernel.broker.apis.transaction_verification import Verification
from kernel.broker.cluster.cluster_view import without_brokers
from kernel.broker.cluster.config_store import ConfigStore
from kernel.broker.cluster.data_folder import DataFolder
from kernel.broker.cluster.identity import BrokerAlreadyRunning, WrongCluster, check_cluster, claim
from kernel.broker.cluster.leadership import Cluster
from kernel.broker.cluster.led_logs import LedLogs
from kernel.broker.cluster.registration import ensure_cluster, find_cluster, next_node_id
from kernel.broker.cluster.topic_creation import DefaultTopics
from kernel.broker.server.server import BrokerServer, ServerLimits
from kernel.broker.services import BrokerServices
from kernel.broker.storage.previous_incarnations import clean_up_previous_incarnations
from kernel.broker.storage.retention import Retention
from kernel.broker.storage.storage import Storage
from kernel.errors import RebalanceLabError
from kernel.records.compression import UnpackingTurn
from kernel.runtime import REAL, Runtime
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import BrokerAddress
from kernel.wire.versions import Api
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.chroot import ensure_chroot
from kernel.zookeeper.end_session import end_session
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from kernel.broker.cluster.identity import Identity
    from kernel.broker.services import Mount
    from kernel.broker.settings.configuration import BrokerConfig
    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

#: Handlers that a mounted part may replace: transactional ids need a coordinator.
REPLACEABLE = frozenset({Api.InitProducerId})


class Broker:
    """`await start()`, `await stop()`, or `async with`. `address` is known after the start.

    `adopt_folder`: start even if the cluster's brokers have used another data folder, or this one since it was copied.
    """

    def __init__(
        self,
        config: BrokerConfig,
        zookeeper: str,
        data_dir: Path,
        tracer: Tracer,
        mount: Sequence[Mount] = (),
        *,
        adopt_folder: bool = False,
        runtime: Runtime = REAL,
    ) -> None:
        self.config = config
        self.address: BrokerAddress
        self.cluster: Cluster
        self._zookeeper = zookeeper
        self._data_dir = data_dir
        self._folder = DataFolder(data_dir, adopt=adopt_folder, runtime=runtime)
        self._tracer = tracer
        self._mount = mount
        self._runtime = runtime
        self._on_stop: list[Callable[[], Awaitable[None]]] = []
        self._failure: RebalanceLabError | None = None
        self._failed = asyncio.Event()
        self._running = contextlib.AsyncExitStack()
        self._storage: Storage | None = None

    async def start(self) -> None:
        """Raises `EnvironmentFault` (port, disk), `Unavailable` (ZooKeeper), `UserError` (broker id taken, the data
        folder belongs to another cluster, or the cluster has another folder).
        """
        try:
            await self._start()
        except RebalanceLabError as error:
            if self._failure is None:
                raise
            # An internal error has stopped a part that the start needs; `error` only follows from it.
            raise self._failure from error

    async def _start(self) -> None:
        async with contextlib.AsyncExitStack() as starting:
            server = self._server()
            await server.bind()
            starting.push_async_callback(server.stop)
            await ensure_chroot(
                self._zookeeper,
                tracer=self._tracer,
                name="broker-chroot",
                runtime=self._runtime,
                connection_timeout_ms=self.config.number("zookeeper.connection.timeout.ms"),
            )
            identity = await self._become(f"{server.host}:{server.port}")
            starting.callback(identity.release)
            await self._end_last_session(identity)
            node_id = identity.node_id
            await self._runtime.threads.run(clean_up_previous_incarnations, self._data_dir, node_id)
            storage = Storage(self._data_dir, node_id, runtime=self._runtime)
            await storage.start()
            self._storage = storage
            starting.push_async_callback(storage.close)
            self.address = BrokerAddress(node_id, *self.config.advertised(server.host, server.port))
            self.cluster = self._cluster()
            self.cluster.data_folder = self._folder
            self.cluster.keep_session = identity.keep_session
            self.cluster.kept_topic_id = storage.topic_id_of
            self.cluster.deletes_topics = self.config.flag("delete.topic.enable")
            logs = LedLogs(storage)
            configs = ConfigStore(node_id, self.config.given, self._runtime.clock)
            configs.connect(lambda: self.cluster.session, on_failed=self._fail)
            interval_ms = self.config.number("log.retention.check.interval.ms")
            retention = Retention(logs.all, configs.of, self._runtime.clock, interval_ms=interval_ms)
            self.cluster.subscribe(configs, topics=lambda name: name != OFFSETS_TOPIC)
            self.cluster.subscribe(logs, topics=lambda name: name != OFFSETS_TOPIC)
            self.cluster.on_topic_deleted(storage.forget_topic)
            storage.on_closed = self.cluster.lost
            storage.on_failed = self.cluster.on_failed = self._fail
            if storage.failure is not None:
                self._fail(storage.failure)
            # The stop unwinds this: first the server, then mounted parts, while the cluster still exists.
            starting.push_async_callback(self.cluster.stop)
            starting.push_async_callback(self._stop_mounted)
            self._mount_all(server, storage, logs, configs)
            await self.cluster.start()
            starting.push_async_callback(configs.stop)
            await configs.start()
            starting.push_async_callback(retention.stop)
            retention.start()
            starting.push_async_callback(server.stop)
            await server.serve()
            self._running = starting.pop_all()
        log.info("broker %s is serving", self.address)
        if unserved := without_brokers(self.cluster.snapshot):
            partitions, brokers = unserved
            log.warning(
                "%d partitions have no running broker: they are on %s. Restart these, without broker.id or with their"
                " own.",
                partitions,
                ", ".join(f"broker {broker}" for broker in brokers),
            )

    async def stop(self) -> None:
        """Close every connection, stop mounted parts, leave the cluster, close the storage. Idempotent."""
        await self._running.aclose()

    async def fill_disk(self, *, full: bool) -> None:
        """Store nothing more, as when the disk of the data folder is full, or lift that. Raises StorageFailed."""
        if self._storage is not None:
            await self._storage.fill_up(full=full)

    async def failed(self) -> RebalanceLabError:
        """Wait until an internal error has made the broker unusable; returns the error to report before stopping it.

        The traceback has been logged (kernel.broker.storage.internal_errors).
        """
        await self._failed.wait()
        assert self._failure is not None
        return self._failure

    def _fail(self, failure: RebalanceLabError) -> None:
        self._failure = self._failure or failure
        self._failed.set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # -- construction ------------------------------------------------------------------------------------------------

    def _server(self) -> BrokerServer:
        host, port = self.config.listener
        limits = ServerLimits(
            frame_bytes_max=self.config.number("socket.request.max.bytes"),
            connections_max=self.config.number("max.connections"),
            idle_ms_max=self.config.number("connections.max.idle.ms"),
            requests_bytes_max=self.config.number("queued.max.request.bytes"),
            responses_bytes_max=self.config.number("queued.max.response.bytes"),
        )
        return BrokerServer({}, host=host, port=port, limits=limits, runtime=self._runtime)

    async def _become(self, listener: str) -> Identity:
        """Become a broker of the folder. If it is another cluster's, or not this one's, nothing is written anywhere."""
        node_id = self.config.node_id if self.config.node_id >= 0 else None
        async with await ZooKeeperSession.open(
            self._zookeeper,
            session_timeout_ms=self.config.number("zookeeper.session.timeout.ms"),
            connection_timeout_ms=self.config.number("zookeeper.connection.timeout.ms"),
            tracer=self._tracer,
            name="broker-id",
            bridge=self._runtime.edge(Bridge),
        ) as session:
            found = await self._cluster_of_folder(session)
            await self._folder.check(session)
            cluster_id = found or await ensure_cluster(session, self._runtime.random)
            while True:
                try:
                    identity = await self._runtime.threads.run(
                        self._runtime.edge(claim), self._data_dir, cluster_id, listener, node_id=node_id
                    )
                except BrokerAlreadyRunning:
                    if self.config.node_id >= 0:
                        raise
                    identity = None  # assigned by hand before ZooKeeper generated it
                if identity is not None:
                    break
                node_id = await next_node_id(session)
            try:
                await self._folder.open(session, identity)
            except BaseException:
                identity.release()
                raise
            return identity

    async def _cluster_of_folder(self, session: ZooKeeperSession) -> str | None:
        """The cluster in ZooKeeper, which the folder's brokers must belong to; None: there is none yet."""
        found = await find_cluster(session)
        try:
            await self._runtime.threads.run(check_cluster, self._data_dir, found)
        except WrongCluster:
            # Another broker of this folder may have made the cluster since ZooKeeper was asked.
            if found is not None or (found := await find_cluster(session)) is None:
                raise
            await self._runtime.threads.run(check_cluster, self._data_dir, found)
        return found

    async def _end_last_session(self, identity: Identity) -> None:
        """End the session of a killed process: ZooKeeper would keep it, and our registration, until its timeout.

        The holder of the identity may do so: the process that opened the session is gone.
        """
        credentials = await self._runtime.threads.run(identity.last_session)
        if credentials is not None and not await self._runtime.edge(end_session)(
            self._zookeeper, credentials, timeout_s=self.config.number("zookeeper.connection.timeout.ms") / 1000
        ):
            log.warning("broker %d: could not end the ZooKeeper session of its last run", identity.node_id)

    def _cluster(self) -> Cluster:
        return Cluster(
            self._zookeeper,
            self.address,
            session_timeout_ms=self.config.number("zookeeper.session.timeout.ms"),
            connection_timeout_ms=self.config.number("zookeeper.connection.timeout.ms"),
            tracer=self._tracer,
            process=f"broker-{self.address.node_id}",
            runtime=self._runtime,
        )

    def _mount_all(self, server: BrokerServer, storage: Storage, logs: LedLogs, configs: ConfigStore) -> None:
        config, cluster = self.config, self.cluster
        topics = DefaultTopics(cluster, config)
        verification = Verification()
        services = BrokerServices(
            config=config,
            node_id=self.address.node_id,
            zookeeper=self._zookeeper,
            storage=storage,
            cluster=cluster,
            tracer=self._tracer,
            runtime=self._runtime,
            session=lambda: cluster.session,
            create_internal_topic=topics.ensure,
            on_stop=self._on_stop.append,
            turns=server.turns,
            group_configs=configs.groups.of,
            logs=logs,
            verification=verification,
        )
        turn = UnpackingTurn(self._runtime.threads)
        for table in (
            MetadataHandlers(cluster, topics, auto_create=config.flag("auto.create.topics.enable")).table(),
            TopicHandlers(cluster, config, configs).table(),
            ConfigHandlers(cluster, configs, config).table(),
            ClusterHandlers(cluster, lambda: cluster.session).table(),
            RecordHandlers(cluster, logs, configs, self._data_dir, self._runtime.threads).table(),
            ProduceHandlers(cluster, logs, configs, verification, turn, self._runtime.clock).table(),
            FetchHandlers(
                cluster, logs, turn, max_bytes=config.number("fetch.max.bytes"), responses=server.memory.responses
            ).table(),
            OffsetHandlers(cluster, logs, turn, self._runtime.clock).table(),
            LoopHandlers(server.turns).table(),
        ):
            server.mount(table)
        for mount in self._mount:
            server.mount(mount(services), instead=REPLACEABLE)

    async def _stop_mounted(self) -> None:
        while self._on_stop:
            await self._on_stop.pop()()
