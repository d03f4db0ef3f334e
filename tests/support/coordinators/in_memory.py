"""A coordinator without a broker: its handlers over a log in memory, for tests under a virtual clock."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from coordinator.groups.consumer.requests import ConsumerSettings
from coordinator.service.mount import mount
from kernel.broker.cluster.cluster_view import ClusterSnapshot, Leadership, LeadershipListener, PartitionView, TopicView
from kernel.broker.loop.turns import Turns
from kernel.broker.server.handlers import Encoded, HandlerTable, RequestContext, Rows, readers_of
from kernel.broker.services import BrokerServices
from kernel.broker.settings.configuration import BrokerConfig
from kernel.broker.storage.errors import LogStopped, StorageError
from kernel.clock import Clock
from kernel.runtime import Runtime
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import BrokerAddress, TopicPartition
from kernel.wire.codec import decode_request, decode_response, encode_request, encode_response, response_with
from kernel.wire.versions import Api
from tests.support.trace.tracers import ListTracer

NODE = 1
SIZE = 4  #: bytes in front of each frame


class MemoryLog:
    """A fake KeyValueLog. The next writes raise `broken`; while `gate` is cleared, writes wait."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.pairs: dict[bytes, bytes] = {}
        self.broken: StorageError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.transactions: list[list[bytes]] = []  #: the keys of each, in order

    async def upsert(self, pairs: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int = -1) -> None:
        await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        self.transactions.append([key for key, _ in pairs])
        for key, value in pairs:
            self.pairs.pop(key, None)
            if value is not None:
                self.pairs[key] = value

    @property
    def upserts(self) -> int:
        return len(self.transactions)

    async def pages(self) -> list[list[tuple[bytes, bytes]]]:
        return [await self.items()]

    async def items(self) -> list[tuple[bytes, bytes]]:
        await self.gate.wait()
        return sorted(self.pairs.items())


class MemoryStorage:
    """Storage's interface: logs that survive their coordinator."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.stopped: dict[TopicPartition, LogStopped] = {}

    async def take_over_pairs(self, tp: TopicPartition, topic_id: uuid.UUID, leader_epoch: int) -> MemoryLog:
        return self.logs.setdefault(tp, MemoryLog(tp))

    def stop_log(self, tp: TopicPartition, failure: LogStopped) -> None:
        self.stopped[tp] = failure

    def resign(self, tp: TopicPartition) -> None: ...


class FixedCluster:
    """A cluster of one broker with given topics."""

    def __init__(self, topics: Mapping[str, int], topic_ids: Mapping[str, uuid.UUID] = MappingProxyType({})) -> None:
        view = PartitionView(replicas=(NODE,), leader=NODE, leader_epoch=0, isr=(NODE,))
        self.node_id = NODE
        self._producer_ids = 0
        self._changed = asyncio.Event()
        self.listener: LeadershipListener | None = None
        views = {
            name: TopicView(name, topic_ids.get(name) or uuid.uuid4(), (view,) * count)
            for name, count in topics.items()
        }
        self.snapshot = ClusterSnapshot(
            brokers=MappingProxyType({NODE: BrokerAddress(NODE, "127.0.0.1", 9092)}),
            topics=views,
            topic_names={topic.topic_id: name for name, topic in views.items()},
        )

    def subscribe(self, listener: LeadershipListener, *, topics: Any) -> None:
        assert topics(OFFSETS_TOPIC)
        assert not topics("another")
        self.listener = listener

    def change_topic(self, name: str, partitions: int) -> uuid.UUID | None:
        """Create it, let it grow, or delete it (0 partitions)."""
        before = self.snapshot.topics
        topics = {topic: view for topic, view in before.items() if topic != name}
        if partitions:
            topic_id = before[name].topic_id if name in before else uuid.uuid4()
            topics[name] = TopicView(name, topic_id, before[OFFSETS_TOPIC].partitions[:1] * partitions)
        names = {topic.topic_id: topic.name for topic in topics.values()}
        self.snapshot = dataclasses.replace(self.snapshot, topics=topics, topic_names=names)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        return topics[name].topic_id if partitions else None

    async def until(self, condition: Callable[[ClusterSnapshot], bool], timeout_ms: int) -> bool:
        """Without a timeout, which would be an event of its own under a virtual clock."""
        while not condition(self.snapshot):
            await self._changed.wait()
        return True

    async def allocate_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids


def _no_session() -> Any:
    raise AssertionError("there is no ZooKeeper")


class LoneCoordinator:
    """A mounted coordinator that leads all partitions of `__consumer_offsets` after `lead_all`."""

    def __init__(
        self,
        clock: Clock,
        settings: Mapping[str, str],
        topics: Mapping[str, int],
        storage: MemoryStorage | None = None,
        consumer: ConsumerSettings | None = None,
        topic_ids: Mapping[str, uuid.UUID] = MappingProxyType({}),
    ) -> None:
        config, _ = BrokerConfig.from_settings(settings)
        self.partitions = config.number("offsets.topic.num.partitions")
        self.storage = storage or MemoryStorage()
        self.tracer = ListTracer(clock=clock)
        self.cluster = FixedCluster({OFFSETS_TOPIC: self.partitions, **topics}, topic_ids)
        self.stops: list[Any] = []
        runtime = Runtime(clock=clock)
        services: Any = BrokerServices(
            config=config,
            node_id=NODE,
            zookeeper="none",
            storage=self.storage,  # type: ignore[arg-type]  # its interface
            cluster=self.cluster,  # type: ignore[arg-type]  # its interface
            tracer=self.tracer,
            runtime=runtime,
            session=_no_session,
            create_internal_topic=self._nothing_to_create,
            on_stop=self.stops.append,
            turns=Turns(runtime.stopwatch),
        )
        self.handlers: HandlerTable = mount(services, consumer)

    @staticmethod
    async def _nothing_to_create(name: str) -> None:
        raise AssertionError(f"{name} exists already")

    @property
    def listener(self) -> LeadershipListener:
        assert self.cluster.listener is not None
        return self.cluster.listener

    def tp(self, number: int) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, number)

    async def lead(self, number: int, epoch: int = 0) -> None:
        topic_id = self.cluster.snapshot.topics[OFFSETS_TOPIC].topic_id
        await self.listener.on_lead(Leadership(self.tp(number), topic_id, epoch))

    async def lead_all(self, epoch: int = 0) -> None:
        for number in range(self.partitions):
            await self.lead(number, epoch)

    async def resign_all(self) -> None:
        for number in range(self.partitions):
            await self.listener.on_resign(self.tp(number))

    async def stop(self) -> None:
        for stop in reversed(self.stops):
            await stop()

    async def connect(self, client_id: str) -> HandlerConnection:
        return HandlerConnection(self.handlers, client_id)


class HandlerConnection:
    """A connection straight to the handlers; requests and answers pass the codec, one request at a time."""

    def __init__(self, handlers: HandlerTable, client_id: str) -> None:
        self._handlers = handlers
        self._readers = readers_of(handlers)
        self._client_id = client_id
        self._tail: asyncio.Task[Any] | None = None
        self._correlation = 0

    def send(self, api: Api, version: int, body: Mapping[str, Any]) -> asyncio.Future[Any]:
        self._correlation += 1
        frame = encode_request(api, version, self._correlation, self._client_id, body)[SIZE:]
        self._tail = asyncio.create_task(self._serve(frame, self._tail))
        return self._tail

    async def _serve(self, frame: bytes, before: asyncio.Task[Any] | None) -> Any:
        if before is not None:
            await asyncio.wait([before])
        request = decode_request(frame, self._readers)
        context = RequestContext(0, self._client_id, "127.0.0.1", request.api, request.version, request.correlation_id)
        answer: Any = self._handlers[request.api](context, request.body)
        if not isinstance(answer, Mapping | Encoded | Rows):
            answer = await answer
        if isinstance(answer, Rows):
            answer = {**answer.head, answer.name: [row for row in answer.rows if row is not None]}
        if answer is None:
            await asyncio.Event().wait()  # never answered
        if isinstance(answer, Encoded):
            answered = response_with(request.correlation_id, answer.tail)
        else:
            answered = encode_response(request.api, request.version, request.correlation_id, answer)
        return decode_response(request.api, request.version, answered[SIZE:])[1]

    async def call(self, api: Api, version: int, **body: Any) -> Any:
        return await self.send(api, version, body)

    def send_raw(self, key: int, version: int, body: bytes) -> asyncio.Future[Any]:
        raise NotImplementedError("raw frames need a server")

    def close(self) -> None:
        if self._tail is not None:
            self._tail.cancel()
