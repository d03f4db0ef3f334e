"""Record batches in recorded conversations: produced and fetched records as JSON.

    {"batch": {"sequence": 0, "values": ["a"], "producer": "2", "transactional": false}}

is a batch of the producer that was bound as 2; `producer` and `transactional` may be left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kernel.records.records import NewRecord, build_batch, decode, headers_of, is_control
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

_TIMESTAMP_MS = 1_000
_TRANSACTIONAL = 0x10
#: Key and value of a control record: what its batch ends with, before the count of headers.
_MARKER_BYTES = slice(-13, -1)


def built(batch: Mapping[str, Any], numbers: Mapping[str, int]) -> bytes:
    which = batch.get("producer", "")
    return build_batch(
        [NewRecord(value.encode(), None, _TIMESTAMP_MS) for value in batch["values"]],
        producer_id=numbers[f"$PID{which}"],
        producer_epoch=numbers[f"$PEPOCH{which}"],
        base_sequence=batch["sequence"],
        transactional=batch.get("transactional", True),
    )


async def read_to_end(
    send: Callable[[Api, int, Mapping[str, Any]], asyncio.Future[Any]], step: Mapping[str, Any]
) -> Any:
    """Fetch `topic` and `partition` from `offset` to the end with Fetch 11, at isolation level `level`."""
    tp = TopicPartition(step["topic"], step["partition"])
    offset, batches, aborted = step["offset"], [], set()
    while True:
        partition = {
            "partition": tp.partition,
            "fetch_offset": offset,
            "partition_max_bytes": 1_000_000,
            "current_leader_epoch": -1,
            "log_start_offset": -1,
        }
        body = {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1_000_000,
            "isolation_level": step["level"],
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": tp.topic, "partitions": [partition]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        }
        answer = await send(Api.Fetch, 11, body)
        found = answer.responses[0].partitions[0]
        code: ErrorCode = found.error_code
        whole = list(headers_of(found.records or b""))
        aborted |= {one.first_offset for one in found.aborted_transactions or ()}
        batches += [described(tp, header, bytes(data)) for header, data in whole]
        if not whole:
            return {
                "error_code": f"{code.value} {code.name.upper()}",
                "high_watermark": found.high_watermark,
                "last_stable_offset": found.last_stable_offset,
                "aborted": sorted(aborted),
                "lists_aborted": found.aborted_transactions is not None,
                "batches": batches,
            }
        offset = whole[-1][0].next_offset


def described(tp: TopicPartition, header: Any, data: bytes) -> dict[str, Any]:
    """The parts that are equal in every run: all but producer id, times, leader epoch, and so the checksum."""
    common = {
        "base_offset": header.base_offset,
        "transactional": bool(header.attributes & _TRANSACTIONAL),
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
    }
    if is_control(header):
        return {**common, "marker": data[_MARKER_BYTES].hex()}
    records, _ = decode(tp, data, 0)
    return {**common, "values": [(record.value or b"").decode() for record in records]}
