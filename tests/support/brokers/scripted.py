"""A broker in memory whose answers are set by the test, partition by partition, with real frames over a real socket.

`tests/zkconsumer/records/test_fetching_live.py` tests the same with a live broker.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kernel.broker.server.handlers import RequestContext
from kernel.broker.server.server import BrokerServer
from kernel.records.records import NewRecord, build_batch
from kernel.values import BrokerAddress, TopicPartition
from kernel.wire.errors import ErrorCode, ProtocolError
from kernel.wire.versions import Api


@dataclass
class ScriptedLog:
    """Batches by base offset, from `start` to `end`; with an `error`, Fetch and ListOffsets answer that."""

    start: int = 0
    end: int = 0
    batches: dict[int, bytes] = field(default_factory=dict)
    error: ErrorCode = ErrorCode.none
    offsets_error: ErrorCode = ErrorCode.none

    def append(self, *values: bytes, codec: str = "none", padding: int = 0) -> None:
        """One batch with a record for each value."""
        batch = build_batch([NewRecord(value + b"x" * padding, None, 0) for value in values], codec=codec)
        self.batches[self.end] = struct.pack(">q", self.end) + batch[8:]
        self.end += len(values)

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes:
        """Whole batches from the one with `offset` on, as by KIP-74."""
        found = b""
        for base in sorted(self.batches):
            batch = self.batches[base]
            (last_delta,) = struct.unpack_from(">i", batch, 23)
            if base + last_delta < offset:
                continue
            if len(found) + len(batch) > max_bytes and (found or not at_least_one):
                break
            found += batch
        return found


@dataclass
class ScriptedBroker:
    """Its logs, and the requests so far: `fetches` as {partition: offset}, `lookups` as topics of a Metadata."""

    address: BrokerAddress
    logs: dict[TopicPartition, ScriptedLog] = field(default_factory=dict)
    leaders: dict[TopicPartition, BrokerAddress | None] = field(default_factory=dict)  #: as Metadata answers
    fetches: list[dict[TopicPartition, int]] = field(default_factory=list)
    lookups: list[list[str]] = field(default_factory=list)
    resets: list[dict[TopicPartition, int]] = field(default_factory=list)  #: ListOffsets: {partition: time}
    connections: set[int] = field(default_factory=set)
    breaks: int = 0  #: the number of next fetches that break their connection

    def log(self, topic: str, partition: int) -> ScriptedLog:
        return self.logs.setdefault(TopicPartition(topic, partition), ScriptedLog())

    async def fetch(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        self.connections.add(context.connection_id)
        wanted = {TopicPartition(topic.topic, one.partition): one for topic in body.topics for one in topic.partitions}
        self.fetches.append({tp: one.fetch_offset for tp, one in wanted.items()})
        if self.breaks > 0:
            self.breaks -= 1
            raise ProtocolError("as scripted")
        size = 0
        parts: dict[str, list[dict[str, Any]]] = {}
        for tp, one in wanted.items():
            log = self.logs.get(tp, ScriptedLog(error=ErrorCode.unknown_topic_or_partition))
            error = log.error
            if error is ErrorCode.none and not log.start <= one.fetch_offset <= log.end:
                error = ErrorCode.offset_out_of_range
            records = b""
            if error is ErrorCode.none:
                records = log.read(one.fetch_offset, one.partition_max_bytes, at_least_one=size == 0)
            size += len(records)
            part = {"partition_index": tp.partition, "error_code": error, "high_watermark": log.end, "records": records}
            parts.setdefault(tp.topic, []).append(part)
        if size == 0 and not any(part["error_code"] for topic in parts.values() for part in topic):
            await asyncio.sleep(body.max_wait.total_seconds())
        return {"responses": [{"topic": topic, "partitions": given} for topic, given in parts.items()]}

    def list_offsets(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        self.resets.append(
            {
                TopicPartition(topic.name, one.partition_index): one.timestamp
                for topic in body.topics
                for one in topic.partitions
            }
        )

        def answer(tp: TopicPartition, timestamp: int) -> dict[str, Any]:
            log = self.logs.get(tp, ScriptedLog(offsets_error=ErrorCode.not_leader_or_follower))
            offset = log.start if timestamp == -2 else log.end
            return {"partition_index": tp.partition, "error_code": log.offsets_error, "offset": offset}

        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        answer(TopicPartition(topic.name, one.partition_index), one.timestamp)
                        for one in topic.partitions
                    ],
                }
                for topic in body.topics
            ]
        }

    def metadata(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        asked = [topic.name for topic in body.topics]
        self.lookups.append(asked)
        brokers = {self.address, *(leader for leader in self.leaders.values() if leader is not None)}
        return {
            "brokers": [{"node_id": one.node_id, "host": one.host, "port": one.port} for one in brokers],
            "topics": [
                {
                    "name": name,
                    "error_code": ErrorCode.none,
                    "partitions": [
                        {
                            "partition_index": tp.partition,
                            "leader_id": -1 if leader is None else leader.node_id,
                            "error_code": ErrorCode.none if leader else ErrorCode.leader_not_available,
                        }
                        for tp, leader in self.leaders.items()
                        if tp.topic == name
                    ],
                }
                for name in asked
            ],
        }


@asynccontextmanager
async def scripted_broker(node_id: int = 1) -> AsyncIterator[ScriptedBroker]:
    """A broker on a free port; partitions have no leaders until the test sets them."""
    broker = ScriptedBroker(BrokerAddress(node_id, "127.0.0.1", 0))
    server = BrokerServer(
        {Api.Fetch: broker.fetch, Api.ListOffsets: broker.list_offsets, Api.Metadata: broker.metadata}
    )
    await server.start()
    broker.address = BrokerAddress(node_id, server.host, server.port)
    try:
        yield broker
    finally:
        await server.stop()
