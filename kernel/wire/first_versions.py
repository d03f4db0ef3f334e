"""Schemas of messages that are too old for kio: Fetch 0 to 3 and ListOffsets 0.

Like Kafka 4.0, kio begins with Fetch 4 and ListOffsets 1. The original high-level consumers are older: 0.8.2 sends
Fetch 0, 1.1 sends Fetch 3, and both send ListOffsets 0. The versions (FetchRequest.json and ListOffsetsRequest.json up
to Kafka 3.9):

- Fetch 0 and 1 return messages of format 0, Fetch 2 and 3 of format 1. Version 1 adds the throttle time to the
  response, version 3 a size limit for the whole response (KIP-74).
- ListOffsets 0 requests at most `max_num_offsets` offsets; the response lists them without timestamps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from kernel.wire.schema_classes import Column, Schema, array_of
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPLICA = Column("int32", BrokerId, BrokerId(-1))  #: -1: the client is a consumer
_BYTES_MAX = Column("int32", i32, i32(2**31 - 1))
_OFFSETS = Column("int64", tuple[i64, ...])


def _fetch_request(version: int) -> type[Any]:
    schema = Schema(Api.Fetch, version, request=True)
    partition = schema.part("FetchPartition", partition="int32", fetch_offset="int64", partition_max_bytes="int32")
    topic = schema.part("FetchTopic", topic="string", partitions=array_of(partition))
    limit = {"max_bytes": _BYTES_MAX} if version >= 3 else {}
    return schema.whole(
        "FetchRequest",
        replica_id=_REPLICA,
        max_wait="timedelta_i32",
        min_bytes="int32",
        **limit,
        topics=array_of(topic),
    )


def _fetch_response(version: int) -> type[Any]:
    schema = Schema(Api.Fetch, version, request=False)
    partition = schema.part(
        "PartitionData", partition_index="int32", error_code="error_code", high_watermark="int64", records="records"
    )
    topic = schema.part("FetchableTopicResponse", topic="string", partitions=array_of(partition))
    throttled = {"throttle_time": "timedelta_i32"} if version >= 1 else {}
    return schema.whole("FetchResponse", **throttled, responses=array_of(topic))


def _list_offsets_request() -> type[Any]:
    schema = Schema(Api.ListOffsets, 0, request=True)
    partition = schema.part("ListOffsetsPartition", partition_index="int32", timestamp="int64", max_num_offsets="int32")
    topic = schema.part("ListOffsetsTopic", name="string", partitions=array_of(partition))
    return schema.whole("ListOffsetsRequest", replica_id=_REPLICA, topics=array_of(topic))


def _list_offsets_response() -> type[Any]:
    schema = Schema(Api.ListOffsets, 0, request=False)
    partition = schema.part(
        "ListOffsetsPartitionResponse", partition_index="int32", error_code="error_code", old_style_offsets=_OFFSETS
    )
    topic = schema.part("ListOffsetsTopicResponse", name="string", partitions=array_of(partition))
    return schema.whole("ListOffsetsResponse", topics=array_of(topic))


#: {(API, version): class}
REQUESTS: Mapping[tuple[int, int], type[Any]] = {
    **{(Api.Fetch, version): _fetch_request(version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_request(),
}
RESPONSES: Mapping[tuple[int, int], type[Any]] = {
    **{(Api.Fetch, version): _fetch_response(version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_response(),
}
