"""A client of a cluster: metadata, and one connection to each broker (`reads` has the requests for records).

Nothing here retries, except that metadata is requested from the next broker: the caller decides when to retry.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kernel.client.connection import REQUEST_TIMEOUT_MS, BrokerConnection, Disconnected
from kernel.errors import Unavailable
from kernel.values import BrokerAddress, TopicPartition
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from kernel.trace.writer import Tracer


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """`node_id` is -1 if there is no leader."""

    node_id: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The last Metadata response. `errors` has Kafka's error name for topics that it could not describe."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, BrokerAddress] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, PartitionLeader] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID | None] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    internal: frozenset[str] = frozenset()  #: topics marked as internal by the brokers (Metadata 1 on)

    def partitions_of(self, topic: str) -> tuple[int, ...]:
        """The topic's partition numbers in order; empty if it is unknown."""
        return tuple(sorted(tp.partition for tp in self.leaders if tp.topic == topic))

    def sizes(self) -> dict[str, int]:
        """{topic: number of partitions} of all known topics."""
        return dict(Counter(tp.topic for tp in self.leaders))


class _Answer:
    """A Metadata response, which is compared by its identity."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Answer) and self.answer is other.answer

    def __hash__(self) -> int:
        return id(self.answer)


@functools.lru_cache(maxsize=4)
def _described(response: _Answer) -> ClusterMetadata:
    """What a response says; once for all clients of a process that got the same one."""
    answer = response.answer
    described = [topic for topic in answer.topics if topic.name]  # an id that no topic has comes without a name
    good = [topic for topic in described if topic.error_code == ErrorCode.none]
    return ClusterMetadata(
        cluster_id=getattr(answer, "cluster_id", None) or "",
        controller_id=getattr(answer, "controller_id", -1),
        brokers={b.node_id: BrokerAddress(b.node_id, b.host, b.port) for b in answer.brokers},
        leaders={
            TopicPartition(topic.name, partition.partition_index): PartitionLeader(
                partition.leader_id, getattr(partition, "leader_epoch", -1)
            )
            for topic in good
            for partition in topic.partitions
        },
        topic_ids={topic.name: getattr(topic, "topic_id", None) for topic in good},
        errors={topic.name: error_name(topic.error_code) for topic in described if topic.error_code != ErrorCode.none},
        internal=frozenset(topic.name for topic in described if getattr(topic, "is_internal", False)),
    )


class ClusterClient:
    """Connections by broker id, opened on first use and reopened after they break."""

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        client_id: str,
        tracer: Tracer | None = None,
        *,
        connect_timeout_ms: int = 10_000,
        offered: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        """`offered`: see `BrokerConnection.open`."""
        assert bootstrap, "at least one bootstrap address is needed"
        self.bootstrap = tuple(bootstrap)
        self.client_id = client_id
        self.metadata = ClusterMetadata()
        self._member: str | None = None
        self._tracer = tracer
        self._connect_timeout_ms = connect_timeout_ms
        self._offered = offered
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._asking: BrokerConnection | None = None  # to a bootstrap address, for metadata
        self._asking_lock = asyncio.Lock()
        self._closed = False

    @property
    def member(self) -> str | None:
        """The member id for requests in the trace, on every connection of this client."""
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

        Raises `Unavailable` if no broker answers, naming each one tried.
        """
        named = None if topics is None else [{"name": name, "topic_id": None} for name in sorted(topics)]
        return await self._refresh(named, topics, create=create, timeout_ms=timeout_ms)

    async def refresh_ids(self, ids: Collection[UUID], *, timeout_ms: int = REQUEST_TIMEOUT_MS) -> ClusterMetadata:
        """Ask any broker for Metadata of the topics with these ids; it leaves out those that do not exist.

        Raises as `refresh`.
        """
        named = [{"name": None, "topic_id": topic_id} for topic_id in ids]
        return await self._refresh(named, (), create=False, timeout_ms=timeout_ms)

    async def _refresh(
        self, named: list[dict[str, Any]] | None, topics: Collection[str] | None, *, create: bool, timeout_ms: int
    ) -> ClusterMetadata:
        body = {"topics": named, "allow_auto_topic_creation": create}
        failures = []
        for connect in self._candidates():
            try:
                connection = await connect()
                # Version 0 has no null for "all topics"; version 12 is the last one that every stock broker offers.
                answer = await connection.call(
                    Api.Metadata, body, version=min(12, connection.version_of(Api.Metadata)), timeout_ms=timeout_ms
                )
            except Unavailable as error:
                failures.append(str(error))
                continue
            self._learn(answer, topics)
            return self.metadata
        raise _no_broker(failures)

    def _candidates(self) -> list[Any]:
        """Where to request metadata: open connections, then known brokers, then the bootstrap addresses."""
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
        async with self._asking_lock:  # or with two concurrent callers, one connection would be forgotten and stay open
            asking = self._asking
            if asking is not None and not asking.closed and (asking.host, asking.port) == address:
                return asking
            if asking is not None:
                asking.close()
            self._asking = await self._open(BrokerAddress(-1, *address))
            return self._asking

    def _learn(self, answer: Any, topics: Collection[str] | None) -> None:
        old, new = self.metadata, _described(_Answer(answer))
        named = {*new.topic_ids, *new.errors, *(topics or ())}
        if topics is None or (old.topic_ids.keys() | old.errors.keys()) <= named:
            self.metadata = new
            return
        self.metadata = replace(
            new,
            leaders={**{tp: leader for tp, leader in old.leaders.items() if tp.topic not in named}, **new.leaders},
            topic_ids={**{name: each for name, each in old.topic_ids.items() if name not in named}, **new.topic_ids},
            errors={**{name: error for name, error in old.errors.items() if name not in named}, **new.errors},
            internal=new.internal | (old.internal - named),
        )

    def leader_of(self, tp: TopicPartition) -> int | None:
        """The leader's node id in the last metadata; None if unknown or if there is no leader."""
        leader = self.metadata.leaders.get(tp)
        return None if leader is None or leader.node_id < 0 else leader.node_id

    async def connection(self, node_id: int) -> BrokerConnection:
        """An open connection to that broker. Raises `Unavailable`, also if the metadata does not name the broker."""
        lock = self._opening.setdefault(node_id, asyncio.Lock())
        async with lock:
            connection = self._connections.get(node_id)
            if connection is not None and not connection.closed:
                return connection
            address = self.metadata.brokers.get(node_id)
            if address is None:
                raise Unavailable(f"broker {node_id} is not in the metadata. Refresh it")
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
        raise _no_broker(failures)

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
            offered=self._offered,
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


def _no_broker(failures: Sequence[str]) -> Unavailable:
    """The error after each broker has failed, for these reasons."""
    return Unavailable(f"{'; '.join(dict.fromkeys(failures))}. Is it running, and is the address right?")
