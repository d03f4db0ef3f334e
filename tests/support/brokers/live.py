"""Live brokers for tests: on the test's own event loop (`running_broker`, `running_cluster`), or on a separate thread
for stock clients, which block (`broker_thread`).

    async with running_broker(chroot, tmp_path, mount=(coordinator.service.mount.mount,)) as broker: broker.address.port
    async with running_cluster(2, chroot, tmp_path) as brokers: ...
    with broker_thread(chroot, tmp_path) as bootstrap: KafkaConsumer(bootstrap_servers=bootstrap)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from kernel.broker.broker import Broker
from kernel.broker.services import Mount
from kernel.broker.settings.configuration import BrokerConfig
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection
from kernel.client.producer import Producer
from kernel.client.reads import fetch
from kernel.runtime import REAL, Runtime
from kernel.trace.writer import Tracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.trace.tracers import ListTracer

#: Short times where Kafka's defaults would make tests wait; a test of a default sets it.
QUICK_SETTINGS = {
    "port": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "zookeeper.session.timeout.ms": "15000",  # outlives a busy machine's pauses
}


def broker_of(
    zookeeper: str,
    data_dir: Path,
    *,
    node_id: int = 1,
    settings: Mapping[str, str] | None = None,
    mount: Sequence[Mount] = (),
    tracer: Tracer | None = None,
    adopt_folder: bool = False,
    runtime: Runtime = REAL,
) -> Broker:
    """A broker, not started."""
    given = {"broker.id": str(node_id), **QUICK_SETTINGS, **(settings or {})}
    config, warnings = BrokerConfig.from_settings(given)
    assert not warnings, warnings
    data_dir.mkdir(parents=True, exist_ok=True)
    tracer = tracer or ListTracer(process=f"broker-{node_id}")
    return Broker(config, zookeeper, data_dir, tracer, mount, adopt_folder=adopt_folder, runtime=runtime)


@asynccontextmanager
async def running_broker(
    zookeeper: str,
    data_dir: Path,
    *,
    node_id: int = 1,
    settings: Mapping[str, str] | None = None,
    mount: Sequence[Mount] = (),
    tracer: Tracer | None = None,
    runtime: Runtime = REAL,
) -> AsyncIterator[Broker]:
    """One broker on this event loop; `data_dir` is shared by all brokers of a cluster."""
    broker = broker_of(
        zookeeper, data_dir, node_id=node_id, settings=settings, mount=mount, tracer=tracer, runtime=runtime
    )
    async with broker:
        yield broker


@asynccontextmanager
async def running_cluster(
    number: int,
    zookeeper: str,
    data_dir: Path,
    *,
    settings: Mapping[str, str] | None = None,
    mount: Sequence[Mount] = (),
) -> AsyncIterator[list[Broker]]:
    """Brokers 1 to `number` on this event loop; internal topics get a replica on each of them."""
    given = {"offsets.topic.replication.factor": str(number), **(settings or {})}
    async with AsyncExitStack() as stack:
        brokers = [
            await stack.enter_async_context(
                running_broker(zookeeper, data_dir, node_id=node_id, settings=given, mount=mount)
            )
            for node_id in range(1, number + 1)
        ]
        for broker in brokers:
            assert await broker.cluster.until(lambda snapshot: len(snapshot.brokers) == number, 60_000)
        yield brokers


@contextmanager
def broker_thread(
    zookeeper: str,
    data_dir: Path,
    *,
    number: int = 1,
    settings: Mapping[str, str] | None = None,
    mount: Sequence[Mount] = (),
    topics: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Brokers on an event loop in a thread, for clients that block; gives "host:port[,host:port]"."""
    ready = threading.Event()
    failures: list[BaseException] = []
    addresses: list[str] = []
    stop: asyncio.Event
    loop: asyncio.AbstractEventLoop

    async def serve() -> None:
        nonlocal stop, loop
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with running_cluster(number, zookeeper, data_dir, settings=settings, mount=mount) as brokers:
            addresses.extend(f"{broker.address.host}:{broker.address.port}" for broker in brokers)
            if topics:
                await create_topics(brokers[0], topics)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - handed to the test, which raises it
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="brokers", daemon=True)
    thread.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        yield ",".join(addresses)
    finally:
        if not failures:
            loop.call_soon_threadsafe(stop.set)
        thread.join(20)
    if failures:
        raise failures[0]


@asynccontextmanager
async def client_of(*brokers: Broker, client_id: str = "test") -> AsyncIterator[ClusterClient]:
    """A cluster client that starts from these brokers."""
    client = ClusterClient([(broker.address.host, broker.address.port) for broker in brokers], client_id)
    try:
        yield client
    finally:
        await client.close()


async def create_topics(broker: Broker, topics: Mapping[str, int], *, replication_factor: int = 1) -> None:
    """Create topics ({name: partitions}) and wait until each partition is led."""
    async with client_of(broker) as client:
        connection = await client.any_connection()
        wanted = [
            {"name": name, "num_partitions": partitions, "replication_factor": replication_factor}
            for name, partitions in topics.items()
        ]
        answer = await connection.call(Api.CreateTopics, {"topics": wanted, "timeout": 60_000}, timeout_ms=90_000)
        assert all(topic.error_code is ErrorCode.none for topic in answer.topics), answer
    ours = [
        TopicPartition(name, index)
        for name in topics
        for index, partition in enumerate(broker.cluster.snapshot.topics[name].partitions)
        if partition.leader == broker.address.node_id
    ]
    # ZooKeeper names a leader before that broker has taken over.
    await until(lambda: all(broker.cluster.leads(tp) for tp in ours), 60, lambda: f"{ours} to be led")


async def send_values(broker: Broker, tp: TopicPartition, values: Sequence[bytes]) -> None:
    """Store these records in order, with a client that starts from `broker`."""
    async with client_of(broker) as client:
        producer = Producer(client)
        await asyncio.gather(*(producer.enqueue(tp, value) for value in values))
        await producer.close()


async def read_values(broker: Broker, tp: TopicPartition) -> list[bytes | None]:
    """The values of the partition's records, read from its leader `broker`; they must fit into one response."""
    connection = await BrokerConnection.open(broker.address.host, broker.address.port, "reader")
    try:
        got = (await fetch(connection, {tp: 0}, max_wait_ms=0))[tp]
        assert got.error == "", got
        return [record.value for record in got.records]
    finally:
        connection.close()
