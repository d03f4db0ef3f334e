"""A client of a cluster: who leads what, one connection to each broker, and the two reads that both backends share.

Nothing here retries by itself, except for asking the next broker for metadata: when to try again, and what that
means, is for the caller to decide.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.broker.connection import REQUEST_TIMEOUT_MS, BrokerConnection, Disconnected, RequestTimedOut
from kernel.broker.records import decode
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, BrokerAddress, Record, TopicPartition
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from kernel.trace.writer import Tracer

__all__ = [
    "REQUEST_TIMEOUT_MS",
    "BrokerConnection",
    "ClusterClient",
    "ClusterMetadata",
    "Disconnected",
    "FetchedBytes",
    "FetchedPartition",
    "PartitionLeader",
    "RequestTimedOut",
    "fetch",
    "fetch_bytes",
    "list_offset",
]

EARLIEST, LATEST = -2, -1  #: ListOffsets' special timestamps


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """`node_id` is -1 while nobody leads."""

    node_id: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What Metadata said last. `errors` names the topics that could not be described, by Kafka's error name."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, BrokerAddress] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, PartitionLeader] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID | None] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    internal: frozenset[str] = frozenset()  #: topics that the brokers call Kafka's own (Metadata 1 on)

    def partitions_of(self, topic: str) -> tuple[int, ...]:
        """Its partition numbers in order; empty when the topic is not known."""
        return tuple(sorted(tp.partition for tp in self.leaders if tp.topic == topic))

    def sizes(self) -> dict[str, int]:
        """{topic: number of partitions} of all that are known."""
        return dict(Counter(tp.topic for tp in self.leaders))


class ClusterClient:
    """Connections by broker id, opened when first asked for and opened anew when they broke."""

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        client_id: str,
        tracer: Tracer | None = None,
        *,
        connect_timeout_ms: int = 10_000,
    ) -> None:
        assert bootstrap, "at least one bootstrap address is needed"
        self.bootstrap = tuple(bootstrap)
        self.client_id = client_id
        self.metadata = ClusterMetadata()
        self._member: str | None = None
        self._tracer = tracer
        self._connect_timeout_ms = connect_timeout_ms
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._asking: BrokerConnection | None = None  # to a bootstrap address, for metadata
        self._asking_lock = asyncio.Lock()
        self._closed = False

    @property
    def member(self) -> str | None:
        """The member id that requests carry in the trace, on every connection of this client."""
        return self._member

    @member.setter
    def member(self, member: str | None) -> None:
        self._member = member
        for connection in [*self._connections.values(), *([self._asking] if self._asking else [])]:
            connection.member = member

    async def refresh(
        self, topics: Collection[str] | None = None, *, create: bool = False, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> ClusterMetadata:
        """Ask any broker for Metadata of `topics` (None: all). `create` lets auto.create.topics.enable do its work.

        Raises `Unavailable` when no broker answers, naming each that was tried.
        """
        body = {
            "topics": None if topics is None else [{"name": name, "topic_id": None} for name in topics],
            "allow_auto_topic_creation": create,
        }
        failures = []
        for connect in self._candidates():
            try:
                connection = await connect()
                # Version 0 has no null for "all topics", version 12 is the last that every stock broker offers.
                answer = await connection.call(
                    Api.Metadata, body, version=min(12, connection.version_of(Api.Metadata)), timeout_ms=timeout_ms
                )
            except Unavailable as error:
                failures.append(str(error))
                continue
            self._learn(answer, topics)
            return self.metadata
        raise Unavailable(f"no broker answered a Metadata request: {'; '.join(dict.fromkeys(failures))}")

    def _candidates(self) -> list[Any]:
        """What to try for metadata: open connections, then known brokers, then the bootstrap addresses."""
        live = [c for c in [*self._connections.values(), self._asking] if c is not None and not c.closed]
        known = [node_id for node_id in self.metadata.brokers if node_id not in self._connections]

        async def is_open(connection: BrokerConnection) -> BrokerConnection:
            return connection

        return [
            *[lambda c=connection: is_open(c) for connection in live],
            *[lambda n=node_id: self.connection(n) for node_id in known],
            *[lambda a=address: self._ask_at(a) for address in self.bootstrap],
        ]

    async def _ask_at(self, address: tuple[str, int]) -> BrokerConnection:
        async with self._asking_lock:  # or of two who ask at once, one's connection would be forgotten and stay open
            asking = self._asking
            if asking is not None and not asking.closed and (asking.host, asking.port) == address:
                return asking
            if asking is not None:
                asking.close()
            self._asking = await self._open(BrokerAddress(-1, *address))
            return self._asking

    def _learn(self, answer: Any, topics: Collection[str] | None) -> None:
        old = self.metadata
        named = {topic.name for topic in answer.topics}
        forgotten = (lambda _: True) if topics is None else named.union(topics).__contains__
        leaders = {tp: leader for tp, leader in old.leaders.items() if not forgotten(tp.topic)}
        ids = {name: topic_id for name, topic_id in old.topic_ids.items() if not forgotten(name)}
        errors = {name: error for name, error in old.errors.items() if not forgotten(name)}
        internal = {topic.name for topic in answer.topics if getattr(topic, "is_internal", False)}
        for topic in answer.topics:
            if topic.error_code != ErrorCode.none:
                errors[topic.name] = error_name(topic.error_code)
                continue
            ids[topic.name] = getattr(topic, "topic_id", None)
            for partition in topic.partitions:
                leaders[TopicPartition(topic.name, partition.partition_index)] = PartitionLeader(
                    partition.leader_id, getattr(partition, "leader_epoch", -1)
                )
        self.metadata = ClusterMetadata(
            cluster_id=getattr(answer, "cluster_id", None) or "",
            controller_id=getattr(answer, "controller_id", -1),
            brokers={b.node_id: BrokerAddress(b.node_id, b.host, b.port) for b in answer.brokers},
            leaders=leaders,
            topic_ids=ids,
            errors=errors,
            internal=frozenset(internal.union(name for name in old.internal if not forgotten(name))),
        )

    def leader_of(self, tp: TopicPartition) -> int | None:
        """The leader's node id as metadata had it last; None when unknown or nobody leads."""
        leader = self.metadata.leaders.get(tp)
        return None if leader is None or leader.node_id < 0 else leader.node_id

    async def connection(self, node_id: int) -> BrokerConnection:
        """An open connection to that broker. Raises `Unavailable`, also when metadata does not name the broker."""
        lock = self._opening.setdefault(node_id, asyncio.Lock())
        async with lock:
            connection = self._connections.get(node_id)
            if connection is not None and not connection.closed:
                return connection
            address = self.metadata.brokers.get(node_id)
            if address is None:
                raise Unavailable(f"broker {node_id} is not in the metadata: refresh it")
            connection = self._connections[node_id] = await self._open(address)
            return connection

    async def any_connection(self) -> BrokerConnection:
        """A connection to some broker. Raises `Unavailable`."""
        failures = []
        for connect in self._candidates():
            try:
                connection: BrokerConnection = await connect()
            except Unavailable as error:
                failures.append(str(error))
            else:
                return connection
        raise Unavailable(f"no broker can be reached: {'; '.join(dict.fromkeys(failures))}")

    async def _open(self, address: BrokerAddress) -> BrokerConnection:
        if self._closed:
            raise Disconnected("this client is closed")
        connection = await BrokerConnection.open(
            address.host,
            address.port,
            self.client_id,
            timeout_ms=self._connect_timeout_ms,
            node_id=address.node_id,
            tracer=self._tracer,
        )
        connection.member = self._member
        return connection

    async def close(self) -> None:
        """Close every connection. Idempotent."""
        self._closed = True
        connections = [*self._connections.values(), *([self._asking] if self._asking else [])]
        for connection in connections:
            connection.close()
        self._connections.clear()
        self._asking = None
        await asyncio.gather(*(connection.wait_closed() for connection in connections))


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """`error` is '' or Kafka's name; `next_offset` is where to go on (past control batches and old records)."""

    error: str
    high_watermark: int
    records: tuple[Record, ...]
    next_offset: int
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchedBytes:
    """As `FetchedPartition`, with the batches as they came: a client may have its own view of a broken one."""

    error: str
    high_watermark: int
    data: bytes
    log_start_offset: int = -1


async def fetch(
    connection: BrokerConnection,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 52_428_800,
    partition_max_bytes: int = 1_048_576,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> dict[TopicPartition, FetchedPartition]:
    """One Fetch from the broker that leads these partitions. Raises as `BrokerConnection.call`, and `CorruptRecords`.

    Defaults are Kafka's (fetch.max.wait.ms, fetch.min.bytes, fetch.max.bytes, max.partition.fetch.bytes).
    """
    fetched = await fetch_bytes(
        connection,
        offsets,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
        timeout_ms=timeout_ms,
    )
    return {
        tp: FetchedPartition(
            part.error, part.high_watermark, *decode(tp, part.data, offsets[tp]), part.log_start_offset
        )
        for tp, part in fetched.items()
    }


async def fetch_bytes(
    connection: BrokerConnection,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_max_bytes: int,
    timeout_ms: int,
) -> dict[TopicPartition, FetchedBytes]:
    """As `fetch`, without a look into what came. Raises as `BrokerConnection.call`.

    Partitions are asked for in the order of `offsets`: the first that has anything gets a whole batch (KIP-74).
    Topics go by name (version 12 at most); there is no fetch session (KIP-227: session 0, epoch -1).
    """
    body = {
        "replica_id": -1,
        "max_wait": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "fetch_offset": offset,
                        "current_leader_epoch": -1,
                        "partition_max_bytes": partition_max_bytes,
                    }
                    for partition, offset in partitions
                ],
            }
            for topic, partitions in _by_topic(offsets).items()
        ],
    }
    version = min(12, connection.version_of(Api.Fetch))
    answer = await connection.call(Api.Fetch, body, version=version, timeout_ms=timeout_ms + max_wait_ms)
    if error := error_name(getattr(answer, "error_code", ErrorCode.none)):
        return {tp: FetchedBytes(error, -1, b"") for tp in offsets}
    return {
        TopicPartition(topic.topic, partition.partition_index): FetchedBytes(
            error_name(partition.error_code),
            partition.high_watermark,
            partition.records or b"",
            getattr(partition, "log_start_offset", -1),
        )
        for topic in answer.responses
        for partition in topic.partitions
    }


async def list_offset(
    connection: BrokerConnection, timestamps: Mapping[TopicPartition, int], *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> dict[TopicPartition, tuple[str, int]]:
    """(error, offset) for each partition: of LATEST (-1), EARLIEST (-2), or the first record at or after epoch ms.

    The offset is -1 when no record is that young. Raises as `BrokerConnection.call`. Brokers of before 0.10.1 answer
    a point in time with the begin of the segment that was written before it.
    """
    body = {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": partition,
                        "current_leader_epoch": -1,
                        "timestamp": timestamp,
                        "max_num_offsets": 1,
                    }
                    for partition, timestamp in partitions
                ],
            }
            for topic, partitions in _by_topic(timestamps).items()
        ],
    }
    version = min(7, connection.version_of(Api.ListOffsets))
    answer = await connection.call(Api.ListOffsets, body, version=version, timeout_ms=timeout_ms)
    return {
        TopicPartition(topic.name, partition.partition_index): (error_name(partition.error_code), _offset_of(partition))
        for topic in answer.topics
        for partition in topic.partitions
    }


def _by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, list[tuple[int, int]]]:
    """(partition, its number) by topic, in the order given."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for tp, number in numbers.items():
        topics.setdefault(tp.topic, []).append((tp.partition, number))
    return topics


def _offset_of(answer: Any) -> int:
    """Version 0 answers with a list, which is empty when there is no such offset."""
    several = getattr(answer, "old_style_offsets", None)
    offset: int = answer.offset if several is None else next(iter(several), NO_OFFSET)
    return offset
